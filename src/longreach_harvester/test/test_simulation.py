"""Runs: against a tight reference, energy, locking, the reduced model, division into calls."""

import dataclasses

import harvester_reference as reference
import numpy as np
import pytest
from harvesters import (
    REALISTIC,
    STANDARD,
    changed,
    hanging,
    jumping,
    run_of,
    scenario,
    shipped,
    small_pump,
    without,
)

from longreach_dynamics.stepping import IntegrationError
from longreach_harvester import machine as machine_module
from longreach_harvester.bodies import HEAD
from longreach_harvester.machine import Harvester
from longreach_harvester.model import UNSOLVED
from longreach_harvester.parameters import JOINTS
from longreach_harvester.sensors import load_sensors
from longreach_harvester.simulation import simulate, with_step_error
from longreach_machine.machine import BY_SCENARIO, step_time

ANGLES = [f'q_{name}' for name in JOINTS]
PRESSURES = [f'p_{side}_{name}' for side in (1, 2) for name in JOINTS]
LOGS = {'attach': [{'time': 0.8, 'mass': 400.0}], 'release': [1.6]}
TO_AND_FRO = [[0, 0], [0.5, 0.25], [1.5, 0.25], [2.5, -0.25], [3, -0.25]]
EMPTYING = [[0, -1.0], [0.5, -1.0], [0.5, 0]]


@pytest.mark.slow_after(5)
@pytest.mark.parametrize(
    ('machine', 'chosen', 'options', 'pressure'),
    [
        # Jumps of the spools, all three moving, another machine than the standard one.
        (changed(), jumping().replace(duration=1.0), {}, 3e4),
        (changed(), jumping().replace(duration=0.5), {'as_printed': True}, 3e4),
        (changed(), jumping().replace(duration=0.5), {'switching': False}, 3e4),
        # The stick comes to its stop, while the line that the pump feeds is empty.
        (STANDARD, scenario(1.0, (0.0, 0.55, -1.75), stick=[[0, -0.6]]), {'step': 1e-4}, np.inf),
        # Relief valves open, the pump is near its largest flow.
        (without(small_pump(), 'pendulum', 'lag'), shipped('open_loop', duration=2.5), {}, 3e4),
        (changed(), jumping(), {}, 3e4),
        (STANDARD, shipped('open_loop'), {'tolerance': 1e-10}, 3e3),
    ],
)
def test_full_model_is_near_a_tight_reference(machine, chosen, options, pressure):
    tolerance, step = options.get('tolerance', 1e-7), options.get('step', 2.5e-4)
    options = {k: v for k, v in options.items() if k not in ('tolerance', 'step')}
    run = run_of(chosen, machine, step, **options)
    times = np.round(np.arange(0, chosen.duration + 0.001, 0.5), 6)
    states = reference.solve(machine, chosen, times, tolerance=tolerance, **options)
    assert np.abs(run.stack(ANGLES)[::50] - states[:, :3]).max() < 2e-5
    expected = states[:, 6:12] if run.as_printed else np.maximum(states[:, 6:12], 0.0)
    assert np.abs(run.stack(PRESSURES)[::50] - expected).max() < pressure
    if pressure == np.inf:
        assert run.state.counters[1] < -1e5
        assert run.column('loss_stops')[-1] > 10.0
    if machine.pump:
        assert run.column('rail_flow').max() > 0.95 * machine.pump.flow
        assert np.abs(run.stack(['port_1_boom', 'port_2_stick'])).max() > 1e-5
    if tolerance == 1e-10:
        # Published beside the case.
        assert states[times == 4, 1] == pytest.approx(0.639486, abs=2e-6)
        assert states[times == 4, 2] == pytest.approx(-1.194231, abs=2e-6)
        assert states[times == 6, 2] == pytest.approx(-1.284969, abs=1e-6)


