"""A pendulum on a hydraulic cylinder."""
