"""
Launch files in XML: read, evaluated and run, where ROS 2 launch is not installed.

The steps are separate: ``_file`` (XML to checked elements), ``_evaluate`` (elements and arguments
to processes, nothing is started), ``_processes`` (they are run to their end). ``commands`` is the
command ``longreach launch``, ``_real`` the way by an installed ROS 2 launch.
"""

from ._evaluate import Argument, survey
from ._packages import find_launch_file

__all__ = ['Argument', 'find_launch_file', 'survey']
