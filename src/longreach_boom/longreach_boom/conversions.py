"""Between the library's objects and messages; nothing is calculated here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from geometry_msgs.msg import Point, Vector3
from longreach_msgs.msg import (
    HydraulicState,
    InclinationState,
    MarkerPositions,
    StrainState,
    ValveCommand,
)
from longreach_msgs.srv import AttachLoad
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA, Header
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

from longreach_boom.guidance import Measurement, Order
from longreach_boom.hydraulic_state import Flows
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import HangingLoad
from longreach_boom.state import BoomCommand, StateParts
from longreach_boom.visuals import BeamShape, MarkerMotion
from longreach_dynamics.errors import InputError
from longreach_node.hydraulic_messages import (
    finite_values,
    hydraulic_state,
    named_values,
    spools_from_message,
)
from longreach_node.stamps import nanoseconds_of

__all__ = [
    'MOST_POINTS',
    'check_size',
    'command_from_message',
    'encoders_to_message',
    'hydraulics_to_message',
    'inclination_to_message',
    'load_from_request',
    'markers_to_message',
    'measurement_from_messages',
    'order_from_message',
    'positions_from_message',
    'shape_to_message',
    'strains_to_message',
]

# Distance of coloured sides from those of the robot description [m].
_CLEARANCE = 0.02
# A trajectory sent by hand has at most so many points, and bytes: positions, velocities,
# accelerations and efforts of four joints and the time take some 200 bytes a point.
MOST_POINTS = 5000
_MOST_BYTES = 400 * MOST_POINTS


def hydraulics_to_message(
    names: list[str], parts: StateParts, flows: Flows, header: Header
) -> HydraulicState:
    """Return pressures, flows and spool positions of one state, by the cylinders' names."""
    return hydraulic_state(
        names,
        parts.head_pressures,
        parts.rod_pressures,
        header,
        flows.head.tolist(),
        flows.rod.tolist(),
        parts.spools.tolist(),
    )


def encoders_to_message(names: list[str], pistons: np.ndarray, header: Header) -> JointState:
    """Return the piston positions [m] that encoders show, by the cylinders' names."""
    return JointState(header=header, name=names, position=pistons.tolist())


def strains_to_message(names: list[str], strains: np.ndarray, header: Header) -> StrainState:
    """Return what strain gauges show, by the beams' names."""
    return StrainState(header=header, name=names, strain=strains.tolist())


def inclination_to_message(
    names: list[str], root: np.ndarray, tip: np.ndarray, header: Header
) -> InclinationState:
    """Return what the inclination sensors of the beams show [rad]."""
    return InclinationState(header=header, name=names, root=root.tolist(), tip=tip.tolist())


def markers_to_message(motion: MarkerMotion, header: Header) -> MarkerPositions:
    """Return positions [m] and velocities [m/s] of markers."""
    return MarkerPositions(
        header=header,
        name=list(motion.names),
        position=[Point(x=x, y=y, z=z) for x, y, z in motion.positions.tolist()],
        velocity=[Vector3(x=x, y=y, z=z) for x, y, z in motion.velocities.tolist()],
    )


def shape_to_message(
    shapes: Iterable[BeamShape], colours: Iterable[np.ndarray], header: Header
) -> MarkerArray:
    """Return both sides of bent beams; colours are red, green, blue in 0..1 for each place."""
    markers = []
    for shape, own in zip(shapes, colours, strict=True):
        marker = Marker(header=header, ns=shape.name, type=Marker.TRIANGLE_LIST, action=Marker.ADD)
        marker.pose.orientation.w = 1.0
        marker.scale = Vector3(x=1.0, y=1.0, z=1.0)
        marker.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
        ends = [ColorRGBA(r=r, g=g, b=b, a=1.0) for r, g, b in own.tolist()]
        points, colors = [], []
        # Before the faces of the beams in the robot description, which would hide them.
        for y in (-shape.side - _CLEARANCE, shape.side + _CLEARANCE):
            low, high = ([Point(x=x, y=y, z=z) for x, z in edge] for edge in shape.edges.tolist())
            for k in range(len(ends) - 1):
                points += [low[k], low[k + 1], high[k], high[k], low[k + 1], high[k + 1]]
                colors += [ends[k], ends[k + 1], ends[k], ends[k], ends[k + 1], ends[k + 1]]
        marker.points, marker.colors = points, colors
        markers.append(marker)
    return MarkerArray(markers=markers)


