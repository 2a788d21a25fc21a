"""Runs: against a tight reference, energy, locking, the reduced model, division into calls."""

from pathlib import Path

import harvester_reference as reference
import numpy as np
import pytest
from harvesters import STANDARD, changed, jumping, scenario

from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import BY_SCENARIO
from longreach_harvester.machine import Harvester
from longreach_harvester.model import SIZE, UNSOLVED, reduced_step
from longreach_harvester.parameters import JOINTS
from longreach_harvester.scenario import load_scenario
from longreach_harvester.simulation import COLUMNS, simulate
from longreach_tools.scenarios import find_scenario

ANGLES = [f'q_{name}' for name in JOINTS]


def run_of(chosen, parameters=STANDARD, step=2.5e-4, **options):
    run = simulate(Harvester(parameters, chosen, step, **options))
    run.check()
    return run


def open_loop():
    return load_scenario(find_scenario(Path('open_loop'), 'harvester_', 'harvester'))


# --- a second implementation ----------------------------------------------------------------


def differences(run, states):
    angles = np.abs(run.stack(ANGLES)[::50] - states[:, :3]).max()
    pressures = [f'p_{side}_{name}' for side in (1, 2) for name in JOINTS]
    return angles, np.abs(run.stack(pressures)[::50] - states[:, 6:12]).max()


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ('options', 'end'),
    [({}, 1.0), ({'as_printed': True}, 0.5), ({'switching': False}, 0.5), ({}, 3.0)],
)
def test_full_model_is_near_a_tight_reference(options, end):
    """Jumps of the spools, all three moving, another machine than the standard one."""
    chosen = jumping().replace(duration=end)
    run = run_of(chosen, changed(), **options)
    times = np.round(np.arange(0, end + 0.1, 0.5), 6)
    states = reference.solve(changed(), chosen, times, tolerance=1e-7, **options)
    angles, pressures = differences(run, states)
    assert angles < 2e-5
    assert pressures < 3e4


@pytest.mark.slow
def test_open_loop_is_near_a_tight_reference():
    times = np.round(np.arange(0, 12.001, 0.5), 6)
    states = reference.solve(STANDARD, open_loop(), times, tolerance=1e-10)
    angles, pressures = differences(run_of(open_loop()), states)
    assert angles < 2e-5
    assert pressures < 3e3
    # Published beside the case.
    assert states[times == 4, 1:3] == pytest.approx(np.array([[0.639486, -1.194231]]), abs=2e-6)
    assert states[times == 6, 2] == pytest.approx(-1.284969, abs=1e-6)


def test_error_falls_with_the_step():
    fine = run_of(jumping(), step=5e-5).stack(ANGLES)
    errors = [np.abs(run_of(jumping(), step=h).stack(ANGLES) - fine).max() for h in (2e-3, 2.5e-4)]
    assert errors[0] < 2e-4
    assert errors[1] < errors[0] / 4


# --- balances -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'options', [{}, {'switching': False}, {'as_printed': True}, {'model': 'reduced'}]
)
@pytest.mark.parametrize('chosen', [open_loop(), jumping()])
def test_energy_balance_is_closed(options, chosen):
    """Through switching and jumps, too."""
    run = run_of(chosen.replace(duration=2.5), step=1e-4, **options)
    assert run.energy_error() < 1e-6
    assert run.column('work_supply')[-1] > 1e3


# --- closed valves --------------------------------------------------------------------------


def test_closed_valves_lock_and_open_ones_with_the_greatest_resistance_leak():
    still = scenario(30.0)
    assert np.ptp(run_of(still, step=1e-3).stack(ANGLES), axis=0).max() < 1e-9
    drift = np.ptp(run_of(still, step=1e-3, switching=False).stack(ANGLES), axis=0)
    assert drift.max() > 1e-2


@pytest.mark.slow
def test_locked_links_do_not_drift_after_a_motion():
    # Oil and bodies swing for minutes after such a stop; then nothing is left.
    chosen = scenario(
        1000.0, boom=[[0, 0.2], [1, 0.2], [1, 0]], stick=[[0, -0.2], [1, -0.2], [1, 0]]
    )
    run = run_of(chosen, step=1e-3)
    late = run.stack(ANGLES)[run.column('time') >= 400.0]
    assert np.ptp(late, axis=0).max() < 1e-6


def test_nothing_jumps_when_valves_switch():
    run = run_of(open_loop().replace(duration=5.0))
    changes = np.abs(np.diff(run.column('closed_stick'))) > 0
    assert changes.sum() == 4
    for name in ('p_1_stick', 'p_2_stick', 'q_1_stick', 'q_2_stick', 'rate_stick'):
        steps = np.abs(np.diff(run.column(name)))
        assert steps[changes].max() < 3 * np.quantile(steps, 0.99), name


# --- the reduced model ----------------------------------------------------------------------


