"""Damping of the boom: the plant against the boom itself, controllers, tip control, benchmark."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from longreach_boom.kinematics import point_motion
from longreach_boom.machine import Boom
from longreach_boom.modes import held_modes
from longreach_boom.parameters import default_file, load_boom
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.state import StateParts
from longreach_control.benchmark import (
    CONTROLLERS,
    SAMPLE_TIME,
    Measures,
    Trace,
    damping_ratio,
    measure,
    read,
    run_case,
    settling_time,
    threshold,
    vibration,
)
from longreach_control.cases import DISTURBANCES, START, Case, postures, scenario_of
from longreach_control.commands import _check_neighbours
from longreach_control.controller import DampingController, Wanted
from longreach_control.modal import ModalFeedback
from longreach_control.plant import Plant, Situation, delayed
from longreach_control.results import read_cases, summarize
from longreach_control.tip import TipControl
from longreach_dynamics.errors import InputError
from longreach_machine.control import held_input
from longreach_tools import cli
from longreach_tools.output import locked_directory


@pytest.fixture(scope='module')
def boom():
    return load_boom()


@pytest.fixture(scope='module')
def situation(boom):
    return Situation(boom, boom.pose('site'))


def test_the_plant_has_the_modes_of_the_boom(situation):
    plant = Plant.of(situation)
    frequencies, _ = plant.modes()
    expected, _ = held_modes(situation.boom, situation.angles, (), [True] * 4)
    assert frequencies[:5] == pytest.approx(expected[:5], rel=1e-3)


def test_oil_does_not_change_while_the_boom_swings(boom):
    """s = s_p + F / k of closed cylinders stays, while the load falls off and pistons slide."""
    # A load that falls off: one that is picked up would open the make-up valves of the rod sides.
    load = HangingLoad(mass=60.0)
    scenario = Scenario(duration=5.0, pose='site', friction=False, loads=(load,), release=(0.0,))
    machine = Boom(boom, scenario)
    controller = DampingController(Situation(boom, boom.pose('site')))
    state = machine.initial_state()
    seen, moved = [], []
    for k in range(300):
        readings = read(boom, state)
        wanted = Wanted(readings.pistons, np.zeros(4))
        seen.append(controller.oil(readings, wanted)[0])
        moved.append(readings.pistons)
        state = machine.advance(state, (0.0,) * 4, k * 0.01, 0.01)
    assert np.ptp(moved, axis=0).min() > 5e-5
    assert np.abs(seen).max() < 0.02 * np.ptp(moved, axis=0).max()


def test_a_delayed_model_is_the_model_later():
    A, B = held_input(np.array([[-1.0]]), np.array([[1.0]]), 0.1)
    assert A[0, 0] == pytest.approx(math.exp(-0.1))
    assert B[0, 0] == pytest.approx(1.0 - math.exp(-0.1))
    late, into = delayed(A, B, 3)
    x, y = np.zeros(1), np.zeros(4)
    inputs = np.sin(np.arange(20.0))
    for k, u in enumerate(inputs):
        x = A @ x + B @ [inputs[k - 3] if k >= 3 else 0.0]
        y = late @ y + into @ [u]
    assert y[0] == pytest.approx(x[0])
    assert delayed(A, B, 0)[0] is A


@pytest.mark.parametrize('ratio', [0.006, 0.05, 0.15, 0.4])
def test_the_damping_ratio_is_that_of_the_vibration(ratio):
    time = np.arange(0.0, 20.0, 0.01)
    omega = 2.7
    damped = omega * math.sqrt(1.0 - ratio**2)
    rate = np.exp(-ratio * omega * time) * np.cos(damped * time + 0.4)
    assert damping_ratio(rate) == pytest.approx(ratio, rel=0.03, abs=1e-3)


def test_a_vibration_that_is_gone_has_a_lower_bound():
    """Less than a tenth at the second extreme: at least 0.59."""
    assert damping_ratio(np.array([0.0, 1.0, 0.5, -0.01, 0.001])) == pytest.approx(0.591, abs=1e-3)
    # A first part that only decays, and a second one below what counts: at least so much.
    decays = np.array([0.1, 0.05, -0.006, 0.0])
    assert damping_ratio(decays, 0.01) == pytest.approx(0.591, abs=1e-3)
    assert math.isnan(damping_ratio(np.zeros(5)))
    assert math.isnan(damping_ratio(np.array([0.0, 0.015, -0.012, 0.0]), 0.01))


def test_the_benchmark_is_the_same_for_everybody(boom):
    few, more = postures(boom, 3), postures(boom, 6)
    assert few == more[:3]
    for name in DISTURBANCES:
        scenario = scenario_of(Case(few[0], name))
        scenario.check_with(boom)
        assert scenario.initial_loads(boom) or name == 'pick_up'
    with pytest.raises(InputError, match=r"disturbance = 'rain', allowed: release"):
        scenario_of(Case(few[0], 'rain'))


def test_a_boom_that_cannot_reach_the_postures_is_refused(boom, monkeypatch):
    monkeypatch.setattr('longreach_control.cases._REACH', 40.0)
    with pytest.raises(InputError, match=r'are 35\.6 m long in all, allowed: 40 m or more'):
        postures(boom, 7)


@pytest.mark.parametrize('name', [name for name in CONTROLLERS if name != 'none'])
def test_a_controller_damps_what_it_can(boom, name):
    """Model-based ones damp a pick-up, shaping calms a stop; nothing becomes unstable."""
    what = 'stop' if name == 'shaping' else 'pick_up'
    case, end = Case(postures(boom, 5)[1], what), 4.0 if name == 'shaping' else 1.0
    alone, trace = (run_case(case, boom, CONTROLLERS[one], 12.0) for one in ('none', name))
    assert not trace.error
    least = threshold(alone, end)
    before, after = (measure(one, boom, end, least) for one in (alone, trace))
    assert after.violations <= before.violations
    if name in ('modal', 'predictive'):
        assert after.damping > 0.3 > 0.1 > before.damping
        assert after.settling < 2.5
        # Biases of the sensors do not move the boom.
        assert after.astray < math.radians(0.2)
        assert before.settling == math.inf
    elif name == 'pressure':
        assert after.damping > 1.5 * before.damping
    else:
        late = trace.time > 6.0
        assert np.ptp(trace.mode[late]) < 0.5 * np.ptp(alone.mode[late])


def test_ten_lines_make_a_controller(boom):
    """The example of the documentation runs, and damps."""

    class Yielding(DampingController):
        def velocities(self, measured, wanted):
            force = self.forces(measured)
            self.slow = getattr(self, 'slow', force)
            self.slow = self.slow + 0.01 * (force - self.slow)
            return self.holding(measured, wanted) - 2e-7 * (force - self.slow)

    case = Case(postures(boom, 5)[4], 'release')
    trace, alone = (run_case(case, boom, one, 6.0) for one in (Yielding, CONTROLLERS['none']))
    after = trace.time > 1.0
    assert damping_ratio(trace.mode[after]) > damping_ratio(alone.mode[after])


def tips(boom, scenario, control, velocity):
    """Return the tip's positions each 0.1 s of a boom whose joystick is moved from 1 s to 4 s."""
    machine = Boom(boom, scenario)
    state = machine.initial_state()
    found = []
    for k in range(round(scenario.duration / SAMPLE_TIME)):
        parts = StateParts.of(state.y, boom)
        if k % 10 == 0:
            tip = point_motion(boom, parts.q, parts.v, boom.size - 1, boom.beams[-1].length)
            found.append(tip.position)
        given = velocity if 100 <= k < 400 else np.zeros(2)
        spools = control.drive(read(boom, state), given)
        command = tuple(spools.tolist())
        state = machine.advance(state, command, k * SAMPLE_TIME, SAMPLE_TIME)
    return np.array(found)