def command_from_message(message: ValveCommand, names: Sequence[str]) -> BoomCommand:
    """
    Return a command; the valves of cylinders that it leaves out close.

    Parameters and errors are those of
    :func:`longreach_node.hydraulic_messages.values_from_command`.
    """
    return BoomCommand(spools_from_message(message, names, 'valve_command'))


def load_from_request(request: AttachLoad.Request) -> HangingLoad:
    """
    Return the load that is to be attached.

    Raises
    ------
    InputError
        For an impossible mass or place.
    """
    # What is not set is -1, the default of the service's definition.
    at_tip = math.isnan(request.position) or request.position == -1.0
    position = None if at_tip else request.position
    return HangingLoad(mass=request.mass, beam=request.beam, position=position)


def measurement_from_messages(
    boom: BoomParameters, joints: JointState, hydraulics: HydraulicState
) -> Measurement:
    """
    Return what the controller knows of the boom.

    Raises
    ------
    InputError
        When a joint or cylinder is missing, or a number is not finite.
    """
    cylinders = [cylinder.name for cylinder in boom.cylinders]
    beams = [f'{beam.name}_joint' for beam in boom.beams]
    return Measurement(
        finite_values('joint_states', joints.name, joints.position, beams),
        finite_values('joint_states', joints.name, joints.position, cylinders),
        finite_values('hydraulics', hydraulics.name, hydraulics.head_pressure, cylinders),
        finite_values('hydraulics', hydraulics.name, hydraulics.rod_pressure, cylinders),
    )


def check_size(message: bytes) -> None:
    """
    Check the size of a serialized trajectory, before it takes seconds to read.

    Raises
    ------
    InputError
        When it is larger than ``MOST_POINTS`` points can be.
    """
    if len(message) > _MOST_BYTES:
        raise InputError(
            f'the trajectory has {len(message):,} bytes, allowed: {_MOST_BYTES:,}, for up to'
            f' {MOST_POINTS} points; send fewer points'
        )


def order_from_message(message: JointTrajectory, boom: BoomParameters) -> Order:
    """
    Return a trajectory that was sent by hand.

    With velocities in all points the joints pass them with these; without, they rest in each.
    Accelerations and efforts are not used.

    Joints are called as beams, or as in joint_states; without names they are all, in order.

    Raises
    ------
    InputError
        For too many points, an unknown or doubled joint, or a point without a position for each.
    """
    if len(message.points) > MOST_POINTS:
        raise InputError(
            f'the trajectory has {len(message.points)} points, allowed: up to {MOST_POINTS}; send'
            ' fewer points'
        )
    beams = [beam.name for beam in boom.beams]
    names = [name.removesuffix('_joint') for name in message.joint_names] or beams
    for index, name in enumerate(names):
        if name not in beams or name in names[:index]:
            raise InputError(
                f'trajectory has the joint {message.joint_names[index]!r}, allowed, each once:'
                f' {" | ".join(f"{beam}_joint" for beam in beams)}'
            )
    for index, point in enumerate(message.points):
        if len(point.positions) != len(names):
            raise InputError(
                f'trajectory has {len(point.positions)} positions in point {index}, allowed:'
                f' {len(names)}, one for each joint'
            )
    velocities = {len(point.velocities) for point in message.points}
    if not velocities <= {0} and velocities != {len(names)}:
        raise InputError(
            f'trajectory has {sorted(velocities)} velocities in its points, allowed: none at all,'
            f' or {len(names)} in each'
        )
    rates = None
    if velocities == {len(names)}:
        rates = [list(point.velocities) for point in message.points]
    return Order(
        joints=tuple(beams.index(name) for name in names),
        times=[nanoseconds_of(point.time_from_start) / 1e9 for point in message.points],
        angles=[list(point.positions) for point in message.points],
        start=nanoseconds_of(message.header.stamp) / 1e9,
        rates=rates,
    )


def positions_from_message(message: JointState, boom: BoomParameters) -> dict[int, float]:
    """
    Return joint positions that are asked for [rad] by the joints' index.

    Raises
    ------
    InputError
        For an unknown or doubled joint, a wrong number of positions, or one that is not finite.
    """
    joints = [f'{beam.name}_joint' for beam in boom.beams]
    told = list(message.name) or joints
    positions = named_values('joint_position', 'joint', told, message.position, joints)
    for name, position in positions.items():
        if not math.isfinite(position):
            raise InputError(f'joint_position for {name} = {position} rad, allowed: finite')
    return {joints.index(name): position for name, position in positions.items()}
