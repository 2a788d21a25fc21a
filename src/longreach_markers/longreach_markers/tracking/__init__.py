"""Markers over time: in one camera, in space, as a table, and what they tell of the cameras."""