def test_reduced_model_follows_the_full_one():
    chosen = scenario(3.0, stick=[[0, 0], [0.5, 0.25], [1.5, 0.25], [2.5, -0.25], [3, -0.25]])
    full = run_of(chosen).column('q_stick')
    reduced = run_of(chosen, step=5e-3, model='reduced').column('q_stick')
    assert np.ptp(full) > 0.3
    assert np.abs(reduced - full).max() < 2e-3


def test_reduced_model_moves_pistons_as_its_equation_says():
    """Steady motion: x' of (17), with the root over the whole quotient."""
    chosen = scenario(1.0, boom=[[0, 0.3]])
    run = run_of(chosen, step=1e-3, model='reduced')
    force, rate = run.column('force_boom')[-1], run.column('rate_boom')[-1]
    cylinder = STANDARD.boom_cylinder
    C_R = cylinder.valve.resistance / ((0.3 - 0.05) / 0.95) ** 2 + cylinder.line.resistance
    A_1, A_2 = cylinder.head_area, cylinder.rod_area
    speed = np.sqrt((A_1 * 1.9e7 - force) / (C_R * (A_1**3 + A_2**3)))
    arm = cylinder.linkage.arm(float(run.column('q_boom')[-1]))
    assert rate * arm == pytest.approx(speed, rel=2e-3)


# --- the machine ----------------------------------------------------------------------------


@pytest.mark.parametrize('model', ['full', 'reduced'])
def test_division_into_calls_does_not_matter(model):
    machine = Harvester(STANDARD, jumping(), 1e-3, model)
    whole, rows = machine.advance_recorded(machine.initial_state(), BY_SCENARIO, 0, 1300, 13)
    state, found = machine.initial_state(), []
    for first, steps in ((0, 7), (7, 500), (507, 793)):
        state, table = machine.advance_recorded(state, BY_SCENARIO, first, steps, 13)
        found.append(table)
    assert np.array_equal(np.concatenate(found), rows)
    assert np.array_equal(state.y, whole.y)
    assert state.spools == whole.spools


def test_constant_commands_are_knots_that_do_not_change():
    machine = Harvester(STANDARD, scenario(boom=[[0, 0.2]], stick=[[0, -0.3]]), 1e-3)
    start = machine.initial_state()
    by_command = machine.advance(start, (0.0, 0.2, -0.3), 0.0, 0.5)
    assert np.array_equal(by_command.y, machine.advance(start, BY_SCENARIO, 0.0, 0.5).y)
    assert by_command.spools == (0.0, 0.2, -0.3)
    sample = machine.joint_sample(by_command, (0.0, 0.2, -0.3))
    assert sample.names[:3] == JOINTS
    assert sample.positions[1] > 0.55
    assert sample.efforts[1] > 0.0


def test_a_linkage_past_its_dead_point_ends_the_run_with_a_reason():
    run = simulate(Harvester(STANDARD, scenario(20.0, boom=[[0, 1.0]]), 1e-3))
    assert 'dead point' in run.message
    assert 0 < len(run.table) < 2001
    assert run.status == 'failed'


def test_pressures_below_zero_are_said():
    run = simulate(Harvester(STANDARD, scenario(3.0, stick=[[0, -1.0], [0.5, -1.0], [0.5, 0]])))
    assert 'cavitate' in run.warnings()[0]
    assert run.column('time')[0] == 0.0


@pytest.mark.parametrize(
    ('options', 'what'),
    [
        ({'step': 0.01}, 'step = 0.01'),
        ({'step': float('nan')}, 'step = nan'),
        ({'model': 'half'}, 'full | reduced'),
    ],
)
def test_impossible_options_are_refused(options, what):
    with pytest.raises(InputError, match=what):
        Harvester(STANDARD, scenario(), **options)


def test_impossible_poses_pressures_and_commands_are_refused():
    with pytest.raises(InputError, match='boom = 2'):
        Harvester(STANDARD, scenario(angles=(0, 2.4, -1)))
    with pytest.raises(InputError, match='rod_pressure'):
        Harvester(STANDARD, scenario(angles=(0, 0.5, -2.5)).replace(rod_pressure=0.0))
    machine = Harvester(STANDARD, scenario())
    for command in ((0.0, 0.0), (0.0, 0.0, float('nan')), (0.0, 2.0, 0.0)):
        with pytest.raises(InputError, match='spools'):
            machine.advance(machine.initial_state(), command, 0.0, 0.01)


def test_columns_are_those_of_the_documents():
    families = ['q', 'rate', 'spool', 'p_1', 'p_2', 'q_1', 'q_2', 'force']
    expected = [f'{family}_{name}' for family in families for name in JOINTS]
    assert list(COLUMNS.names[: 1 + len(expected)]) == ['time', *expected]


def test_a_reduced_step_without_a_solution_says_so():
    machine = Harvester(STANDARD, jumping(), model='reduced')
    y, model = machine.initial_state().y.copy(), machine.constants
    model = model._replace(bodies=model.bodies._replace(gravity=np.nan))
    step = (y, np.full(3, 0.2), np.zeros(3, bool), 1e-3, model)
    assert reduced_step(*step, np.zeros((4, SIZE)), np.zeros(5)) == UNSOLVED
