"""Conversions between the library's objects and messages."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from geometry_msgs.msg import Point, Vector3, WrenchStamped
from longreach_msgs.msg import HydraulicState, PinForces, Terrain, ValveCommand
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from longreach_dynamics.errors import check_within
from longreach_excavator.columns import REACTIONS
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import CLOSED, ExcavatorCommand
from longreach_excavator.motion import HEAD, SIZE, SOIL, SPOOL
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.terrain import FIRM, VOLUME, Ground
from longreach_excavator.visuals import soil_body
from longreach_node.hydraulic_messages import hydraulic_state, values_from_command
from longreach_node.joint_messages import joint_values
from longreach_node.markers import (
    BLUE,
    BROWN,
    RED,
    SHORTEST,
    arrow_marker,
    line_marker,
    triangles_marker,
)

# Names in reactions: joints, cylinders, connecting rods, as in columns.OBSERVED.
PINS = (*REACTIONS, *CYLINDERS, 'lk', 'pk')

_JOINTS = tuple(f'{name}_joint' for name in CYLINDERS)
# Largest commanded force of a cylinder over its force at the supply pressure.
_STRONGEST = 2.0


def hydraulics_to_message(
    y: np.ndarray, observed: Mapping[str, float], vapour: float, header: Header
) -> HydraulicState:
    """Return pressures, at least the vapour pressure [Pa], flows and spools of one state."""
    head, rod = np.maximum(np.split(y[HEAD:SPOOL], 2), vapour)
    into, out = (
        [observed[f'{side}_flow_{name}'] for name in CYLINDERS] for side in ('head', 'rod')
    )
    return hydraulic_state(CYLINDERS, head, rod, header, into, out, y[SPOOL:SOIL])


def reactions_to_message(observed: Mapping[str, float], header: Header) -> PinForces:
    """Return the forces of joints, cylinders and rods [N], in the axes of excavator_base."""
    return PinForces(
        header=header,
        name=list(PINS),
        force=[Vector3(x=observed[f'{pin}_x'], z=observed[f'{pin}_z']) for pin in PINS],
    )


def soil_force_to_message(observed: Mapping[str, float], header: Header) -> WrenchStamped:
    """Return the soil's force on the tooth [N], in the axes of excavator_base."""
    # The torque of a wrench is about the origin of its frame [N m]: that of the force at the
    # tooth, plus the moment about the tooth where the ground presses on the bucket's back.
    fx, fz = observed['soil_x'], observed['soil_z']
    message = WrenchStamped(header=header)
    message.wrench.force = Vector3(x=fx, z=fz)
    message.wrench.torque.y = observed['tip_z'] * fx - observed['tip_x'] * fz
    # Positive moments lift: they turn x towards z, against the right hand about y.
    message.wrench.torque.y -= observed['soil_moment']
    return message


def terrain_to_message(ground: Ground, y: np.ndarray, header: Header) -> Terrain:
    """Return the ground and the soil in the bucket of a state; ``ground`` has cells."""
    middle = SIZE + FIRM + ground.cells
    volume = float(y[SIZE + VOLUME])
    return Terrain(
        header=header,
        start=ground.start,
        cell=ground.cell,
        firm=y[SIZE + FIRM : middle].tolist(),
        loose=y[middle:].tolist(),
        bucket_volume=volume,
        bucket_mass=ground.density * volume,
    )


def forces_to_message(
    arrows: Mapping[str, tuple[complex, complex]],
    soil: np.ndarray,
    header: Header,
    load: tuple[complex, float, float] | None = None,
) -> MarkerArray:
    """Return arrows, the soil's line (points, 2), and its load: centre, diameter, width [m]."""
    markers = [
        arrow_marker(
            name,
            (start.real, 0.0, start.imag),
            (vector.real, 0.0, vector.imag),
            RED if name == 'soil' else BLUE,
            header,
        )
        for name, (start, vector) in arrows.items()
    ]
    if len(soil):
        if load is None:
            # Soil that is not cut would hide the bucket.
            line = [(x, 0.0, z) for x, z in soil.tolist()]
            markers.append(line_marker('surface', line, BROWN, header))
        else:
            markers.append(triangles_marker('ground', soil_body(soil).tolist(), BROWN, header))
    if load is not None:
        middle, diameter, width = load
        body = Marker(header=header, ns='load', type=Marker.CYLINDER)
        body.action = Marker.ADD if diameter >= SHORTEST else Marker.DELETE
        body.pose.position = Point(x=middle.real, z=middle.imag)
        # Its axis is across the plane.
        body.pose.orientation.x = body.pose.orientation.w = math.sqrt(0.5)
        body.scale = Vector3(x=diameter, y=diameter, z=width)
        body.color = BROWN
        markers.append(body)
    return MarkerArray(markers=markers)


def command_from_message(
    message: ValveCommand, excavator: ExcavatorParameters
) -> ExcavatorCommand:
    """Return a command; cylinders that it leaves out keep their oil, and their valves close."""
    spools, forces = values_from_command(message, CYLINDERS, 'cylinder_command', forces=True)
    for cylinder in excavator.cylinders:
        most = _STRONGEST * cylinder.head_area * excavator.oil.supply_pressure
        force = forces.get(cylinder.name, 0.0)
        check_within(f'cylinder_command for {cylinder.name}', force, f'[{-most}, {most}] N')
    if forces:
        return ExcavatorCommand(CLOSED.spools, tuple(forces.get(name) for name in CYLINDERS))
    return ExcavatorCommand(tuple(spools.get(name, 0.0) for name in CYLINDERS))


def rates_from_message(message: JointState) -> tuple[float, ...]:
    """Return the commanded rates [rad/s] of boom, arm and bucket; 0 for those left out."""
    rates = joint_values('joint_velocity', 'rad/s', message.name, message.velocity, _JOINTS)
    return tuple(rates.get(joint, 0.0) for joint in _JOINTS)
