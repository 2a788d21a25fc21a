"""
What is drawn of a harvester in RViz: the forces of its cylinders, the swing of its head.

Places and vectors are x, y, z in the frame ``harvester_base``.
"""

from __future__ import annotations

import cmath
from typing import NamedTuple

import numpy as np

from longreach_harvester.description import ROD_ANGLES, drawn_cylinders
from longreach_harvester.kinematics import cylinder_place, tip_at
from longreach_harvester.parameters import JOINTS, HarvesterParameters

# Length of an arrow over its force [m/N]: 1 m for 100 kN.
FORCE_SCALE = 1e-5
# Length of the lines that show the swing of a head [m].
_HANGING = 2.0

Place = tuple[float, float, float]


class Arrow(NamedTuple):
    """A force on a link, drawn from its point of application."""

    name: str
    start: Place  # [m]
    vector: Place  # FORCE_SCALE times the force [m]


def cylinder_forces(
    p: HarvesterParameters, angles: np.ndarray, forces: np.ndarray
) -> tuple[Arrow, ...]:
    """Return the forces (3,) [N] of drawn cylinders on the pins of their rods."""
    swing, boom, _ = angles.tolist()
    pivot = complex(p.swing.offset, 0.0)
    # The frame that a barrel is on, in the plane of the machine: its origin and direction.
    frames = {
        'boom': (pivot, 1.0 + 0.0j),
        'stick': (pivot + cmath.rect(p.boom.length, boom), cmath.rect(1.0, boom)),
    }
    found = []
    for name in drawn_cylinders(p):
        i, (origin, turned) = JOINTS.index(name), frames[name]
        place = cylinder_place(p.actuators[i], float(angles[i]), ROD_ANGLES[name])  # type: ignore[arg-type]
        along = turned * cmath.rect(1.0, place.angle)
        rod = origin + turned * place.barrel + place.length * along
        force = FORCE_SCALE * float(forces[i]) * along
        found.append(Arrow(name, _in_space(rod, swing), _in_space(force, swing)))
    return tuple(found)


def head_lines(
    p: HarvesterParameters, angles: np.ndarray, head: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return lines (2, 3) [m] from the tip: straight down, and along a head that hangs."""
    tip, swing = tip_at(p, angles), float(angles[0])
    pitch, roll = float(angles[1] + angles[2] + head[0]), float(head[1])
    forward = np.array([np.cos(swing), np.sin(swing), 0.0])
    left, up = np.array([-np.sin(swing), np.cos(swing), 0.0]), np.array([0.0, 0.0, 1.0])
    along = np.cos(roll) * (np.cos(pitch) * forward + np.sin(pitch) * up) + np.sin(roll) * left
    return np.array([tip, tip - _HANGING * up]), np.array([tip, tip + _HANGING * along])


def _in_space(place: complex, swing: float) -> Place:
    """Return a place in the plane of the machine, x and z as a complex number, in space."""
    return (place.real * float(np.cos(swing)), place.real * float(np.sin(swing)), place.imag)
