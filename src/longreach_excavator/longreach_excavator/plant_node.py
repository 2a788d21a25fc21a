"""The excavator as a node: takes ``cylinder_command``, gives joints, oil, reactions and soil."""

from __future__ import annotations

import dataclasses

from geometry_msgs.msg import WrenchStamped
from longreach_msgs.msg import CylinderCommand, HydraulicState, PinForces
from visualization_msgs.msg import MarkerArray

from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import BY_SCENARIO, ByScenario
from longreach_dynamics.parameters import quantity
from longreach_excavator import conversions
from longreach_excavator.description import ROOT_FRAME
from longreach_excavator.machine import STEP, Excavator
from longreach_excavator.parameters import load_excavator
from longreach_excavator.scenario import Scenario, load_scenario, resting_scenario
from longreach_excavator.simulation import warm_up
from longreach_excavator.state import CLOSED, ExcavatorCommand, ExcavatorState
from longreach_excavator.visuals import force_arrows, soil_line
from longreach_node import qos
from longreach_node.frames import header_at
from longreach_node.parameters import declare
from longreach_node.simulator import SimulatorNode, SimulatorParameters
from longreach_node.stamps import nanoseconds_of

__all__ = ['PlantNode', 'PlantParameters']


@dataclasses.dataclass(frozen=True)
class PlantParameters(SimulatorParameters):
    """Parameters of the plant node."""

    file: str = quantity('excavator file; empty for one of the 20 t class', '', default='')
    scenario: str = quantity(
        'scenario file, for pose, soil, valves and forces; empty for the first pose of the'
        ' excavator file',
        '',
        default='',
    )
    step: float = quantity('length of a simulation step', 's', above=0.0, default=STEP)
    # Smooth for the eye and for a person at the sticks, at half of what 100 Hz would take.
    publish_rate: float = quantity(
        'samples per second of simulation', 'Hz', above=0.0, at_most=1e5, default=50.0
    )
    visual_rate: float = quantity(
        'drawings of the forces per second of simulation, while somebody looks; 0 is none',
        'Hz',
        at_least=0.0,
        at_most=1e3,
        default=30.0,
    )


class _Watched(Excavator):
    """An excavator whose forces are worked out once for each state, not for each topic."""

    def observed(self, state: ExcavatorState) -> dict[str, float]:
        """Return what Excavator does."""
        known: tuple[ExcavatorState, dict[str, float]] | None = self.__dict__.get('_observed')
        if known is None or known[0] is not state:
            known = (state, super().observed(state))
            object.__setattr__(self, '_observed', known)
        return known[1]


def _end(duration: float, scenario: Scenario) -> float:
    """Return the end of the simulation [s], 0 for never: given forces are known up to theirs."""
    if scenario.mode == 'hydraulic':
        return duration
    if duration > scenario.duration:
        raise InputError(
            f'duration = {duration:g} s, allowed with mode: printed: up to that of the scenario,'
            f' {scenario.duration:g} s'
        )
    return duration or scenario.duration


class PlantNode(SimulatorNode[ExcavatorState, ExcavatorCommand | ByScenario]):
    """The excavator, simulated."""

    root_frame = ROOT_FRAME

    def __init__(self) -> None:
        super().__init__('plant', safe_command=BY_SCENARIO)
        settings = declare(self, PlantParameters)
        excavator = load_excavator(settings.file or None)
        scenario = (
            load_scenario(settings.scenario, excavator, settings.step)
            if settings.scenario
            else resting_scenario(excavator)
        )
        self._excavator = _Watched(excavator, scenario, settings.step)
        warm_up()
        # Whoever has commanded the cylinders once and falls silent leaves the valves closed.
        self.safe_command = CLOSED
        self._surface = soil_line(
            self._excavator.parameters, self._excavator.constants.medium.surface
        )
        self._latest = -1
        stream = qos.stream(settings.latched)
        self._hydraulics = self.create_publisher(HydraulicState, 'hydraulics', stream)
        self._reactions = self.create_publisher(PinForces, 'reactions', stream)
        self._soil_force = self.create_publisher(WrenchStamped, 'soil_force', stream)
        self.outputs += [self._hydraulics, self._reactions, self._soil_force]
        self._forces = self.create_publisher(MarkerArray, 'forces', qos.VISUAL)
        self._visual_rate = settings.visual_rate
        self._commands = self.create_subscription(
            CylinderCommand, 'cylinder_command', self._on_command, qos.STREAM
        )
        # The excavator steps by itself from sample to sample.
        self.start(
            self._excavator,
            settings.replace(
                step=1.0 / settings.publish_rate, duration=_end(settings.duration, scenario)
            ),
        )
        if settings.lockstep:
            self.links += [(self._hydraulics, self._commands), (self._joints, self._commands)]

    def publish_outputs(self, nanoseconds: int) -> None:
        """Publish what is to be seen of the excavator."""
        header = header_at(nanoseconds, self.frame)
        observed = self._excavator.observed(self.state)
        if nanoseconds == self._latest:
            # Whoever commands may have missed either half of its sample.
            self.publish_joints(header.stamp)
        else:
            self._latest = nanoseconds
            self._reactions.publish(conversions.reactions_to_message(observed, header))
            self._soil_force.publish(conversions.soil_force_to_message(observed, header))
            self._publish_forces(observed)
        # Last: in lockstep this is what is answered.
        vapour = self._excavator.parameters.oil.vapour_pressure
        self._hydraulics.publish(
            conversions.hydraulics_to_message(self.state.y, observed, vapour, header)
        )

    def _publish_forces(self, observed: dict[str, float]) -> None:
        """Publish the drawing of forces and soil when it is time, and somebody looks."""
        if not self.is_looked_at(self._forces, self._visual_rate):
            return
        arrows = force_arrows(self._excavator.parameters, self.state, observed)
        header = header_at(self._latest, self.frame)
        self._forces.publish(conversions.forces_to_message(arrows, self._surface, header))

    def _on_command(self, message: CylinderCommand) -> None:
        """Take a command; one that cannot be is as good as none."""
        self.warn_of_others(
            self._commands, 'the cylinders', 'start with operator:=false to command them by hand'
        )
        try:
            command = conversions.command_from_message(message, self._excavator.parameters)
        except InputError as error:
            self.get_logger().warning(f'ignored: {error}', throttle_duration_sec=1.0)
            return
        self.accept(command, nanoseconds_of(message.header.stamp))
