"""Setting up cameras: printed markers, calibration, poses, and their accuracy."""
