from setuptools import find_packages, setup

NAME = 'longreach_identification'

setup(
    name=NAME,
    version='0.1.0',
    packages=find_packages(include=[NAME, NAME + '.*']),
    package_data={NAME: ['py.typed', '*.pyi']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml']),
    ],
    install_requires=['setuptools', 'matplotlib', 'numpy', 'pyyaml', 'scipy', 'tqdm'],
    zip_safe=False,
    maintainer='Longreach developers',
    maintainer_email='longreach@example.org',
    description='Parameters of machines from recordings, with standard errors.',
    license='Apache-2.0',
    extras_require={'test': ['pytest']},
    entry_points={'longreach.commands': ['identify = longreach_identification.commands']},
)
