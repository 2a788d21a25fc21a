"""The node of a damping controller in lockstep with the plant: equal to the library."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import Twist, Vector3
from longreach_msgs.msg import HydraulicState, ValveCommand

from longreach_boom.follower import Measurement
from longreach_boom.kinematics import point_motion
from longreach_boom.machine import Boom
from longreach_boom.model import constants_of
from longreach_boom.nodes import PlantNode
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import HangingLoad, Scenario, load_scenario
from longreach_boom.state import StateParts, piston_positions
from longreach_control import nodes, remote
from longreach_control.benchmark import read, run_case
from longreach_control.cases import Case, postures
from longreach_control.controller import Measured, Wanted
from longreach_control.follower import DampingFollower, TipFollower
from longreach_control.modal import ModalFeedback
from longreach_control.nodes import DampingNode
from longreach_control.remote import NAMESPACE, RosController
from longreach_dynamics.errors import InputError, LongreachError
from longreach_machine.scenarios import ValveCommand as Spools
from longreach_machine.trajectories import Waypoint
from longreach_machine.trajectory_following import FARTHEST
from longreach_node.cycle_node import CycleNode
from longreach_node.testing import bench, setting

SCENARIO = """
duration: 0.5
pose: site
trajectory:
  - {time: 0.0, angles_deg: [70, -50, -35, -30]}
  - {time: 1.4, angles_deg: [69.5, -49, -34, -28]}
"""
CYCLE, CYCLES = 0.005, 100


def driven(follower, machine, cycles):
    """Yield time, parts of the boom's state and state of its controller in each cycle."""
    boom, state, answered = machine.parameters, machine.initial_state(), None
    for k in range(cycles):
        time, parts = follower.sample_time * k, StateParts.of(state.y, boom)
        measured = Measurement(parts.q[: boom.size], *read(boom, state))
        answered, command = follower.answer(answered, time, measured)
        yield time, parts, answered
        state = machine.advance(state, command, time, follower.sample_time)


