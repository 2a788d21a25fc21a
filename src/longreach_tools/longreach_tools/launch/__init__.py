"""
Launch files in XML: read, evaluated and run, where ROS 2 launch is not installed.

The steps are separate: ``_reader`` (XML to checked entities), ``_evaluate`` (entities and
arguments to a plan, nothing is started), ``_processes`` (a plan is run to its end). ``commands``
is the command ``longreach launch``, ``_real`` the way by an installed ROS 2 launch.
"""

from ._packages import find_launch_file
from ._survey import Argument, survey

__all__ = ['Argument', 'find_launch_file', 'survey']
