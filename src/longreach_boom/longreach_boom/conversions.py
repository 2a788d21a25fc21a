"""Conversions between objects of the library and messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from geometry_msgs.msg import Point, Vector3
from longreach_msgs.msg import HydraulicState, MarkerPositions, ValveCommand
from longreach_msgs.srv import AttachLoad
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from longreach_boom.follower import Measurement
from longreach_boom.hydraulic_state import Flows
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import HangingLoad
from longreach_boom.state import BoomCommand, StateParts
from longreach_boom.visuals import BeamShape, MarkerMotion
from longreach_node.hydraulic_messages import finite_values, hydraulic_state, spools_from_message

# Distance of coloured sides from those of the robot description [m].
_CLEARANCE = 0.02


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
    """Return both sides of bent beams; colours are red, green, blue in 0..1 for each point."""
    markers = []
    for shape, own in zip(shapes, colours, strict=True):
        marker = Marker(header=header, ns=shape.name, type=Marker.TRIANGLE_LIST, action=Marker.ADD)
        marker.pose.orientation.w = 1.0
        marker.scale = Vector3(x=1.0, y=1.0, z=1.0)
        marker.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
        ends = [ColorRGBA(r=r, g=g, b=b, a=1.0) for r, g, b in own.tolist()]
        points, colors = [], []
        # In front of the faces of the beams in the robot description, which would hide them.
        for y in (-shape.side - _CLEARANCE, shape.side + _CLEARANCE):
            low, high = ([Point(x=x, y=y, z=z) for x, z in edge] for edge in shape.edges.tolist())
            for k in range(len(ends) - 1):
                points += [low[k], low[k + 1], high[k], high[k], low[k + 1], high[k + 1]]
                colors += [ends[k], ends[k + 1], ends[k], ends[k], ends[k + 1], ends[k + 1]]
        marker.points, marker.colors = points, colors
        markers.append(marker)
    return MarkerArray(markers=markers)


def command_from_message(message: ValveCommand, names: Sequence[str]) -> BoomCommand:
    """Return a command; valves of cylinders that are not in the message are closed."""
    return BoomCommand(spools_from_message(message, names, 'valve_command'))


def load_from_request(request: AttachLoad.Request) -> HangingLoad:
    """Return the load that is to be attached; InputError for an impossible mass or place."""
    # A field that is not set is -1, the default in the service definition.
    at_tip = math.isnan(request.position) or request.position == -1.0
    position = None if at_tip else request.position
    return HangingLoad(mass=request.mass, beam=request.beam, position=position)


def measurement_from_messages(
    boom: BoomParameters, joints: JointState, hydraulics: HydraulicState
) -> Measurement:
    """Return the measurements for a cycle; InputError for what is missing or not finite."""
    cylinders = [cylinder.name for cylinder in boom.cylinders]
    beams = [f'{beam.name}_joint' for beam in boom.beams]
    return Measurement(
        finite_values('joint_states', joints.name, joints.position, beams),
        finite_values('joint_states', joints.name, joints.position, cylinders),
        finite_values('hydraulics', hydraulics.name, hydraulics.head_pressure, cylinders),
        finite_values('hydraulics', hydraulics.name, hydraulics.rod_pressure, cylinders),
    )
