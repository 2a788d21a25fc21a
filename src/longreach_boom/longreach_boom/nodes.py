"""
Nodes of the boom: the plant, and the position controller of its joints.

Plant: ``valve_command`` in; joints, hydraulics, strain and markers out. In lockstep the
controller's commands equal those of a simulation by the library.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, ClassVar

from geometry_msgs.msg import Point, Vector3
from longreach_msgs.msg import MarkerPositions, StrainState, ValveCommand
from longreach_msgs.srv import AttachLoad
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import MarkerArray

from longreach_boom.follower import BoomFollower, Measurement
from longreach_boom.machine import SAMPLE_TIME, STEP, Boom
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors_node import SensorTopics
from longreach_boom.simulation import warm_up
from longreach_boom.spec import BOOM
from longreach_boom.state import BoomState
from longreach_boom.strain import strains
from longreach_boom.visuals import BeamShape, marker_positions, shape_of, stress_colours
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import quantity
from longreach_machine.machine import Spools
from longreach_node.markers import WHITE, triangles_marker
from longreach_node.plant_node import PlantNode as Base
from longreach_node.simulator_parameters import DrawnParameters, MachineParameters
from longreach_node.trajectory_controller import TrajectoryControllerNode

# Points along each beam of the shape: sufficient for a smooth line, and cheap at 30 Hz.
_POINTS = 12
# Distance of coloured sides from those of the robot description, which would hide them [m].
_CLEARANCE = 0.02


@dataclasses.dataclass(frozen=True)
class PlantParameters(DrawnParameters):
    """Parameters of the plant node."""

    sensors: str = quantity(
        'sensor file; default (ideal) or typical for the installed ones; empty for no sensors',
        '',
        default='',
    )
    sensor_noise: float = quantity(
        'factor on the noise of all sensors',
        at_least=0.0,
        at_most=1e3,
        default=1.0,
        read_only=False,
    )
    watcher: str = quantity(
        'name of a node that subscribes to marker_truth, such as simulated cameras: the first'
        ' sample waits for it, and the plant ends after it; empty for none',
        '',
        default='',
    )
    step: float = quantity(
        'length of a simulation step; 0: the longest that is stable and divides a sample',
        's',
        at_least=0.0,
        default=STEP,
    )
    publish_rate: float = quantity(
        'samples per second of simulation', 'Hz', above=0.0, at_most=1e5, default=200.0
    )


class PlantNode(Base[BoomState, Spools]):
    """Simulation of the boom as a node."""

    spec, settings_type = BOOM, PlantParameters
    drawing_topic = 'shape'
    described: BoomParameters
    machine: Boom
    _sensors: SensorTopics | None = None

    def add_topics(self, settings: PlantParameters) -> None:
        """Create the publishers of strains, markers and sensors."""
        warm_up()
        boom, self._friction = self.described, self.machine.scenario.friction
        self._beams = [beam.name for beam in boom.beams]
        self._strain = self.add_output(StrainState, 'strain', settings)
        self._markers = self.add_output(MarkerPositions, 'marker_truth', settings)
        if settings.watcher:
            self.watchers = [(self._markers, settings.watcher)]
        if settings.sensors:
            self._sensors = SensorTopics(self, boom, settings, self._friction)

    def waits(self, scenario: Scenario) -> bool:
        """Return whether there is a trajectory to be followed from the first sample on."""
        return bool(scenario.trajectory)

    def on_settings(self, settings: PlantParameters) -> None:
        """Apply parameters that were set at run time."""
        if self._sensors is not None:
            self._sensors.set_noise(settings.sensor_noise)

    def publish_own(self, header: Header) -> None:
        """Publish strains, markers and sensors."""
        if self.is_needed(self._strain):
            shown = strains(self.described, self.state, self._friction)
            strain = StrainState(header=header, name=self._beams, strain=shown.tolist())
            self._strain.publish(strain)
        if self.is_needed(self._markers):
            motion = marker_positions(self.described, self.state)
            message = MarkerPositions(header=header, name=list(motion.names))
            message.position = [Point(x=x, y=y, z=z) for x, y, z in motion.positions.tolist()]
            message.velocity = [Vector3(x=x, y=y, z=z) for x, y, z in motion.velocities.tolist()]
            self._markers.publish(message)
        if self._sensors is not None:
            self._sensors.publish(self.state, self.sample, header)

    def drawing(self, header: Header) -> MarkerArray:
        """Return the bent beams with their stress."""
        shapes = shape_of(self.described, self.state, _POINTS, self._friction)
        return shape_to_message(shapes, header)

    def carried(self) -> float:
        """Return the mass of all loads that hang on the boom [kg]."""
        concrete = self.machine.concrete
        return sum((load.mass for load in self.state.loads if load not in concrete), 0.0)

    def attached(self, request: AttachLoad.Request) -> tuple[BoomState, str]:
        """Return the state with a load attached to the boom."""
        # A field that is not set is -1, the default in the service definition.
        at_tip = math.isnan(request.position) or request.position == -1.0
        position = None if at_tip else request.position
        load = HangingLoad(request.mass, request.beam, position).on(self.described)
        return self.machine.attach(self.state, load), (
            f'{load.mass:g} kg on {self._beams[load.beam]} at {load.position:g} m'
            f' from {self.time:g} s on'
        )


def shape_to_message(shapes: Iterable[BeamShape], header: Header) -> MarkerArray:
    """Return both sides of bent beams, in the colours of their stress."""
    markers = []
    for shape in shapes:
        shades = stress_colours(shape.stress).tolist()
        ends = [ColorRGBA(r=r, g=g, b=b, a=1.0) for r, g, b in shades]
        corners, colors = [], []
        for y in (-shape.side - _CLEARANCE, shape.side + _CLEARANCE):
            low, high = ([(x, y, z) for x, z in edge] for edge in shape.edges.tolist())
            for k in range(len(ends) - 1):
                corners += [low[k], low[k + 1], high[k], high[k], low[k + 1], high[k + 1]]
                colors += [ends[k], ends[k + 1], ends[k], ends[k], ends[k + 1], ends[k + 1]]
        markers.append(triangles_marker(shape.name, corners, WHITE, header, colors))
    return MarkerArray(markers=markers)


@dataclasses.dataclass(frozen=True)
class SampleParameters(MachineParameters):
    """Parameters of every controller of the boom."""

    sample_rate: float = quantity(
        "samples per second of simulation, the plant's publish_rate",
        'Hz',
        at_least=10.0,
        at_most=1e5,
        default=1.0 / SAMPLE_TIME,
    )
    lockstep: bool = quantity('the plant waits for each command', default=False)


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(SampleParameters):
    """Parameters of the controller node."""

    proportional_gain: float = quantity(
        "piston velocity per error; -1: the boom file's",
        '1/s',
        at_least=-1.0,
        at_most=50.0,
        default=-1.0,
        read_only=False,
    )
    integral_gain: float = quantity(
        "rate of piston velocity per error; -1: the boom file's",
        '1/s^2',
        at_least=-1.0,
        at_most=500.0,
        default=-1.0,
        read_only=False,
    )

    def check(self) -> None:
        """Raise InputError for a negative gain other than -1."""
        super().check()
        for name in ('proportional_gain', 'integral_gain'):
            gain = getattr(self, name)
            if gain < 0.0 and gain != -1.0:
                raise InputError(f'{name} = {gain}, allowed: -1, or from 0 on')

    def gains(self) -> dict[str, float]:
        """Return the gains that replace those of the boom file."""
        given = {name: getattr(self, name) for name in ('proportional_gain', 'integral_gain')}
        return {name: gain for name, gain in given.items() if gain >= 0.0}


class ControllerNode(TrajectoryControllerNode[ValveCommand]):
    """Joint position control of the boom."""

    spec, joint_suffix, measurement = BOOM, '_joint', Measurement
    settings_type: ClassVar[type[SampleParameters]] = ControllerNodeParameters

    def make_follower(
        self, machine: BoomParameters, scenario: Scenario | None, settings: Any
    ) -> BoomFollower:
        """Return the controller, with gains of the settings in place of the file's."""
        boom = machine.replace(controller=machine.controller.replace(**settings.gains()))
        return BoomFollower(boom, scenario, 1.0 / settings.sample_rate)
