"""Setting up cameras: calibration, poses, and their accuracy."""
