"""
Damping of the boom's vibrations: controllers, and a benchmark of them; free of ROS.

``plant``, ``controller``               the plant from oil to vibration; the base of controllers
``shaping``, ``pressure``, ``modal``, ``predictive``
                                        four controllers
``tip``                                 a joystick moves the tip
``cases``, ``benchmark``, ``results``   the benchmark
``commands``                            ``longreach benchmark``
``follower``, ``nodes``                 the same over ROS
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
