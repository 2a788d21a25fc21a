"""Plant node of the boom: ``valve_command`` in; joints, hydraulics, strain and markers out."""

from __future__ import annotations

import dataclasses

from longreach_msgs.msg import HydraulicState, MarkerPositions, StrainState, ValveCommand
from longreach_msgs.srv import AttachLoad
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from longreach_boom import conversions
from longreach_boom.description import ROOT_FRAME, robot_description
from longreach_boom.hydraulic_state import flows_of
from longreach_boom.machine import STEP, Boom, longest_step
from longreach_boom.scenario import resting_scenario
from longreach_boom.sensors_node import SensorTopics
from longreach_boom.simulation import warm_up
from longreach_boom.spec import BOOM
from longreach_boom.state import BoomCommand, BoomState, StateParts, closed_valves
from longreach_boom.strain import strains
from longreach_boom.visuals import marker_positions, shape_of, stress_colours
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import quantity
from longreach_node import qos
from longreach_node.hydraulic_plant import HydraulicPlantNode
from longreach_node.machine_parameters import (
    DrawingParameters,
    MachineParameters,
    machine_and_scenario,
)
from longreach_node.parameters import declare
from longreach_node.simulator_parameters import SimulatorParameters

# Points along each beam of the shape: sufficient for a smooth line, and cheap at 30 Hz.
_POINTS = 12


@dataclasses.dataclass(frozen=True)
class PlantParameters(SimulatorParameters, MachineParameters, DrawingParameters):
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


class PlantNode(HydraulicPlantNode[BoomState, BoomCommand]):
    """Simulation of the boom as a node."""

    root_frame = ROOT_FRAME
    advice = 'start with controller:=false to command them by hand'

    def __init__(self) -> None:
        super().__init__()
        settings = declare(self, PlantParameters, self._on_settings)
        boom, scenario = machine_and_scenario(BOOM, settings, resting_scenario)
        step = settings.step or longest_step(boom, scenario, 1.0 / settings.publish_rate)
        self._boom = Boom(boom, scenario, step)
        self._constants = self._boom.constants(())
        warm_up()
        self._beams = [beam.name for beam in boom.beams]
        self._cylinders = [cylinder.name for cylinder in boom.cylinders]
        self.open(settings)
        stream = qos.stream(settings.latched)
        self._strain = self.create_publisher(StrainState, 'strain', stream)
        self._markers = self.create_publisher(MarkerPositions, 'marker_truth', stream)
        self.outputs += [self._strain, self._markers]
        if settings.watcher:
            self.watchers = [(self._markers, settings.watcher)]
        self._sensors = SensorTopics(
            self, boom, settings.sensors, settings.publish_rate, stream, scenario.friction
        )
        self._on_settings(settings)
        self.outputs += self._sensors.publishers
        self.draw_on('shape', settings.visual_rate, settings.latched)
        self.offer_loads()
        waits = settings.lockstep or bool(scenario.trajectory)
        self.run(self._boom, settings, closed_valves(boom.size), waits)

    def robot_description(self, prefix: str) -> str:
        """Return the URDF of this boom."""
        return robot_description(self._boom.parameters, prefix)

    def _on_settings(self, settings: PlantParameters) -> None:
        """Apply parameters that were set at run time."""
        self._sensors.set_noise(settings.sensor_noise)

    def command_of(self, message: ValveCommand) -> BoomCommand:
        """Return the command of a message."""
        return conversions.command_from_message(message, self._cylinders)

    def hydraulic_state(self, header: Header) -> HydraulicState:
        """Return pressures, flows and spools."""
        parts = StateParts.of(self.state.y, self._boom.parameters)
        flows = flows_of(parts, self._constants)
        return conversions.hydraulics_to_message(self._cylinders, parts, flows, header)

    def publish_own(self, header: Header) -> None:
        """Publish strains, markers and sensors."""
        if self.is_needed(self._strain):
            shown = strains(self._boom.parameters, self.state, self._boom.scenario.friction)
            self._strain.publish(conversions.strains_to_message(self._beams, shown, header))
        if self.is_needed(self._markers):
            motion = marker_positions(self._boom.parameters, self.state)
            self._markers.publish(conversions.markers_to_message(motion, header))
        self._sensors.publish(self.state, self.sample, header)

    def drawing(self, header: Header) -> MarkerArray:
        """Return the bent beams with their stress."""
        friction = self._boom.scenario.friction
        shapes = shape_of(self._boom.parameters, self.state, _POINTS, friction)
        colours = [stress_colours(shape.stress) for shape in shapes]
        return conversions.shape_to_message(shapes, colours, header)

    def carried(self) -> float:
        """Return the mass of all loads [kg]."""
        return sum((load.mass for load in self.state.loads), 0.0)

    def attached(self, request: AttachLoad.Request) -> tuple[BoomState, str]:
        """Return the state with a load attached to the boom."""
        load = conversions.load_from_request(request).on(self._boom.parameters)
        return self._boom.attach(self.state, load), (
            f'{load.mass:g} kg on {self._beams[load.beam]} at {load.position:g} m'
            f' from {self.time:g} s on'
        )

    def released(self) -> tuple[BoomState, str]:
        """Return the state without loads."""
        if not self.state.loads:
            raise InputError('no load hangs on the boom; attach one with ~/attach_load')
        mass = self.carried()
        return self._boom.release(self.state), f'{mass:g} kg released at {self.time:g} s'
