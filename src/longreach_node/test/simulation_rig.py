"""A simulation with a node that notes what it is told, on a wall clock that a test moves."""

from unittest.mock import Mock

from longreach_machine.machine import JointSample
from longreach_node.simulation import Simulation
from longreach_node.simulator_parameters import SimulatorParameters

CYCLE = 10_000_000  # [ns]
SAFE, INITIAL = -1.0, 0.5


class Integrator:
    """x' = command."""

    def initial_state(self):
        return 0.0

    def advance(self, state, command, _, duration):
        return state + command * duration

    def joint_sample(self, state, command):
        return JointSample(('x',), (state,), (command,), (0.0,))


class Wall:
    """Stands for the module ``time``; it goes on by ``step`` whenever it is asked."""

    def __init__(self, step=0.0):
        self.seconds = 100.0
        self.step = step

    def monotonic(self):
        self.seconds += self.step
        return self.seconds

    def time_ns(self):
        return round(self.seconds * 1e9)


class Rig:
    """A simulation and its node."""

    def __init__(self, wall, **settings):
        self.wall = wall
        self.samples = []
        self.node = Mock()
        self.node.is_shut_down.return_value = False
        self.node.command_topics.return_value = '/command'
        self.node.publish_sample.side_effect = self._on_sample
        self.simulation = Simulation(
            Integrator(), SimulatorParameters(**settings), INITIAL, SAFE, self.node
        )
        self.simulation.start()

    def _on_sample(self, nanoseconds):
        assert nanoseconds == self.simulation.sample * CYCLE
        self.samples.append(self.simulation.sample)

    @property
    def period(self):
        return float(self.node.set_period.call_args.args[0])

    @property
    def log(self):
        return [call.args[0] for call in self.node.warn.call_args_list]

    def tick(self, seconds=0.0):
        self.wall.seconds += seconds
        self.simulation.tick(self.wall.monotonic())
