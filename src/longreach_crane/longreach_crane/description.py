"""
The robot description of a crane, made from its crane file.

Frames: ``track`` is the root, x along the track, z up, at the height from which the cable hangs;
``car`` moves along it, ``cable`` swings about the car, ``load`` is at the end of the cable.
"""

from __future__ import annotations

from longreach_crane.parameters import CraneParameters
from longreach_machine import urdf

# Frame of the track; the position of the car is measured along its x axis.
ROOT_FRAME = 'track'

# Sizes [m]: the model has point masses.
_CAR: urdf.Vector = (0.6, 0.4, 0.3)
_LOAD: urdf.Vector = (0.5, 0.5, 0.5)
_CABLE_RADIUS = 0.02
# Height and width of the beam of the track; its height above the centre of the car; its length
# beyond each limit of the car [m].
_TRACK, _ABOVE, _BEYOND = 0.1, 0.2, 0.5
# URDF requires limits of force and speed, which the model does not have [N], [m/s].
_EFFORT, _SPEED = 160.0, 10.0


def robot_description(crane: CraneParameters, prefix: str = '') -> str:
    """Return the URDF of a crane, its frame names with a prefix."""
    root = urdf.new_robot('crane', ['steel', 'yellow', 'concrete'])
    length, low, high = crane.cable_length, crane.minimum_position, crane.maximum_position
    size = (high - low + 2.0 * _BEYOND, _TRACK, _TRACK)
    urdf.add_box(urdf.add_link(root, ROOT_FRAME), 'steel', size, ((low + high) / 2.0, 0.0, _ABOVE))
    car = urdf.add_link(root, 'car')
    urdf.add_inertial(car, crane.car_mass, (0.0, 0.0, 0.0), urdf.box_inertia(crane.car_mass, _CAR))
    urdf.add_box(car, 'yellow', _CAR, (0.0, 0.0, 0.0))
    limit = urdf.Limit(low, high, _EFFORT, _SPEED)
    urdf.add_joint(
        root, 'car_joint', 'prismatic', ROOT_FRAME, 'car', axis=urdf.FORWARD, limit=limit
    )
    cable = urdf.add_link(root, 'cable')
    urdf.add_cylinder(cable, 'steel', _CABLE_RADIUS, length, (0.0, 0.0, -length / 2.0))
    # A positive angle of the cable has the load at larger x.
    urdf.add_joint(root, 'cable_joint', 'continuous', 'car', 'cable', axis=urdf.LIFT)
    load = urdf.add_link(root, 'load')
    urdf.add_inertial(
        load, crane.load_mass, (0.0, 0.0, 0.0), urdf.box_inertia(crane.load_mass, _LOAD)
    )
    urdf.add_box(load, 'concrete', _LOAD, (0.0, 0.0, 0.0))
    urdf.add_joint(root, 'load_joint', 'fixed', 'cable', 'load', (0.0, 0.0, -length))
    return urdf.document(
        root,
        '`longreach crane urdf` makes this of a crane file. x along the track, z up; a positive\n'
        'angle of the cable has the load at larger x.',
        prefix,
    )