@pytest.mark.parametrize('method', ['modal', 'tip'])
def test_in_lockstep_the_node_commands_as_the_library(tmp_path, monkeypatch, method):
    monkeypatch.setattr(nodes, '_SILENT', math.inf)
    file = tmp_path / 'scenario.yaml'
    file.write_text(SCENARIO)
    words = setting(lockstep=True, scenario=file) + setting('controller', method=method)
    words += setting('plant', real_time_factor=0.0, duration=0.5)
    with bench(*words, deadline=60.0) as b:
        seen = b.listen(HydraulicState, 'hydraulics')
        node = b.add(DampingNode)
        node._on_velocity(Twist(linear=Vector3(x=0.3, z=-0.2)))
        b.add(PlantNode)
        b.until(lambda: len(seen) > CYCLES, 'the last sample')
    boom = load_boom()
    scenario = load_scenario(file, boom)
    if method == 'tip':
        velocity = np.array([0.3, -0.2])
        follower = TipFollower(boom, scenario, CYCLE, joystick=lambda: velocity)
    else:
        follower = DampingFollower(boom, scenario, CYCLE)
    *_, (_, parts, _) = driven(follower, Boom(boom, scenario), CYCLES + 1)
    last = seen[CYCLES]
    assert np.abs(parts.spools).max() > 0.05
    np.testing.assert_allclose(last.spool, parts.spools, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(last.head_pressure, parts.head_pressures, rtol=1e-6)


def test_a_command_that_is_shaped_is_late_and_not_left_behind():
    boom, end = load_boom(), (70.0, -50.0, -35.0, 10.0)
    scenario = Scenario(
        duration=12.0, pose='site', trajectory=(Waypoint(time=8.0, angles_deg=end),)
    )
    follower, most = DampingFollower(boom, scenario, 0.01, method='shaping'), 0.0
    for time, _, answered in driven(follower, Boom(boom, scenario), 1200):
        most = max(most, np.abs(answered.reference(time).angles - answered.angles).max())
    assert most > FARTHEST
    assert answered.resumptions == 0
    assert np.degrees(answered.angles) == pytest.approx(end, abs=0.3)


@pytest.mark.parametrize(
    ('joint', 'way', 'time', 'most'), [(0, 15.0, 7.0, 1.0), (1, 20.0, 4.3, 2.5)]
)
def test_a_valve_at_its_end_moves_no_other_joint(joint, way, time, most):
    """At 75 % and 95 % of its largest rate a joint does not follow under load, and is resumed."""
    boom, end = load_boom(), np.degrees(load_boom().pose('site'))
    end[joint] += way
    scenario = Scenario(
        duration=9.0,
        pose='site',
        loads=(HangingLoad(90.0),),
        trajectory=(Waypoint(time=time, angles_deg=tuple(end)),),
    )
    follower, worst = DampingFollower(boom, scenario, 0.01), 0.0
    for _, parts, answered in driven(follower, Boom(boom, scenario), 900):
        worst = max(worst, np.abs(np.delete(np.degrees(parts.q[:4]) - end, joint)).max())
        assert answered.resumptions <= 1
    assert worst < most


@pytest.mark.parametrize('cycle', [0.01, 0.05])
def test_a_release_without_a_trajectory_is_damped(cycle):
    boom, n = load_boom(), round(3.0 / cycle)
    scenario = Scenario(duration=9.0, pose='site', loads=(HangingLoad(90.0),), release=(0.0,))
    follower = DampingFollower(boom, scenario, cycle)
    heights = [
        point_motion(boom, parts.q, parts.v, 3, 9.0).position[1]
        for _, parts, _ in driven(follower, Boom(boom, scenario), 3 * n)
    ]
    assert np.ptp(heights[-n:]) < 0.03 * np.ptp(heights[:n])
    opened = scenario.replace(valve_commands=(Spools(time=0.0, spools=(0.5, 0.0, 0.0, 0.0)),))
    follower = DampingFollower(boom, opened, 0.01)
    readings = read(boom, Boom(boom, opened).initial_state())
    measured = Measurement(boom.pose('site'), *readings)
    assert follower.answer(None, 0.0, measured)[1] == (0.5, 0.0, 0.0, 0.0)


def test_an_operator_leaves_the_posture():
    """
    At rest in another posture the controller is made anew; trajectories are refused.

    Faster than the valves can be, the tip goes more slowly the way that it is asked to.
    """
    boom, given = load_boom(), [np.array([0.6, 0.0])]
    scenario = Scenario(duration=1.0, pose='site')
    follower = TipFollower(boom, scenario, 0.01, joystick=lambda: given[0])
    made, most, heights = [], 0.0, []
    for _, parts, answered in driven(follower, Boom(boom, scenario), 2500):
        heights.append(point_motion(boom, parts.q, parts.v, 3, 9.0).position[1])
        made.append(answered.memory)
        most = max(most, np.abs(answered.memory.ahead).max())
        if len(made) == 2000:
            given[0] = np.zeros(2)
    assert made[2199] is made[0]
    assert made[-1] is not made[0]
    assert np.abs(made[-1].situation.angles - made[0].situation.angles).max() > 0.15
    assert most < math.radians(1.0)
    assert answered.resumptions == 0
    assert np.ptp(heights) < 0.3
    # Nothing moves when it is: its own posture is where the boom is.
    assert np.abs(answered.angles - made[-1].situation.angles).max() < 0.01
    with pytest.raises(InputError, match='an operator moves the tip'):
        follower.stream(answered, 15.0, {0: 1.0})


@pytest.mark.parametrize('kind', [DampingFollower, TipFollower])
def test_a_joint_at_its_end_is_controlled(kind):
    boom = load_boom()
    high = boom.joint_limits()[0, 1]
    end = np.array([high, *boom.pose('site')[1:]])
    scenario = Scenario(duration=1.0, pose_deg=tuple(np.degrees(end)))
    readings = read(boom, Boom(boom, scenario).initial_state())
    follower, first = kind(boom, None, 0.01), np.eye(4)[0]
    for beyond in (1e-8, 0.01):
        state, _ = follower.answer(None, 0.0, Measurement(end + beyond * first, *readings))
        np.testing.assert_array_equal(state.memory.situation.angles, end)
    # As by a reset of the state.
    state, _ = follower.answer(state, 0.01, Measurement(elsewhere := end - 0.2 * first, *readings))
    is_new = np.array_equal(state.memory.situation.angles, elsewhere)
    assert is_new == (kind is DampingFollower)
    with pytest.raises(InputError, match=r'angle of joint beam_1 = 104\.485 deg'):
        follower.answer(None, 0.0, Measurement(end + 0.1 * first, *readings))


@pytest.mark.parametrize(('velocity', 'load'), [(-0.5, 1.0), (0.0, 1.2)])
def test_what_the_tip_is_to_do_does_not_run_away_from_it(velocity, load):
    """With an operator, and with a load, while the valves get no commands."""
    boom, angles = load_boom(), load_boom().pose('site')
    follower = TipFollower(boom, None, 0.01, joystick=lambda: np.array([0.0, velocity]))
    readings = read(boom, Boom(boom, Scenario(duration=1.0, pose='site')).initial_state())
    measured = Measurement(angles, *readings)
    state, _ = follower.answer(None, 0.0, measured)
    measured = measured._replace(head_pressures=load * measured.head_pressures)
    most, controls = 0.0, {id(state.memory): state.memory}
    for k in range(1, 2000):
        state, _ = follower.answer(state, 0.01 * k, measured)
        controls[id(state.memory)] = state.memory
        most = max(most, np.abs(state.memory.ahead).max())
    assert math.radians(3.0) < most < math.radians(4.0)
    assert state.resumptions == len(controls) - 1 > 0


def test_what_the_tip_is_to_do_waits_for_a_boom_that_gives_way():
    boom, angles = load_boom(), load_boom().pose('site')
    follower = TipFollower(boom, None, 0.01, joystick=lambda: np.zeros(2))
    readings = read(boom, Boom(boom, Scenario(duration=1.0, pose='site')).initial_state())
    state, most = None, 0.0
    for k in range(1000):
        given = angles - np.radians([0.0, 0.01 * k, 0.0, 0.0])
        pistons = piston_positions(given, constants_of(boom))
        measured = Measurement(given, *readings._replace(pistons=pistons))
        state, _ = follower.answer(state, 0.01 * k, measured)
        most = max(most, np.abs(state.memory.ahead).max())
    assert (most, state.resumptions) == (FARTHEST, 1)


def test_a_boom_without_poses_can_be_damped():
    DampingFollower(load_boom().replace(poses=()), None, 0.01).warm_up()


def test_gains_of_the_joint_controller_are_unknown():
    words = setting('controller', proportional_gain=4.0)
    with bench(*words) as b, pytest.raises(InputError, match="'proportional_gain' is unknown"):
        b.add(DampingNode)


class Answering(CycleNode[ValveCommand]):
    """A controller of the benchmark as a node, made anew when time restarts."""

    def __init__(self, situation):
        super().__init__('mine', namespace=NAMESPACE)
        self._situation = situation
        self.forget()
        self.listen('modal feedback', situation.sample_time, lockstep=True)

    def forget(self):
        """Begin a case."""
        self._control = ModalFeedback(self._situation)

    def state_text(self):
        """Return nothing of interest."""
        return 'controls'

    def run_cycle(self, _, joints, hydraulics):
        """Return the spools for a sample."""
        N = self._situation.boom.size
        position, velocity = np.array(joints.position), np.array(joints.velocity)
        measured = Measured(
            position[:N],
            np.array(hydraulics.head_pressure),
            np.array(hydraulics.rod_pressure),
            velocity[2 * N :],
        )
        spools = self._control.cycle(measured, Wanted(position[N : 2 * N], velocity[N : 2 * N]))
        return ValveCommand(header=joints.header, name=hydraulics.name, spool=spools.tolist())


def test_a_node_takes_part_in_the_benchmark():
    boom = load_boom()
    case = Case(postures(boom, 1)[0], 'stop')
    situations = []

    def keep(situation):
        situations.append(situation)
        return ModalFeedback(situation)

    expected = run_case(case, boom, keep, 1.5)
    assert np.ptp(expected.spools) > 0.01
    with bench(deadline=60.0) as b:
        b.add(lambda: Answering(situations[0]))
        for _ in range(2):
            found = b.end(b.begin(run_case, case, boom, RosController, 1.5))
            for mine, other in zip(found, expected, strict=True):
                assert np.array_equal(mine, other)


def test_a_benchmark_without_the_node_says_so(monkeypatch):
    monkeypatch.setattr(remote, '_PATIENCE', 0.1)
    case = Case(postures(load_boom(), 1)[0], 'stop')
    with pytest.raises(LongreachError, match='no node answers on /benchmark/valve_command'):
        run_case(case, load_boom(), RosController, 0.1)
