from glob import glob

from setuptools import find_packages, setup

NAME = 'longreach_view'

setup(
    name=NAME,
    version='0.1.0',
    packages=[*find_packages(include=[NAME, NAME + '.*']), NAME + '.config'],
    # For Python: config/ becomes longreach_view/config/ of an installation by pip.
    package_dir={NAME + '.config': 'config'},
    package_data={NAME: ['py.typed', '*.html'], NAME + '.config': ['*']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml']),
        ('share/' + NAME + '/config', glob('config/*')),
    ],
    install_requires=['setuptools', 'numpy', 'plotly', 'pyyaml', 'viser', 'websockets'],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='Machines in a browser: live topics and recordings, in 3D and as plots.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={'longreach.commands': ['view = longreach_view.commands']},
)