@pytest.mark.parametrize(
    ('machine', 'chosen', 'longest'),
    [(STANDARD, jumping(), 2e-3), (small_pump(), shipped('open_loop', duration=2.5), 1e-3)],
)
def test_error_falls_with_the_step(machine, chosen, longest):
    runs = [run_of(chosen, machine, step).stack(ANGLES) for step in (longest, 2.5e-4, 5e-5)]
    errors = [np.abs(run - runs[2]).max() for run in runs]
    assert errors[0] < 2e-4
    assert errors[1] < errors[0] / 4


def test_a_line_that_a_make_up_valve_feeds_does_not_depend_on_the_step():
    """The boom rises with its rod side fed by the charge line, and is reversed."""
    chosen = scenario(
        4.0, angles=(0.0, 0.55, -1.2), boom=[[0, 1], [2, 1], [2, -1], [4, -1]]
    ).replace(rod_pressure=1e7)
    exact, run = (run_of(chosen, REALISTIC, step=step) for step in (6.25e-5, 2.5e-4))
    assert run.column('port_2_boom').max() > 5e-4
    for name in ANGLES:
        assert np.abs(run.column(name) - exact.column(name)).max() < 2e-5, name


@pytest.mark.parametrize(
    'chosen', [shipped('open_loop', duration=2.5, **LOGS), jumping().replace(duration=2.5)]
)
@pytest.mark.parametrize(
    ('machine', 'options', 'losses'),
    [
        (STANDARD, {}, {}),
        (STANDARD, {'switching': False}, {}),
        (STANDARD, {'as_printed': True}, {}),
        (STANDARD, {'model': 'reduced'}, {}),
        (hanging(), {}, {'head': 1.0}),
        (hanging(), {'model': 'reduced'}, {'head': 1.0}),
        (REALISTIC, {}, {'pump': 50.0, 'head': 1.0}),
        (small_pump(), {}, {'pump': 50.0, 'head': 1.0, 'ports': 100.0}),
    ],
)
def test_energy_balance_is_closed(machine, chosen, options, losses):
    """Through switching and jumps, too."""
    run = run_of(chosen, machine, step=1e-4, **options)
    assert run.energy_error() < 1e-6
    assert run.column('work_supply')[-1] > 1e3
    for name, least in losses.items():
        assert run.column(f'loss_{name}')[-1] > least
    if chosen.attach:
        assert run.column('log')[[80, 81, 160, 161]].tolist() == [0.0, 400.0, 400.0, 0.0]
        assert run.column('energy_potential')[81] != run.column('energy_potential')[80]


@pytest.mark.parametrize('options', [{'step': 1e-4}, {'step': 1e-3, 'model': 'reduced'}])
def test_energy_balance_contains_stops_and_lines_that_lack_oil(options):
    knots = [[0, -1.0], [1.5, -1.0], [1.5, 1.0], [3, 1.0], [3, 0]]
    run = run_of(scenario(4.0, boom=knots, stick=knots), **options)
    assert run.energy_error() < 3e-5
    assert run.column('loss_stops')[-1] > 1e3
    assert run.state.counters[1] < -1e7


