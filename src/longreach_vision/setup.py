from glob import glob

from setuptools import find_packages, setup

NAME = 'longreach_vision'

setup(
    name=NAME,
    version='0.1.0',
    packages=[*find_packages(include=[NAME, NAME + '.*']), NAME + '.config'],
    # For Python: config/ becomes longreach_vision/config/ of an installation by pip.
    package_dir={NAME + '.config': 'config'},
    package_data={NAME: ['py.typed'], NAME + '.config': ['*']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml']),
        ('share/' + NAME + '/config', glob('config/*')),
    ],
    install_requires=[
        'setuptools',
        'matplotlib',
        'numba',
        'numpy',
        'opencv-contrib-python-headless',
        'pyyaml',
        'rosbags',
        'tqdm',
    ],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='Two cameras that track circular markers: geometry, detection, tracking, simulation.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={
        'console_scripts': [
            'camera = longreach_vision.ros.nodes:camera',
            'simulated = longreach_vision.ros.nodes:simulated',
            'tracker = longreach_vision.ros.nodes:tracker',
            'video = longreach_vision.ros.nodes:video',
        ],
        'longreach.commands': ['vision = longreach_vision.commands.vision_commands'],
        'longreach.presets': ['vision = longreach_vision.commands.preset_figures:preset'],
        'longreach.warm_up': [
            'vision_simulator = longreach_vision.simulator.camera_simulator:warm_up',
        ],
    },
)
