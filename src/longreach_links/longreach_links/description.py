"""
The robot description of flexible links, made from a file of links: their chords, as rigid links.

Frames: ``links_base`` is the root, on the first joint, x forward, z up; ``link_1``, .. have their
origins at the inner ends of the chords, x along them; ``tip`` is the end of the last one.
"""

from __future__ import annotations

import math

from longreach_machine import urdf
from longreach_symbolic.links import Link, Links

ROOT_FRAME, TIP_FRAME = 'links_base', 'tip'
# Width of links over the mean length of all; of motors over that of links.
_WIDTH, _MOTOR = 0.03, 3.0
_ACROSS = (math.pi / 2.0, 0.0, 0.0)


def thickness(links: Links) -> float:
    """Return how wide links are drawn [m]; files of links do not say it."""
    return _WIDTH * sum(link.length for link in links.links) / len(links.links)


def robot_description(links: Links, prefix: str = '') -> str:
    """Return the URDF of the chords, its frame names with a prefix."""
    root = urdf.new_robot('links', ('steel', 'dark'))
    width = thickness(links)
    motor = 0.5 * _MOTOR * width
    base = urdf.add_link(root, ROOT_FRAME)
    urdf.add_box(base, 'dark', (4.0 * motor, 4.0 * motor, motor), (0.0, 0.0, -2.0 * motor))
    parent, place = ROOT_FRAME, 0.0
    for i, link in enumerate(links.links, 1):
        name = f'link_{i}'
        body = urdf.add_link(root, name)
        urdf.add_cylinder(body, 'dark', motor, 2.0 * motor, (0.0, 0.0, 0.0), _ACROSS)
        urdf.add_box(body, 'steel', (link.length, width, width), (0.5 * link.length, 0.0, 0.0))
        mass, centre, moment = _rigid(link)
        moments = (mass * width**2 / 6.0, moment, moment)
        urdf.add_inertial(body, mass, (centre, 0.0, 0.0), moments)
        origin = (place, 0.0, 0.0)
        urdf.add_joint(root, f'joint_{i}', 'continuous', parent, name, origin, axis=urdf.LIFT)
        parent, place = name, link.length
    urdf.add_link(root, TIP_FRAME)
    urdf.add_joint(root, 'end', 'fixed', parent, TIP_FRAME, (place, 0.0, 0.0))
    return urdf.document(
        root,
        '`longreach links urdf` makes this of a file of links. x forward, z up; a positive angle\n'
        'lifts. Links are straight here; widths are not those of the beams.',
        prefix,
    )


def _rigid(link: Link) -> tuple[float, float, float]:
    """Return mass [kg], centre [m] and moment of inertia about it [kg m^2] of a straight link."""
    mass = link.mass + link.lumped_mass
    half, place = 0.5 * link.length, (1.0 + link.lumped_place) * link.length
    centre = (link.mass * half + link.lumped_mass * place) / mass
    moment = link.mass * (link.length**2 / 12.0 + (half - centre) ** 2)
    return mass, centre, moment + link.lumped_mass * (place - centre) ** 2
