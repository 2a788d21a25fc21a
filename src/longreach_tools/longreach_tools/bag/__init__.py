"""
Recordings of ROS 2 topics (rosbag2 files: mcap, sqlite3), based on the library rosbags.

``longreach bag record|play|info|recover`` is built on this package. Programs read a recording with

>>> for topic, time, message in read_bag('out/demo/bag', ['/crane/sensors']):
...     print(time, message.car_position)

This does not need a ROS installation: a recording contains the definitions of its messages.
"""

from __future__ import annotations

from ._reading import bag_typestore, read_bag
from ._stamps import is_wall_clock
from ._storage import Bag, open_bag
from ._subscriptions import Subscriptions
from ._topics import Topic, absolute_name, checked_name
from ._writer import BagWriter, recover

__all__ = [
    'Bag',
    'BagWriter',
    'Subscriptions',
    'Topic',
    'absolute_name',
    'bag_typestore',
    'checked_name',
    'is_wall_clock',
    'open_bag',
    'read_bag',
    'recover',
]
