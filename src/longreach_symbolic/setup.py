from glob import glob

from setuptools import find_packages, setup

NAME = 'longreach_symbolic'

setup(
    name=NAME,
    version='0.1.0',
    packages=[*find_packages(include=[NAME, NAME + '.*']), NAME + '.config'],
    # For Python: config/ becomes longreach_symbolic/config/ of an installation by pip.
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
    description='Chains of flexible links: equations of motion in closed form, and code from them.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={
        'longreach.commands': ['symbolic = longreach_symbolic.commands'],
    },
)
