"""Cameras as geometry: lens, poses, planes, rays, and points in space from pixels."""
