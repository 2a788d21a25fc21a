from setuptools import find_packages, setup

NAME = 'longreach_machine'

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
        'control',
        'numba',
        'numpy',
        'pythonfmu',
        'scipy',
        'tqdm',
    ],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='The declaration of a machine, from which its command, nodes, figures and tests are made.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
)
