from glob import glob

from setuptools import find_packages, setup

NAME = 'longreach_excavator'

setup(
    name=NAME,
    version='0.1.0',
    packages=[*find_packages(include=[NAME, NAME + '.*']), NAME + '.config'],
    # For Python: config/ becomes longreach_excavator/config/ of an installation by pip.
    package_dir={NAME + '.config': 'config'},
    package_data={NAME: ['py.typed', '*.pyi'], NAME + '.config': ['*']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml']),
        ('share/' + NAME + '/config', glob('config/*')),
    ],
    install_requires=['setuptools', 'numba', 'numpy', 'scipy'],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='Excavator: digging by recursive Newton-Euler, linkages, soil, hydraulics, teleoperation.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={
        'console_scripts': [
            'operator = longreach_node.entry:machine_node',
            'plant = longreach_node.entry:machine_node',
        ],
        'longreach.machines': ['excavator = longreach_excavator.spec:EXCAVATOR'],
        'longreach.identification': [
            'excavator = longreach_excavator.identification:EXCAVATOR',
            'excavator_surface = longreach_excavator.identification:EXCAVATOR_SURFACE',
        ],
        'longreach.warm_up': [
            'excavator = longreach_excavator.spec:EXCAVATOR.warm_up',
            'excavator_inverse = longreach_excavator.inverse:warm_up',
        ],
    },
)
