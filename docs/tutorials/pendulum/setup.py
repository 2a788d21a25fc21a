from setuptools import setup

NAME = 'longreach_pendulum'
setup(
    name=NAME,
    packages=[NAME],
    package_data={NAME: ['config/*.yaml']},
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + NAME]),
        ('share/' + NAME, ['package.xml', 'pendulum.launch.xml']),
    ],
    entry_points={
        'console_scripts': ['plant = longreach_node.entry:machine_node'],
        'longreach.machines': [f'pendulum = {NAME}.machine:PENDULUM'],
    },
)
