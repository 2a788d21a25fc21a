"""The boom as a node: takes ``valve_command``, gives joints, hydraulics, strain and markers."""

from __future__ import annotations

import dataclasses

from longreach_msgs.msg import HydraulicState, MarkerPositions, StrainState, ValveCommand
from longreach_msgs.srv import AttachLoad
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from longreach_boom import conversions
from longreach_boom.description import ROOT_FRAME
from longreach_boom.hydraulic_state import flows_of
from longreach_boom.machine import STEP, Boom, longest_step
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import load_scenario, resting_scenario
from longreach_boom.sensors_node import SensorTopics
from longreach_boom.simulation import warm_up
from longreach_boom.state import BoomCommand, BoomState, StateParts, closed_valves, strains
from longreach_boom.visuals import marker_positions, shape_of, stress_colours
from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import BY_SCENARIO, ByScenario
from longreach_dynamics.parameters import quantity
from longreach_node import qos
from longreach_node.frames import header_at
from longreach_node.parameters import declare
from longreach_node.simulator import SimulatorNode, SimulatorParameters
from longreach_node.stamps import nanoseconds_of

__all__ = ['PlantNode', 'PlantParameters']

# Along each beam of the shape: smooth to the eye, and light at 30 Hz.
_POINTS = 12


@dataclasses.dataclass(frozen=True)
class PlantParameters(SimulatorParameters):
    """Parameters of the plant node."""

    file: str = quantity('boom file; empty for the pump boom of 36 m', '', default='')
    scenario: str = quantity(
        'scenario file, for pose, loads and valves; empty for the first pose of the boom file',
        '',
        default='',
    )
    sensors: str = quantity(
        'sensor file; default (ideal) or typical for the installed ones; empty for no sensors',
        '',
        default='',
    )
    watcher: str = quantity(
        'name of a node that listens to marker_truth, such as simulated cameras: the first sample'
        ' waits for it, and the end until it has ended; empty for none',
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
    visual_rate: float = quantity(
        'shapes per second of simulation, while somebody looks; 0 is none',
        'Hz',
        at_least=0.0,
        at_most=1e3,
        default=30.0,
    )


class PlantNode(SimulatorNode[BoomState, BoomCommand | ByScenario]):
    """The boom, simulated."""

    root_frame = ROOT_FRAME

    def __init__(self) -> None:
        super().__init__('plant', safe_command=BY_SCENARIO)
        settings = declare(self, PlantParameters)
        boom = load_boom(settings.file or None)
        scenario = (
            load_scenario(settings.scenario, boom, settings.step or None)
            if settings.scenario
            else resting_scenario(boom)
        )
        step = settings.step or longest_step(boom, scenario, 1.0 / settings.publish_rate)
        self._boom = Boom(boom, scenario, step)
        self._constants = self._boom.constants(())
        # After the first use of these parameters, so that caches know them by their identity.
        warm_up()
        # Whoever has commanded the valves once and falls silent leaves them closed.
        self.safe_command = closed_valves(boom.size)
        self._beams = [beam.name for beam in boom.beams]
        self._cylinders = [cylinder.name for cylinder in boom.cylinders]
        self._latest = -1
        stream = qos.stream(settings.latched)
        self._hydraulics = self.create_publisher(HydraulicState, 'hydraulics', stream)
        self._strain = self.create_publisher(StrainState, 'strain', stream)
        self._markers = self.create_publisher(MarkerPositions, 'marker_truth', stream)
        self.outputs += [self._hydraulics, self._strain, self._markers]
        if settings.watcher:
            self.watchers = [(self._markers, settings.watcher)]
        self._sensors = SensorTopics(self, boom, settings.sensors, settings.publish_rate, stream)
        self.outputs += self._sensors.publishers
        self._shape = self.create_publisher(MarkerArray, 'shape', qos.VISUAL)
        self._visual_rate = settings.visual_rate
        self._commands = self.create_subscription(
            ValveCommand, 'valve_command', self._on_command, qos.STREAM
        )
        self.create_service(AttachLoad, '~/attach_load', self._on_attach)
        self.create_service(Trigger, '~/release_load', self._on_release)
        # The boom steps by itself from sample to sample.
        self.start(self._boom, settings.replace(step=1.0 / settings.publish_rate))
        if settings.lockstep or scenario.trajectory:
            self.links += [(self._hydraulics, self._commands), (self._joints, self._commands)]

    def publish_outputs(self, nanoseconds: int) -> None:
        """Publish what is to be seen of the boom."""
        header = header_at(nanoseconds, self.frame)
        parts = StateParts.of(self.state.y, self._boom.parameters)
        if nanoseconds == self._latest:
            # The controller may have missed either half of its sample.
            self.publish_joints(header.stamp)
        else:
            self._latest = nanoseconds
            self._strain.publish(
                conversions.strains_to_message(
                    self._beams, strains(parts, self._boom.parameters), header
                )
            )
            motion = marker_positions(self._boom.parameters, self.state)
            self._markers.publish(conversions.markers_to_message(motion, header))
            self._sensors.publish(self.state, self.sample, header)
            self._publish_shape()
        # Last: in lockstep the controller answers to this.
        flows = flows_of(parts, self._constants)
        self._hydraulics.publish(
            conversions.hydraulics_to_message(self._cylinders, parts, flows, header)
        )

    def _publish_shape(self) -> None:
        """Publish the bent beams when it is time, and somebody looks."""
        if not self.is_looked_at(self._shape, self._visual_rate):
            return
        shapes = shape_of(self._boom.parameters, self.state, _POINTS)
        colours = [stress_colours(shape.stress) for shape in shapes]
        header = header_at(self._latest, self.frame)
        self._shape.publish(conversions.shape_to_message(shapes, colours, header))

    def _on_command(self, message: ValveCommand) -> None:
        """Take a command; one that cannot be is as good as none."""
        self.warn_of_others(
            self._commands, 'the valves', 'start with controller:=false to command them by hand'
        )
        try:
            command = conversions.command_from_message(message, self._cylinders)
        except InputError as error:
            self.get_logger().warning(f'ignored: {error}', throttle_duration_sec=1.0)
            return
        self.accept(command, nanoseconds_of(message.header.stamp))

    def _on_attach(
        self, request: AttachLoad.Request, response: AttachLoad.Response
    ) -> AttachLoad.Response:
        """Hang a load on the boom."""
        try:
            load = conversions.load_from_request(request).on(self._boom.parameters)
        except InputError as error:
            response.message = str(error)
            return response
        self.state = self._boom.attach(self.state, load)
        response.success = True
        response.message = (
            f'{load.mass:g} kg on {self._beams[load.beam]} at {load.position:g} m'
            f' from {self.time:g} s on'
        )
        return response

    def _on_release(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Release all loads."""
        if not self.state.loads:
            response.message = 'no load hangs on the boom; hang one on with ~/attach_load'
            return response
        mass = sum(load.mass for load in self.state.loads)
        self.state = self._boom.release(self.state)
        response.success = True
        response.message = f'{mass:g} kg released at {self.time:g} s'
        return response
