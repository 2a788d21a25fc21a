"""
Nodes of flexible links: the plant, and the digital controllers of its motors.

Plant: ``joint_command`` in, ``joint_states`` and ``shape`` out. Cycles of the controllers are
counted by the stamps, so that in lockstep the torques are those of the library.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from typing import Any

from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from longreach_dynamics.parameters import quantity
from longreach_links.description import thickness
from longreach_links.spec import LINKS, LinksOptions
from longreach_links.visuals import aims, bent_links, lumped_places, sides
from longreach_node.conversions import joint_values
from longreach_node.markers import (
    BLUE,
    BROWN,
    GREY,
    RED,
    line_marker,
    sphere_marker,
    triangles_marker,
)
from longreach_node.plant_node import PlantNode as Base
from longreach_node.simulator_parameters import (
    CycleParameters,
    DrawingParameters,
    MachineParameters,
)
from longreach_node.trajectory_controller import TrajectoryControllerNode
from longreach_symbolic.arm import arm_of
from longreach_symbolic.follower import LinksFollower, Measurement
from longreach_symbolic.links import Links
from longreach_symbolic.machine import (
    BRAKES,
    Controller,
    FlexibleLinks,
    State,
    Torques,
    joint_names,
)
from longreach_symbolic.scenario import Scenario

# Points of each link, and of the path of the scenario.
_POINTS, _AIMS = 13, 121
# Radius of the heaviest lumped mass, width of the traces, over the width of links.
_LUMP, _TRACE = 1.5, 0.2


@dataclasses.dataclass(frozen=True)
class PlantParameters(CycleParameters, MachineParameters, DrawingParameters, LinksOptions):
    """Parameters of the plant node."""

    trail: float = quantity(
        'length of the trail of the end', 's', at_least=0.0, at_most=3600.0, default=10.0
    )


class PlantNode(Base[State, Torques]):
    """Flexible links, simulated; until they are commanded they follow their scenario."""

    spec, settings_type = LINKS, PlantParameters
    command_type, command_topic = JointState, 'joint_command'
    drawing_topic = 'shape'
    described: Links
    machine: FlexibleLinks

    def make_machine(self, scenario: Scenario, settings: PlantParameters) -> FlexibleLinks:
        """Return the links."""
        links = self.described
        self.get_logger().info(
            f'{len(links.links)} links, {links.modes} functions each: the first start compiles'
            ' their equations, which takes a minute or more; later ones load them'
        )
        self._aims = aims(scenario, links, _AIMS).tolist()
        machine: FlexibleLinks = super().make_machine(scenario, settings)
        return machine

    def safe_command(self) -> Torques:
        """Return the command that brakes the links."""
        return BRAKES

    def add_topics(self, settings: PlantParameters) -> None:  # noqa: ARG002
        """Name the motors."""
        links = self.described
        self._motors = joint_names(links)[len(links.links) : 2 * len(links.links)]
        # The sample that was drawn last.
        self._latest = -math.inf

    def drawing(self, header: Header) -> MarkerArray:
        """Return the bent links, their lumped masses, the way of the end and the desired one."""
        links, width = self.described, thickness(self.described)
        q = self.state.x[: links.size]
        shapes = bent_links(links, q, _POINTS)
        end = shapes[-1, -1].tolist()
        apart = self.drawn_every
        # It begins anew where nobody saw the way. As many points as ever, so that viewers move
        # them and make nothing anew.
        if not 0 <= self.sample - self._latest <= apart:
            points = max(1, round(self.settings.trail * self.settings.publish_rate / apart))
            self._trail = deque([end] * points, points)
        self._trail.append(end)
        self._latest = self.sample
        heaviest = max(link.lumped_mass for link in links.links)
        markers: list[Marker] = [
            triangles_marker(f'link_{i}', sides(points, width).tolist(), BLUE, header)
            for i, points in enumerate(shapes, 1)
        ]
        for i, (link, place) in enumerate(
            zip(links.links, lumped_places(links, q).tolist(), strict=True), 1
        ):
            if link.lumped_mass:
                radius = _LUMP * width * (link.lumped_mass / heaviest) ** (1.0 / 3.0)
                markers.append(sphere_marker(f'lumped_mass_{i}', place, radius, BROWN, header))
        markers.append(line_marker('desired', self._aims, GREY, header, _TRACE * width))
        markers.append(line_marker('trail', self._trail, RED, header, _TRACE * width))
        return MarkerArray(markers=markers)

    def command_of(self, message: JointState) -> Torques:
        """Return torques; motors that are not named get none."""
        found = joint_values('joint_command', 'N m', message.name, message.effort, self._motors)
        return tuple(found.get(name, 0.0) for name in self._motors)


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(MachineParameters, LinksOptions):
    """Parameters of the controller node."""

    lockstep: bool = quantity('the plant waits for each command', default=False)


class ControllerNode(TrajectoryControllerNode[JointState]):
    """PD control of the motors, with the torques that hold the weight."""

    spec, settings_type = LINKS, ControllerNodeParameters
    command_type, command_topic, hydraulics = JointState, 'joint_command', False
    follower: LinksFollower

    def make_follower(
        self, machine: Links, scenario: Scenario | None, settings: Any
    ) -> LinksFollower:
        """Return the controllers of the arm."""
        self._motors = joint_names(machine)[len(machine.links) : 2 * len(machine.links)]
        planned = LINKS.rest(machine) if scenario is None else scenario
        return LinksFollower(Controller(machine, arm_of(machine, settings.arm), planned))

    def measurement_of(self, joints: JointState, hydraulics: None) -> Measurement:
        """Return the measurements for a cycle."""
        return self.follower.measured(*self.messages.measured(joints, hydraulics))

    def message_of(self, command: Torques, header: Header) -> JointState:
        """Return torques as a message."""
        return JointState(header=header, name=self._motors, effort=command)
