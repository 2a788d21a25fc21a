"""Simulated cameras: scene, drawing of images, sequences of images."""
