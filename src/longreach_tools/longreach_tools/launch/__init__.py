"""Launch files in XML: read, evaluated and run, without ROS 2 launch."""

from ._evaluate import Argument, survey
from ._packages import find_launch_file

__all__ = ['Argument', 'find_launch_file', 'survey']
