"""
Launch files in XML: read, evaluated and run, without ROS 2 launch.

``_file`` reads XML, ``_evaluate`` makes processes of it, which ``_processes`` runs.
"""

from ._evaluate import Argument, survey
from ._packages import find_launch_file

__all__ = ['Argument', 'find_launch_file', 'survey']