@pytest.mark.slow
def test_sag_is_taken_back(boom):
    scenario = Scenario(duration=20.0, pose='site', attach=(Attachment(time=2.0, mass=60.0),))
    sags = []
    for compensation in (False, True):
        here = Situation(boom, boom.pose('site'), delay=0.0)
        control = TipControl(here, compensation=compensation)
        found = tips(boom, scenario, control, np.zeros(2))
        sags.append(np.linalg.norm(found[-40:].mean(axis=0) - found[15]))
    assert sags[0] > 0.1
    assert sags[1] < 0.1 * sags[0]


@pytest.mark.parametrize('velocity', [(0.2, 0.0), (0.0, -0.2)])
def test_a_joystick_moves_the_tip(boom, velocity):
    scenario = Scenario(duration=8.0, pose='site')
    control = TipControl(Situation(boom, boom.pose('site'), delay=0.0))
    found = tips(boom, scenario, control, np.array(velocity))
    moved = found[-5:].mean(axis=0) - found[5]
    assert moved == pytest.approx(3.0 * np.array(velocity), abs=0.12)


def test_joint_rates_respect_ends_and_the_pump(situation):
    control = TipControl(situation)
    angles = np.array(situation.angles)
    free = control.joint_rates(angles, np.array([0.1, 0.1]))
    assert control._jacobian(angles) @ free == pytest.approx([0.1, 0.1], rel=0.02)
    low, high = situation.boom.joint_limits().T
    ended = np.where(free > 0.0, high, low)
    stopped = angles.copy()
    stopped[1] = ended[1]
    assert control.joint_rates(stopped, np.array([0.1, 0.1]))[1] * free[1] <= 0.0
    for k, end, other in ((0, low, high), (2, low, high), (3, high, low)):
        # Near an end a joint is slowed when it moves towards it, and is free to leave it.
        near = angles.copy()
        near[k] = end[k] + 0.01 * (other[k] - end[k])
        rates = [control.joint_rates(near, v)[k] for v in np.array([[0.1, 0.1], [-0.1, -0.1]])]
        towards, away = sorted(rates, key=lambda rate: rate * (other[k] - end[k]))
        assert towards * away < 0.0
        assert abs(towards) < 0.5 * abs(away)
    small = TipControl(situation, pump_flow=1e-5).joint_rates(angles, np.array([0.1, 0.1]))
    assert small / free == pytest.approx(np.full(4, small[0] / free[0]))
    assert small[0] / free[0] < 0.5
    with pytest.raises(InputError, match='pump_flow = 0'):
        TipControl(situation, pump_flow=0.0)


