from setuptools import find_packages, setup

NAME = 'longreach_links'

setup(
    name=NAME,
    version='0.1.0',
    packages=find_packages(include=[NAME, NAME + '.*']),
    package_data={NAME: ['py.typed']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml']),
    ],
    install_requires=['setuptools', 'numpy'],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='Chains of flexible links as ROS 2 nodes: plant, digital controllers, robot description.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={
        'console_scripts': [
            'controller = longreach_node.entry:machine_node',
            'plant = longreach_node.entry:machine_node',
        ],
        'longreach.machines': ['links = longreach_links.spec:LINKS'],
        'longreach.warm_up': ['links = longreach_links.spec:LINKS.warm_up'],
    },
)
