from glob import glob

from setuptools import find_packages, setup

NAME = 'longreach_boom'

setup(
    name=NAME,
    version='0.1.0',
    packages=[*find_packages(include=[NAME, NAME + '.*']), NAME + '.config'],
    # For Python: config/ becomes longreach_boom/config/ of an installation by pip.
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
    description='Flexible boom of a concrete pump: beams, hydraulics, friction, control, sensors.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={
        'console_scripts': [
            'controller = longreach_node.entry:machine_node',
            'plant = longreach_node.entry:machine_node',
        ],
        'longreach.machines': ['boom = longreach_boom.spec:BOOM'],
        'longreach.identification': ['boom = longreach_boom.identification:BOOM'],
        'longreach.warm_up': ['boom = longreach_boom.simulation:warm_up'],
    },
)
