"""
A flexible boom with hydraulic cylinders: the concrete pump of Henikl et al. (2015).
"""
