from glob import glob

from setuptools import find_packages, setup

NAME = 'longreach_harvester'

setup(
    name=NAME,
    version='0.1.0',
    packages=[*find_packages(include=[NAME, NAME + '.*']), NAME + '.config'],
    # For Python: config/ becomes longreach_harvester/config/ of an installation by pip.
    package_dir={NAME + '.config': 'config'},
    package_data={NAME: ['py.typed', '*.pyi'], NAME + '.config': ['*']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml']),
        ('share/' + NAME + '/config', glob('config/*')),
    ],
    install_requires=['setuptools', 'numba', 'numpy'],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='Forestry machine: hydraulics with lines, full and reduced, valve switching.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={
        'console_scripts': [
            'controller = longreach_node.entry:machine_node',
            'operator = longreach_node.entry:machine_node',
            'plant = longreach_node.entry:machine_node',
        ],
        'longreach.machines': ['harvester = longreach_harvester.spec:HARVESTER'],
        'longreach.identification': ['harvester = longreach_harvester.identification:HARVESTER'],
        'longreach.warm_up': ['harvester = longreach_harvester.simulation:warm_up'],
    },
)
