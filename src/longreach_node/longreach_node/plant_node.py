"""Bases of plant nodes: a declared machine, and one with valves, joints and hydraulics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from geometry_msgs.msg import InertiaStamped
from longreach_msgs.msg import HydraulicState, ValveCommand
from longreach_msgs.srv import AttachLoad
from rclpy.publisher import Publisher
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import BY_SCENARIO, ByScenario, Machine
from longreach_machine import MachineSpec
from longreach_node import qos
from longreach_node.frames import header_at
from longreach_node.parameters import declare
from longreach_node.simulator import SimulatorNode
from longreach_node.simulator_parameters import SimulatorParameters
from longreach_node.stamps import seconds_to_nanoseconds

State = TypeVar('State')
Command = TypeVar('Command')


class PlantNode(SimulatorNode[State, Command | ByScenario]):
    """
    The plant of a declared machine.

    Until it is commanded the machine follows its scenario; after ``command_timeout`` without a
    command the safe command acts. A subclass sets the class attributes, those of the command as of
    :meth:`SimulatorNode.take_commands`, and provides :meth:`make_machine`, :meth:`command_of` and,
    where it publishes more, :meth:`add_topics` and :meth:`publish_outputs`. ``drawing_topic`` is
    that of :meth:`drawing`, at the settings' ``visual_rate``, empty for none; ``described`` are
    the parameters of the machine that is simulated.
    """

    spec: ClassVar[MachineSpec[Any, Any, Any]]
    settings_type: ClassVar[type[Any]]
    command_type: ClassVar[type] = ValveCommand
    command_topic: ClassVar[str] = 'valve_command'
    commanded: ClassVar[str] = 'the valves'
    drawing_topic: ClassVar[str] = ''

    def __init__(self) -> None:
        super().__init__('plant', safe_command=BY_SCENARIO)
        self.root_frame = self.spec.root_frame
        settings = declare(self, self.settings_type, self.on_settings)
        self.described, scenario = settings.read(self.spec)
        if scenario is None:
            scenario = self.spec.rest(self.described)
        machine, self.safe_command = self.make_machine(scenario, settings)
        self.initial_command = self.first_command()
        self.add_topics(settings)
        self.on_settings(settings)
        if self.drawing_topic:
            self.draw_on(self.drawing_topic, settings.visual_rate, settings.latched)
        advice = f'start with {self.spec.by_hand} to send commands by hand'
        self.take_commands(self.command_type, self.command_topic, self.commanded, advice)
        self.start(machine, self.sampled(machine, settings))
        if settings.lockstep or self.waits(scenario):
            self.links += [(publisher, self._commands) for publisher in self.answered()]

    def robot_description(self, prefix: str) -> str:
        """Return the URDF of this machine."""
        return self.spec.describe(self.described, prefix)

    def add_output(self, kind: type, topic: str, settings: SimulatorParameters) -> Publisher:
        """Return a publisher of an output for each sample."""
        publisher = self.create_publisher(kind, topic, qos.stream(settings.latched))
        self.outputs.append(publisher)
        return publisher

    # --- what a machine provides -------------------------------------------------------------

    def make_machine(self, scenario: Any, settings: Any) -> tuple[Machine[Any, Any], Any]:
        """Return the machine, of :attr:`described` and compiled, and its safe command."""
        raise NotImplementedError

    def first_command(self) -> Any:
        """Return what acts before the first command."""
        return BY_SCENARIO

    def sampled(self, machine: Any, settings: Any) -> Any:  # noqa: ARG002
        """Return the settings with step and rate of the simulation; the same here."""
        return settings

    def add_topics(self, settings: Any) -> None:
        """Create further publishers."""

    def on_settings(self, settings: Any) -> None:
        """Apply parameters, at the start and when they are set at run time."""

    def answered(self) -> list[Publisher]:
        """Return the publishers of what a command answers."""
        return [self._joints]

    def waits(self, scenario: Any) -> bool:  # noqa: ARG002
        """Return whether the first sample waits for who commands, also outside lockstep."""
        return False


class HydraulicPlantNode(PlantNode[State, Command]):
    """
    A hydraulic machine: a sample is published as ``joint_states`` and ``hydraulics`` of one stamp.

    A subclass provides :meth:`hydraulic_state` and, where it publishes more, :meth:`publish_own`;
    with ``takes_loads`` also :meth:`carried` and :meth:`attached`, and a machine with ``release``.
    Then there are the services ``~/attach_load`` and ``~/release_load``, and ``load`` with the
    mass of all loads, at the first sample and whenever it has changed: by a service with the
    present sample, by the scenario with the sample that follows the change.
    """

    takes_loads: ClassVar[bool] = False

    def add_topics(self, settings: Any) -> None:
        """Create the publisher of ``hydraulics``, and what loads need."""
        self.hydraulics = self.add_output(HydraulicState, 'hydraulics', settings)
        self._loads: Publisher | None = None
        self._told_load = math.nan
        if self.takes_loads:
            self._loads = self.create_publisher(InertiaStamped, 'load', qos.CHANGES)
            self.outputs.append(self._loads)
            self.create_service(AttachLoad, '~/attach_load', self._on_attach)
            self.create_service(Trigger, '~/release_load', self._on_release)

    def sampled(self, machine: Any, settings: Any) -> Any:  # noqa: ARG002
        """Return the settings; the machine steps by itself from sample to sample."""
        return settings.replace(step=1.0 / settings.publish_rate)

    def answered(self) -> list[Publisher]:
        """Return the publishers of both halves of a sample."""
        return [self.hydraulics, self._joints]

    # --- what a machine provides -------------------------------------------------------------

    def hydraulic_state(self, header: Header) -> HydraulicState:
        """Return the message about the cylinders and valves of the present state."""
        raise NotImplementedError

    def publish_own(self, header: Header) -> None:
        """Publish other messages about the present state, once for each sample; none here."""

    def carried(self) -> float:
        """Return the mass of all loads of the present state [kg]."""
        raise NotImplementedError

    def attached(self, request: AttachLoad.Request) -> tuple[State, str]:
        """Return the state with one more load, and what is said; InputError to refuse it."""
        raise NotImplementedError

    def released(self) -> tuple[State, str]:
        """Return the state without loads, and what is said; InputError when there are none."""
        machine: Any = self.machine
        mass = self.carried()
        return machine.release(self.state), f'{mass:g} kg released at {self.time:g} s'

    # --- what it does ------------------------------------------------------------------------

    def publish_outputs(self, nanoseconds: int) -> None:
        """Publish the outputs of the present state."""
        header = header_at(nanoseconds, self.frame)
        if self.sample == 0:
            # After a reset a recording begins anew.
            self._told_load = math.nan
        self._publish_load(header)
        self.publish_own(header)
        # Last: in lockstep the controller answers to this.
        self._publish_hydraulics(header)

    def publish_again(self, nanoseconds: int) -> None:
        """Publish both halves of the present sample: the controller may have missed either."""
        header = header_at(nanoseconds, self.frame)
        self.publish_joints(header.stamp)
        self._publish_hydraulics(header)

    def _on_attach(self, request: AttachLoad.Request, response: Any) -> Any:
        """Attach a load."""
        return self._change_loads(lambda: self.attached(request), response)

    def _on_release(self, _: Trigger.Request, response: Any) -> Any:
        """Release all loads."""
        return self._change_loads(self.released, response)

    def _change_loads(self, change: Callable[[], tuple[State, str]], response: Any) -> Any:
        """Change the loads, and return the response that says so."""
        try:
            self.state, response.message = change()
        except InputError as error:
            response.message = str(error)
            return response
        response.success = True
        if self.simulation.started:
            self._publish_load(header_at(seconds_to_nanoseconds(self.time), self.frame))
        return response

    def _publish_load(self, header: Header) -> None:
        """Publish the mass of all loads, if it has changed; not where they are."""
        if self._loads is not None and (mass := self.carried()) != self._told_load:
            self._told_load = mass
            message = InertiaStamped(header=header)
            place = message.inertia.com
            message.inertia.m, place.x, place.y, place.z = mass, *(math.nan,) * 3
            self._loads.publish(message)

    def _publish_hydraulics(self, header: Header) -> None:
        """Publish cylinders and valves, for whoever listens."""
        if self.is_needed(self.hydraulics):
            self.hydraulics.publish(self.hydraulic_state(header))
