"""See machines in a browser: live topics and recordings, in 3D and as plots."""
