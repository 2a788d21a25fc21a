"""Chains of flexible links as ROS 2 nodes; their library is :mod:`longreach_symbolic.machine`."""
