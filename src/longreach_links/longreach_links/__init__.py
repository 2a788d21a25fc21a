"""
Chains of flexible links as ROS 2 nodes; their library is :mod:`longreach_symbolic.machine`.

``description``, ``visuals``   URDF of the chords; bent links
``plant_node``, ``controller_node``   the nodes
``commands``              the command ``longreach links``
"""