def test_joint_rates_of_a_stretched_boom_are_smooth(situation):
    control, angles = TipControl(situation), np.radians([13.0, -13.8, 6.5, 2.4])
    rates = []
    for _ in range(1500):
        rates.append(control.joint_rates(angles, np.array([0.6, 0.0])))
        angles = angles + 0.01 * rates[-1]
    assert np.abs(np.diff(rates[500:], axis=0)).max() < math.radians(0.1)


def test_situations_are_checked(boom):
    with pytest.raises(InputError, match='sample_time = 0'):
        Situation(boom, boom.pose('site'), sample_time=0.0)
    with pytest.raises(InputError, match='delay = 2'):
        Situation(boom, boom.pose('site'), delay=2.0)
    truck = load_boom(default_file().with_name('boom_on_truck.yaml'))
    with pytest.raises(InputError, match='a truck on springs is not in this plant'):
        ModalFeedback(Situation(truck, truck.pose('site')))


@pytest.mark.parametrize('spools', [None, [0.0, 0.0], 'open', np.full(4, 1j)])
def test_a_command_of_no_use_is_refused(boom, spools):
    control = SimpleNamespace(cycle=lambda *_: spools)
    case = Case(postures(boom, 1)[0], 'stop')
    with pytest.raises(InputError, match=r'commands .*, allowed: 4 real numbers'):
        run_case(case, boom, lambda _: control, 0.1)


@pytest.mark.parametrize('spool', [math.nan, 7.0])
def test_a_command_out_of_range_ends_the_run(boom, spool):
    control = SimpleNamespace(cycle=lambda *_: np.full(4, spool))
    case = Case(postures(boom, 1)[0], 'stop')
    trace = run_case(case, boom, lambda _: control, 0.1)
    assert 'allowed: [-1, 1]' in trace.error
    assert trace.time.size == 1


def test_velocities_that_are_no_numbers_end_the_run(boom):
    class Lost(DampingController):
        def velocities(self, measured, wanted):
            return np.full(4, math.nan)

    case = Case(postures(boom, 1)[0], 'stop')
    trace = run_case(case, boom, Lost, 0.1)
    assert 'commands spools [nan' in trace.error

    class Scalar(DampingController):
        def velocities(self, measured, wanted):
            return np.float64(0.0)

    with pytest.raises(InputError, match=r'velocities returns .*0.0.*, allowed: 4 numbers'):
        run_case(case, boom, Scalar, 0.1)


