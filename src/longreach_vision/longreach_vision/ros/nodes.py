"""The package's nodes as console scripts."""

from __future__ import annotations

import os

from longreach_node.entry import node_entry

# The tracker's many small matrix operations are several times slower with BLAS threads. BLAS reads
# this variable when NumPy is imported, which node_entry does later.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

# Nodes that publish images get a large shared memory segment.
_IMAGES = 'fastdds_images.xml'

camera = node_entry('longreach_vision.ros.camera_node:CameraNode', _IMAGES)
simulated = node_entry('longreach_vision.ros.camera_node:SimulatedNode', _IMAGES)
tracker = node_entry('longreach_vision.ros.tracker_node:TrackerNode')
video = node_entry('longreach_vision.ros.video_node:VideoNode', _IMAGES)