def test_steps_that_lose_energy_are_said():
    """Spools that switch every 15 ms, at first in too long steps."""
    way = [0.08 * (-1) ** (k // 2) for k in range(532)]
    times = [0.015 * ((k + 1) // 2) for k in range(532)]
    knots = list(zip(times, way, strict=True))
    rough, fine = (run_of(scenario(4.0, boom=knots), step=h) for h in (1e-3, 2.5e-4))
    assert rough.energy_error() > 1e-3 > fine.energy_error()
    assert 'the energy balance is off by' in rough.warnings()[-1]
    assert 'shorter step' in rough.warnings()[-1]
    assert not fine.warnings()


def test_closed_valves_lock_and_open_ones_with_the_greatest_resistance_leak():
    still = scenario(30.0)
    assert np.ptp(run_of(still, step=1e-3).stack(ANGLES), axis=0).max() < 1e-9
    drift = np.ptp(run_of(still, step=1e-3, switching=False).stack(ANGLES), axis=0)
    assert drift.max() > 1e-2


@pytest.mark.slow
def test_locked_links_do_not_drift_after_a_motion():
    # Oil and bodies swing for minutes after such a stop; then nothing is left.
    moves = {'boom': [[0, 0.2], [1, 0.2], [1, 0]], 'stick': [[0, -0.2], [1, -0.2], [1, 0]]}
    run = run_of(scenario(1000.0, **moves), step=1e-3)
    late = run.stack(ANGLES)[run.column('time') >= 400.0]
    assert np.ptp(late, axis=0).max() < 1e-6


def test_nothing_jumps_when_valves_switch():
    run = run_of(shipped('open_loop', duration=5.0))
    changes = np.abs(np.diff(run.column('closed_stick'))) > 0
    assert changes.sum() == 4
    for name in ('p_1_stick', 'p_2_stick', 'q_1_stick', 'q_2_stick', 'rate_stick'):
        steps = np.abs(np.diff(run.column(name)))
        assert steps[changes].max() < 3 * np.quantile(steps, 0.99), name


@pytest.mark.parametrize(
    ('model', 'machine'), [('full', STANDARD), ('full', REALISTIC), ('reduced', STANDARD)]
)
@pytest.mark.parametrize('spool', [1.0, -1.0])
@pytest.mark.parametrize('joint', ['boom', 'stick'])
def test_a_spool_that_is_held_ends_at_the_stop(joint, spool, model, machine):
    knots = [[0, 0], [0.1, spool]]
    run = run_of(scenario(12.0, **{joint: knots}), machine, step=1e-3, model=model)
    end = machine.joint_limits()[JOINTS.index(joint), int(spool > 0.0)]
    beyond = np.sign(spool) * (run.column(f'q_{joint}') - end)
    assert 0.0 < beyond.max() < 0.025
    assert beyond[-100:].min() > -0.1, 'it bounces off less and less'
    assert run.column('loss_stops')[-1] > 100.0
    assert run.energy_error() < 1e-4
    if machine is REALISTIC:
        assert not run.warnings()


def test_a_run_that_ends_early_counts_up_to_there():
    """Not up to the begin of the piece of 20,000 steps in which it ends."""
    heavy = STANDARD.with_value('head.mass', 1e6)
    run = simulate(Harvester(heavy, shipped('tip')))
    assert run.status == 'failed'
    closed = run.stack([f'closed_{name}' for name in JOINTS])
    summary = run.summary()
    assert summary['switchings'] == np.abs(np.diff(closed, axis=0)).sum() > 0
    assert summary['lowest_pressure'] == run.stack(PRESSURES).min() == 0.0
    assert 'oil cavitates' in run.warnings()[0]


def test_lines_that_lack_oil_have_the_vapour_pressure_and_it_is_said():
    chosen = scenario(3.0, stick=EMPTYING)
    for model in ('full', 'reduced'):
        run = run_of(chosen, step=1e-3, model=model)
        assert run.stack(PRESSURES).min() == run.summary()['lowest_pressure'] == 0.0
        assert 'oil cavitates' in run.warnings()[0]
        assert run.state.counters[1] < 0.0
    printed = run_of(chosen, step=1e-3, as_printed=True)
    assert printed.summary()['lowest_pressure'] < -1e6
    assert 'what follows is not valid' in printed.warnings()[0]


@pytest.mark.parametrize(
    'chosen', [*map(shipped, ('open_loop', 'sine', 'tip')), scenario(3.0, stick=EMPTYING)]
)
def test_make_up_valves_keep_pressures_above_zero(chosen):
    run = run_of(chosen, REALISTIC, step=1e-3)
    assert run.state.counters[1] > 0.0
    if chosen.spools.stick[0][1] < 0.0:
        assert run.stack(['port_1_stick', 'port_2_stick']).max() > 1e-5
    else:
        assert not run.warnings()


@pytest.mark.parametrize(
    ('machine', 'names', 'step', 'most'),
    [(STANDARD, ['q_stick'], 5e-3, 2e-3), (hanging(), ['q_head_pitch', 'q_stick'], 1e-3, 1e-2)],
)
def test_reduced_model_follows_the_full_one(machine, names, step, most):
    chosen = scenario(4.0, stick=TO_AND_FRO)
    full = run_of(chosen, machine).stack(names)
    reduced = run_of(chosen, machine, step, model='reduced').stack(names)
    assert np.ptp(full[:, 0]) > 0.3
    assert np.abs(reduced - full).max() < most


def test_reduced_model_moves_pistons_as_its_equation_says():
    """Steady motion: x' of (17), with the root over the whole quotient."""
    run = run_of(scenario(1.0, boom=[[0, 0.3]]), step=1e-3, model='reduced')
    force, rate = run.column('force_boom')[-1], run.column('rate_boom')[-1]
    cylinder = STANDARD.boom_cylinder
    C_R = cylinder.valve.resistance / ((0.3 - 0.05) / 0.95) ** 2 + cylinder.line.resistance
    A_1, A_2 = cylinder.head_area, cylinder.rod_area
    speed = np.sqrt((A_1 * 1.9e7 - force) / (C_R * (A_1**3 + A_2**3)))
    arm = cylinder.linkage.arm(float(run.column('q_boom')[-1]))
    assert rate * arm == pytest.approx(speed, rel=2e-3)


def test_a_reduced_step_without_a_solution_says_so(monkeypatch):
    ends, advance = [], machine_module.advance

    def observed(*arguments):
        ends.append(advance(*arguments))
        return ends[-1]

    machine = Harvester(STANDARD, jumping(), model='reduced')
    bodies = machine.constants.bodies._replace(gravity=np.nan)
    broken = machine.constants._replace(bodies=bodies)
    monkeypatch.setattr(Harvester, 'with_log', lambda *_: broken)
    monkeypatch.setattr(machine_module, 'advance', observed)
    with pytest.raises(IntegrationError, match='cannot go on in the step at t = 0 s'):
        machine.advance(machine.initial_state(), (0.2, 0.2, 0.2), 0.0, 0.01)
    assert ends == [(0, UNSOLVED)]


@pytest.mark.parametrize(
    ('machine', 'chosen', 'options'),
    [
        (STANDARD, jumping(), {}),
        (STANDARD, jumping(), {'model': 'reduced'}),
        (REALISTIC, jumping().replace(**LOGS), {}),
        (hanging(), jumping().replace(**LOGS), {'model': 'reduced'}),
        (STANDARD, shipped('sine'), {}),
        (STANDARD, shipped('tip'), {'sensors': load_sensors('typical')}),
    ],
)
def test_division_into_calls_does_not_matter(machine, chosen, options):
    machine = Harvester(machine, chosen, 1e-3, **options)
    whole, rows = machine.advance_recorded(machine.initial_state(), BY_SCENARIO, 0, 1300, 13)
    state, found = machine.initial_state(), []
    for first, steps in ((0, 4), (4, 796), (800, 500)):
        state, table = machine.advance_recorded(state, BY_SCENARIO, first, steps, 13)
        found.append(table)
    assert np.array_equal(np.concatenate(found), rows)
    assert np.array_equal(state.y, whole.y)
    assert np.array_equal(state.memory, whole.memory, equal_nan=True)
    assert (state.spools, state.commands) == (whole.spools, whole.commands)


@pytest.mark.parametrize('rate', [60.0, 400.0, 150.0])
def test_samples_that_are_no_whole_steps_do_not_shift_time(rate):
    machine = Harvester(STANDARD, jumping())
    whole = machine.advance(machine.initial_state(), BY_SCENARIO, 0.0, 1.0)
    state = machine.initial_state()
    for k in range(round(rate)):
        state = machine.advance(state, BY_SCENARIO, step_time(k, 1.0 / rate), 1.0 / rate)
    np.testing.assert_array_equal(state.y, whole.y)


def test_constant_commands_are_knots_that_do_not_change():
    machine = Harvester(STANDARD, scenario(boom=[[0, 0.2]], stick=[[0, -0.3]]), 1e-3)
    start = machine.initial_state()
    by_command = machine.advance(start, (0.0, 0.2, -0.3), 0.0, 0.5)
    assert np.array_equal(by_command.y, machine.advance(start, BY_SCENARIO, 0.0, 0.5).y)
    assert by_command.spools == (0.0, 0.2, -0.3)


def test_spools_follow_their_commands_with_lag_and_bounded_speed():
    run = run_of(scenario(0.5, stick=[[0, 0], [0.1, 0], [0.1, 0.5]]), REALISTIC, step=1e-3)
    spool, time = run.column('spool_stick'), run.column('time')
    assert np.interp(0.13, time, spool) == pytest.approx(0.3, abs=1e-9)
    # After 30 ms at full speed the lag takes over, 0.2 = 10 1/s 20 ms behind.
    assert np.interp(0.2, time, spool) == pytest.approx(0.5 - 0.2 * np.exp(-3.5), abs=1e-9)
    assert run.column('closed_stick')[time > 0.106].max() == 0


def test_a_head_hangs_still_and_swings_with_its_period():
    # Of such inertia that the swing does not follow.
    machine = Harvester(hanging().with_value('swing.inertia', 1e7), scenario(10.0), 1e-3)
    run = simulate(machine)
    assert np.ptp(run.stack(['q_head_pitch', 'q_boom']), axis=0).max() < 1e-9
    state = machine.initial_state()
    y = state.y.copy()
    y[HEAD + 1] = 0.05
    _, rows = machine.advance_recorded(state._replace(y=y), BY_SCENARIO, 0, 10_000, 10)
    roll = rows[:, HEAD + 1]
    crossings = np.flatnonzero((roll[:-1] > 0) != (roll[1:] > 0))
    head = hanging().head
    moment, inertia = head.mass * head.pendulum.centre, head.pendulum.transverse_inertia
    inertia += moment * head.pendulum.centre
    period = 2 * np.pi * np.sqrt(inertia / (9.81 * moment))
    assert np.diff(crossings).mean() * 0.02 == pytest.approx(period, rel=0.01)
    decay = np.exp(-0.5 * head.pendulum.damping / inertia * 8.0)
    assert np.abs(roll[800:]).max() == pytest.approx(0.05 * decay, rel=0.2)


@pytest.mark.parametrize('machine', [STANDARD, hanging()])
def test_a_log_at_time_0_is_held_in_equilibrium(machine):
    run = run_of(scenario(5.0).replace(log=400.0), machine, step=1e-3)
    assert np.ptp(run.stack(ANGLES), axis=0).max() < 1e-9
    light = run_of(scenario(1.0), machine, step=1e-3)
    assert run.column('p_1_boom')[0] > light.column('p_1_boom')[0]


@pytest.mark.slow
@pytest.mark.parametrize(('model', 'step'), [('full', 1e-3), ('reduced', 5e-3)])
@pytest.mark.parametrize('seed', range(16))
def test_step_error_is_about_the_error(model, step, seed):
    random = np.random.default_rng(seed)
    spools = {}
    for name in JOINTS:
        knots = [[0.0, 0.0]]
        for time in np.sort(random.uniform(0.0, 6.0, 6).round(3)).tolist():
            knots += [[time, knots[-1][1]], [time, random.uniform(-1.0, 1.0)]]
        spools[name] = knots
    machine = Harvester(STANDARD, scenario(8.0, **spools), step, model=model)
    run = simulate(machine, 0.02)
    exact = simulate(dataclasses.replace(machine, step=step / 16), 0.02)
    errors = np.abs(run.stack(ANGLES) - exact.stack(ANGLES)).max(axis=0)
    stated = with_step_error(machine, run, 0.02).step_error
    # With 1/16 of the step an error of first order, the largest, is a sixteenth too small.
    assert (errors < 1.3 * np.array([*stated.values()])).all()