def test_commands_under_way_are_those_that_were_given(boom):
    class Ramp(DampingController):
        def cycle(self, measured, wanted):
            self.commanded = self.commanded + 0.01
            return self.commanded

    class Same(Ramp):
        spools = np.zeros(4)

        def cycle(self, measured, wanted):
            self.spools[:] = super().cycle(measured, wanted)
            return self.spools

    case = Case(postures(boom, 1)[0], 'stop')
    fresh, same = (run_case(case, boom, kind, 0.3) for kind in (Ramp, Same))
    np.testing.assert_array_equal(fresh.spools, same.spools)


def test_modules_beside_users_files_have_different_names(tmp_path):
    for folder in ('a', 'b'):
        (tmp_path / folder / 'lib').mkdir(parents=True)
        for name in ('ctl.py', 'lib/gains.py'):
            (tmp_path / folder / name).touch()
    given = [f'{tmp_path}/{folder}/ctl.py:Mine' for folder in ('a', 'b')]
    with pytest.raises(InputError, match=r'lib and .*lib have one name, and only one is imported'):
        _check_neighbours(['none', *given])
    _check_neighbours(['none', given[0], f'{tmp_path}/a/other.py:Mine'])


@pytest.mark.slow
def test_the_command_goes_on_and_joins_a_user(tmp_path, capsys):

    def command(*arguments, code=0):
        assert cli.main(['benchmark', 'damping', '--processes', '1', *arguments]) == code
        said = capsys.readouterr()
        return said.err if code else said.out

    mine = tmp_path / 'mine.py'
    mine.write_text(
        'from lib.own_gains import GAIN\n'
        'from longreach_control.controller import DampingController\n\n\n'
        'class Mine(DampingController):\n'
        '    def velocities(self, measured, wanted):\n'
        '        print(GAIN)\n'
        '        return super().velocities(measured, wanted)\n'
    )
    gains = tmp_path / 'lib' / 'own_gains.py'
    gains.parent.mkdir()
    gains.write_text('GAIN = 1.0\n')
    results = tmp_path / 'results'
    options = ('--controllers', f'none,{mine}:Mine', '--disturbances', 'release')
    common = ('--postures', '2', '--results', str(results), *options)
    first = json.loads(command(*common, '--format', 'json'))
    assert first[f'{mine}:Mine']['cases'] == 2
    file = results / 'cases.jsonl'
    lines = file.read_text().splitlines(keepends=True)
    # Killed while the last case was written.
    file.write_text(''.join(lines[:2]) + lines[2][:20])
    again = json.loads(command(*common, '--format', 'json'))
    assert again == first
    assert (results / 'none.png').stat().st_size > 10_000
    with locked_directory(results):
        assert 'is being written by another process' in command(*common, code=2)
    gains.write_text('GAIN = 2.0\n')
    other = ('--postures', '2', '--results', str(results), '--controllers', 'none')
    for words in (common, other):
        said = command(*words, code=2)
        assert 'was begun with another boom or other controllers' in said
    assert 'has no class Yours' in command('--controllers', f'{mine}:Yours', code=2)
    assert "controller 'pid', allowed: none" in command('--controllers', 'pid', code=2)


def test_a_summary_says_what_was_reached(tmp_path):

    def one(damping, settling, error=''):
        found = Measures(damping, settling or math.inf, 0.01, 2e7, 3.0, 0.01, 0, error)
        return found._asdict() | {'settling': settling}

    mine = one(0.3, 2.0), one(0.1, None), one(0.5, 1.0, 'stuck')
    cases = [
        {
            'posture': k,
            'disturbance': 'release',
            'measures': {'none': one(0.01, 40.0), 'mine': found},
        }
        for k, found in enumerate(mine)
    ]
    found = summarize(cases)['mine']
    assert found['damped'] == pytest.approx(1.0 / 3.0)
    assert found['damping'] == pytest.approx(0.1)
    assert found['fast'] == pytest.approx(1.0 / 3.0)
    assert found['faster'] == 1.0
    assert found['failed'] == 1
    head = {'seed': 1}
    assert read_cases(tmp_path / 'new', head) == []
    # Without a case another one can begin, with one it cannot.
    assert read_cases(tmp_path / 'new', {'seed': 2}) == []
    file = tmp_path / 'new' / 'cases.jsonl'
    case = json.dumps({'posture': 0, 'disturbance': 'stop', 'settled': 0.1, 'measures': {}})
    file.write_text(file.read_text() + case + '\n')
    with pytest.raises(InputError, match='was begun with another boom'):
        read_cases(tmp_path / 'new', {'seed': 3})
    for damaged in ('null\n', '{"posture": 0}\n', 'words\n'):
        file.write_text('{"seed": 2}\n' + damaged)
        with pytest.raises(InputError, match='is no result of this benchmark'):
            read_cases(tmp_path / 'new', {'seed': 2})


