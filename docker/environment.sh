# ROS 2 and the workspace, for the shell that sources this.
source "/opt/ros/$ROS_DISTRO/setup.bash"
source /longreach/install/setup.bash
