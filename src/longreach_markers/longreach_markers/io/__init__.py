"""Images and tracks from and to files, videos, bags and cameras, without ROS."""
