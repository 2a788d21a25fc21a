"""
Numerics shared by the machines of Longreach, free of ROS.

``errors``      the two errors that are raised on purpose
``parameters``  parameter objects with units and bounds, and the YAML files they come from
``machine``     the protocol that the simulator node drives
``kernels``     compiled functions with a cache that notices every change
``stepping``    adaptive integration of smooth intervals, stiff and not
``resources``   where installed files are found
"""
