"""
Launch files in XML: read, evaluated and run, where ROS 2 launch is not installed.

``_file`` reads XML, ``_evaluate`` makes processes of it, which ``_processes`` runs; ``_real`` is
the way by an installed ROS 2 launch.
"""

from ._evaluate import Argument, survey
from ._packages import find_launch_file

__all__ = ['Argument', 'find_launch_file', 'survey']
