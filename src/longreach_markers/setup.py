from setuptools import find_packages, setup

NAME = 'longreach_markers'

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
        'longreach_dynamics',
        'numba',
        'numpy',
        'opencv-contrib-python-headless',
        'pyyaml',
        'scipy',
        'tqdm',
    ],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='Circular markers tracked by one to eight cameras, free of ROS: calibration, poses, detection, positions with covariance.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={'longreach.warm_up': ['markers = longreach_markers.tracking.follower:warm_up']},
)
