from setuptools import find_packages, setup

NAME = 'longreach_control'

setup(
    name=NAME,
    version='0.1.0',
    packages=find_packages(include=[NAME, NAME + '.*']),
    package_data={NAME: ['py.typed', '*.pyi']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml']),
    ],
    install_requires=['setuptools', 'numpy', 'osqp', 'scipy'],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='Damping of vibrations of the boom: controllers, and a benchmark of them.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={
        'console_scripts': ['damping = longreach_node.entry:machine_node'],
        'longreach.commands': ['benchmark = longreach_control.commands'],
    },
)
