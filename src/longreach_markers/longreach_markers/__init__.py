"""
Circular markers tracked by one to eight cameras, Henikl et al. (2015), section 4.2.

``camera`` is geometry, ``marker`` one marker in one image, ``tracking`` markers over time and
what they tell of the cameras, ``setup`` calibration and poses, ``io`` images; ``rig`` has cameras,
plane and markers. The README lists their modules.
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
