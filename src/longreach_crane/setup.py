from glob import glob

from setuptools import find_packages, setup

NAME = 'longreach_crane'

setup(
    name=NAME,
    version='0.1.0',
    packages=[*find_packages(include=[NAME, NAME + '.*']), NAME + '.config'],
    # For Python: config/ becomes longreach_crane/config/ of an installation by pip.
    package_dir={NAME + '.config': 'config'},
    package_data={NAME: ['py.typed', '*.pyi'], NAME + '.config': ['*']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml']),
        ('share/' + NAME + '/config', glob('config/*')),
    ],
    install_requires=['setuptools', 'numba', 'numpy', 'scipy', 'sympy'],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='Crane with digital control and diagnosis: ARGESIM benchmark C13R.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={
        'console_scripts': [
            'controller = longreach_node.entry:machine_node',
            'plant = longreach_node.entry:machine_node',
        ],
        'longreach.machines': ['crane = longreach_crane.spec:CRANE'],
        'longreach.identification': ['crane = longreach_crane.identification:CRANE'],
        'longreach.warm_up': ['crane = longreach_crane.spec:CRANE.warm_up'],
    },
)