@pytest.mark.parametrize(('number', 'what', 'end'), [(1, 'release', 1.0), (34, 'stop', 4.0)])
def test_neither_a_wrong_load_nor_noise_keeps_the_tip_swinging(boom, number, what, end):
    """With too much trust in the model the release swings on, with too little the stop."""
    case = Case(postures(boom, number + 1)[number], what)
    alone, trace = (run_case(case, boom, one) for one in (CONTROLLERS['none'], ModalFeedback))
    before, after = (
        settling_time(one.tip[one.time >= end], threshold(alone, end)) for one in (alone, trace)
    )
    assert after < 2.0 < before


@pytest.mark.parametrize(
    ('what', 'end', 'most'), [('pick_up', START, 0.8), ('stop', START + 3.0, 0.4)]
)
def test_the_tip_is_brought_to_its_rest_but_stops_where_it_is(boom, what, end, most):
    """Against friction that would hold it away; an operator's stop asks for no position."""
    trace = run_case(Case(postures(boom, 40)[39], what), boom, ModalFeedback, end + 4.0)
    assert settling_time(trace.tip[trace.time >= end], 0.01) < most


def test_motion_is_no_vibration():
    time = SAMPLE_TIME * np.arange(2000)

    def settles(x, least=0.01):
        return settling_time(np.stack([np.zeros(len(x)), x], axis=1), least)

    assert settles(np.zeros(2000)) == 0.0
    # In 0.3 s to another place; it is within 10 mm of it 0.03 s before.
    assert settles(0.1 * np.clip(time / 0.3, 0.0, 1.0)) == pytest.approx(0.27, abs=0.02)
    assert settles(0.1 * np.sin(3.0 * time)) == math.inf
    # As by its definition where the final value is known, to within some cycles.
    for frequency, ratio in ((0.34, 0.2), (0.45, 0.4), (0.6, 0.8)):
        w = 2.0 * math.pi * frequency
        swing = np.exp(-ratio * w * time) * np.sin(w * math.sqrt(1.0 - ratio**2) * time)
        last = time[np.flatnonzero(np.abs(swing) > 0.08)[-1]]
        assert settles(swing, 0.08) == pytest.approx(last, abs=0.06)
    assert settles(np.where(time > 12.0, 0.1 * np.sin(3.0 * time), 0.0)) == math.inf
    assert settles(0.1 * np.sin(3.0 * time)[:200]) == math.inf
    ramp = 0.3 * np.clip(time - START, 0.0, 3.0)
    trace = Trace(time, np.stack([ramp, ramp], axis=1), *[np.zeros(0)] * 5, '')
    assert vibration(trace, START + 3.0).max() < 1e-12
    swinging = trace._replace(tip=trace.tip + 0.1 * np.sin(3.0 * time)[:, None])
    most = vibration(swinging, START + 3.0)[600:].max()
    assert most == pytest.approx(0.1 * math.sqrt(2.0), rel=0.25)


def test_measures_name_violations(boom):
    rows = 500
    trace = Trace(
        SAMPLE_TIME * np.arange(rows),
        np.zeros((rows, 2)),
        np.zeros(rows),
        np.full((rows, 4), 0.3),
        np.full((rows, 8), 1e7),
        np.zeros((rows, 4)),
        np.zeros(rows),
        'ran away',
    )
    trace.pressures[100, 2], trace.pistons[200, 1] = 4e7, 0.0
    found = measure(trace, boom, 1.0, 0.01)
    assert found.violations == 2
    assert found.settling == math.inf
    assert found.pressure == 4e7
