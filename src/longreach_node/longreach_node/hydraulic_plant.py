"""Base of plant nodes with valves: takes ValveCommand, gives joints and hydraulics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from geometry_msgs.msg import InertiaStamped
from longreach_msgs.msg import HydraulicState, ValveCommand
from longreach_msgs.srv import AttachLoad
from rclpy.publisher import Publisher
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import BY_SCENARIO, ByScenario, Machine
from longreach_node import qos
from longreach_node.frames import header_at
from longreach_node.simulator import SimulatorNode
from longreach_node.simulator_parameters import SimulatorParameters
from longreach_node.stamps import seconds_to_nanoseconds

State = TypeVar('State')
Command = TypeVar('Command')


class HydraulicPlantNode(SimulatorNode[State, Command | ByScenario]):
    """
    A hydraulic machine, simulated.

    Until it is commanded the machine follows its scenario; after ``command_timeout`` without a
    command its valves are closed. A sample is published as ``joint_states`` and ``hydraulics`` of
    one stamp.

    A subclass sets the class attributes, calls :meth:`open` in its constructor before it creates
    its own publishers and :meth:`run` at the end, and provides :meth:`command_of`,
    :meth:`hydraulic_state` and, where it publishes more, :meth:`publish_own`; with
    :meth:`offer_loads` also :meth:`carried`, :meth:`attached` and :meth:`released`.

    Attributes
    ----------
    command_topic : str
    advice : str
        Remedy when several nodes command the valves, for the warning.
    """

    command_topic = 'valve_command'
    advice = ''

    def __init__(self) -> None:
        super().__init__('plant', safe_command=BY_SCENARIO)
        self._loads: Publisher | None = None
        self._told_load = math.nan

    def open(self, settings: SimulatorParameters) -> None:
        """Create the publisher of ``hydraulics`` and the subscription to commands."""
        self.hydraulics = self.create_publisher(
            HydraulicState, 'hydraulics', qos.stream(settings.latched)
        )
        self.outputs.append(self.hydraulics)
        self.take_commands(ValveCommand, self.command_topic, 'the valves', self.advice)

    def offer_loads(self) -> None:
        """
        Offer the services ``~/attach_load`` and ``~/release_load``, and publish ``load``.

        A message has the mass of all loads, at the first sample and whenever it has changed: by a
        service with the present sample, by the scenario with the sample that follows the change.
        """
        self._loads = self.create_publisher(InertiaStamped, 'load', qos.CHANGES)
        self.outputs.append(self._loads)
        self.create_service(AttachLoad, '~/attach_load', self._on_attach)
        self.create_service(Trigger, '~/release_load', self._on_release)

    def run(
        self,
        machine: Machine[State, Command | ByScenario],
        settings: SimulatorParameters,
        closed: Command,
        waits: bool,
    ) -> None:
        """
        Begin to run.

        Parameters
        ----------
        machine : Machine
            It steps by itself from sample to sample.
        settings : SimulatorParameters
        closed : Command
            All valves closed.
        waits : bool
            The first sample waits for who commands, as in lockstep.
        """
        self.safe_command = closed
        self.start(machine, settings.replace(step=1.0 / settings.publish_rate))
        if waits:
            self.links += [(self.hydraulics, self._commands), (self._joints, self._commands)]

    # --- what a subclass provides ------------------------------------------------------------

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
        raise NotImplementedError

    # --- what it does ------------------------------------------------------------------------

    def publish_outputs(self, nanoseconds: int) -> None:
        """Publish the outputs of the present state."""
        header = header_at(nanoseconds, self.frame)
        self._publish_load(header)
        self.publish_own(header)
        # Last: in lockstep the controller answers to this.
        self._publish_hydraulics(header)

    def publish_again(self, nanoseconds: int) -> None:
        """Publish both halves of the present sample: the controller may have missed either."""
        header = header_at(nanoseconds, self.frame)
        self.publish_joints(header.stamp)
        self._publish_hydraulics(header)

    def _on_attach(
        self, request: AttachLoad.Request, response: AttachLoad.Response
    ) -> AttachLoad.Response:
        """Attach a load."""
        self._change_loads(lambda: self.attached(request), response)
        return response

    def _on_release(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Release all loads."""
        self._change_loads(self.released, response)
        return response

    def _change_loads(self, change: Callable[[], tuple[State, str]], response: Any) -> None:
        """Change the loads, and say so in a response."""
        try:
            self.state, response.message = change()
        except InputError as error:
            response.message = str(error)
            return
        response.success = True
        if self.simulation.started:
            self._publish_load(header_at(seconds_to_nanoseconds(self.time), self.frame))

    def _publish_load(self, header: Header) -> None:
        """Publish the mass of all loads, if it has changed; where they are is not told."""
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
