from setuptools import find_packages, setup

NAME = 'longreach_dynamics'

setup(
    name=NAME,
    version='0.1.0',
    packages=find_packages(include=[NAME, NAME + '.*']),
    package_data={NAME: ['py.typed', '*.pyi'], NAME + '.hydraulics': ['*.pyi']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml']),
    ],
    install_requires=['setuptools', 'distributed', 'numpy', 'scipy', 'numba', 'pyyaml', 'tqdm'],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='Numerics shared by the machines of Longreach, free of ROS: time stepping, compiled kernels, parameters, errors.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
)
