"""
What every node of Longreach shares, and what talks to nodes.

``entry``       start and end of a node's process
``executor``    the executor of the nodes
``middleware``  settings of ROS and Fast DDS before rclpy starts
``parameters``  a parameter object as the parameters of a node
``qos``         the named qualities of service
``simulator``   the node that drives any Machine through time
``pairing``     messages of two topics that belong together
``silence``     a warning when a topic has nothing to say
``paired_controller``, ``paired_samples``
                controllers that answer samples of two halves
``clock``       time for time-outs
``stamps``      times as messages, integers and seconds
``diagnostics`` one component's line in /diagnostics
``remote``      what a command says to nodes that run
``testing``     nodes under test and a driver in one process
"""
