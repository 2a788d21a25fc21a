"""Flexible links as a node: takes ``joint_command``, gives ``joint_states`` and ``shape``."""

from __future__ import annotations

import dataclasses
from collections import deque

from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from longreach_dynamics.machine import BY_SCENARIO, ByScenario
from longreach_dynamics.parameters import quantity
from longreach_links.description import ROOT_FRAME, robot_description, thickness
from longreach_links.spec import LINKS, LinksOptions
from longreach_links.visuals import aims, bent_links, lumped_places, sides
from longreach_node.entry import node_entry
from longreach_node.joint_messages import joint_values
from longreach_node.machine_parameters import (
    DrawingParameters,
    MachineParameters,
    machine_and_scenario,
)
from longreach_node.markers import (
    BLUE,
    BROWN,
    GREY,
    RED,
    line_marker,
    sphere_marker,
    triangles_marker,
)
from longreach_node.parameters import declare
from longreach_node.simulator import SimulatorNode
from longreach_node.simulator_parameters import CycleParameters
from longreach_node.stamps import stamp_of
from longreach_symbolic.arm import arm_of
from longreach_symbolic.machine import BRAKES, FlexibleLinks, State, Torques, joint_names
from longreach_symbolic.scenario import resting_scenario

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


class PlantNode(SimulatorNode[State, Torques | ByScenario]):
    """Flexible links, simulated; until they are commanded they follow their scenario."""

    root_frame = ROOT_FRAME
    machine: FlexibleLinks

    def __init__(self) -> None:
        super().__init__('plant', safe_command=BRAKES)
        self.initial_command = BY_SCENARIO
        settings = declare(self, PlantParameters)
        self._links, scenario = machine_and_scenario(LINKS, settings, resting_scenario)
        links = self._links
        self.get_logger().info(
            f'{len(links.links)} links, {links.modes} functions each: the first start compiles'
            ' their equations, which takes a minute or more; later ones load them'
        )
        machine = FlexibleLinks(links, arm_of(links, settings.arm), scenario)
        # Compiled before time begins.
        machine.advance(machine.initial_state(), BY_SCENARIO, 0.0, machine.step)
        self._motors = joint_names(links)[len(links.links) : 2 * len(links.links)]
        self._trail: deque[list[float]] = deque(
            maxlen=max(1, round(settings.trail * settings.visual_rate))
        )
        self._aims = aims(scenario, links, _AIMS).tolist()
        self.draw_on('shape', settings.visual_rate, settings.latched)
        advice = 'start with controller:=false to command them by hand'
        self.take_commands(JointState, 'joint_command', 'the motors', advice)
        self.start(machine, settings.following(machine.step))
        if settings.lockstep:
            self.links.append((self._joints, self._commands))

    def robot_description(self, prefix: str) -> str:
        """Return the URDF of the chords."""
        return robot_description(self._links, prefix)

    def publish_again(self, nanoseconds: int) -> None:
        """Publish the joints again: the controller may have missed them."""
        self.publish_joints(stamp_of(nanoseconds))

    def drawing(self, header: Header) -> MarkerArray:
        """Return the bent links, their lumped masses, the way of the end and the desired one."""
        links = self._links
        q, width = self.state.x[: links.size], thickness(links)
        shapes = bent_links(links, q, _POINTS)
        end = shapes[-1, -1].tolist()
        # As many points as ever, so that viewers move them and make nothing anew.
        begins = self.sample == 0 or not self._trail
        self._trail.extend([end] * (self._trail.maxlen or 1) if begins else [end])
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


main = node_entry('longreach_links.plant_node:PlantNode')
