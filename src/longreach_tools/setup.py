from setuptools import find_packages, setup

NAME = 'longreach_tools'

setup(
    name=NAME,
    version='0.1.0',
    packages=find_packages(include=[NAME, NAME + '.*']),
    package_data={NAME: ['py.typed', '*.pyi']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml']),
    ],
    install_requires=[
        'setuptools',
        'apsw',
        'argcomplete',
        'matplotlib',
        'numpy',
        'opencv-contrib-python-headless',
        'pillow',
        'plotly',
        'pyarrow',
        'pyyaml',
        'rosbags',
        'scipy',
    ],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='The command longreach: launch, bag, and the subcommands that machines add.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={
        # In bin/, not in lib/longreach_tools/: a sourced workspace has the command on its PATH.
        'console_scripts': ['longreach = longreach_tools.cli:console'],
        'longreach.commands': [
            'animate = longreach_tools.plot.animate',
            'bag = longreach_tools.bag.commands',
            'launch = longreach_tools.launch.commands',
            'new = longreach_tools.new',
            'plot = longreach_tools.plot.commands',
        ],
    },
)
