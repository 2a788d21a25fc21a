"""Controlled runs: the tip's place and paths, what controllers follow, how well."""

import numpy as np
import pytest
from harvesters import STANDARD, run_of, shipped

from longreach_dynamics.valve_pid import new_memory, pid_cycle
from longreach_harvester.control import load_controller, references
from longreach_harvester.follower import HarvesterFollower, Measurement
from longreach_harvester.kinematics import TipSegment, angles_at, tip_at, tip_path
from longreach_harvester.parameters import JOINTS
from longreach_harvester.sensors import load_sensors

ANGLES = ('q_swing', 'q_boom', 'q_stick')


def test_angles_of_a_tip_and_back():
    random = np.random.default_rng(1)
    for _ in range(50):
        q = random.uniform((-3, -0.3, -1.9), (3, 1.2, -0.1))
        if np.hypot(*tip_at(STANDARD, q)[:2]) > 0.5 and tip_at(STANDARD, (0, *q[1:]))[0] > 0:
            assert angles_at(STANDARD, tip_at(STANDARD, q)) == pytest.approx(q, abs=1e-9)


def test_lines_are_straight_and_circles_are_round():
    start = np.array([0.1, 0.5, -1.2])
    centre = np.array([5.0, 0.5, 0.5])
    segments = [
        TipSegment(kind='line', duration=2.0, to=(5.0, 0.5, 0.0)),
        TipSegment(kind='circle', duration=3.0, centre=tuple(centre), normal=(0.2, 2.0, 0.0)),
    ]
    times = np.linspace(0, 6, 601)
    tip = tip_at(STANDARD, tip_path(STANDARD, start, segments, times))
    begin, end = tip_at(STANDARD, start), np.array([5.0, 0.5, 0.0])
    along = (end - begin) / np.linalg.norm(end - begin)
    off = np.cross(tip[:201] - begin, along)
    assert np.abs(off).max() < 1e-9
    axis = np.array([0.2, 2.0, 0.0]) / np.hypot(0.2, 2.0)
    radii = np.linalg.norm(np.cross(tip[201:] - centre, axis), axis=1)
    assert np.ptp(radii) < 1e-9
    assert np.ptp((tip[201:] - centre) @ axis) < 1e-9
    assert tip[-1] == pytest.approx(end), 'a full turn'
    # At rest at both ends of each.
    assert np.abs(np.diff(tip, axis=0)[[0, 199, 200, 499, 550]]).max() < 1e-5


ONLY = {'proportional': 0.0, 'integral': 0.0, 'derivative': 0.0, 'feed_forward': 0.0}


def cycle(error, memory=None, **changes):
    """Return the spool after a cycle with an error of the stick [rad], and the memory."""
    controller = load_controller()
    stick = controller.stick.replace(**{'derivative': 0.0, **changes})
    table = controller.replace(stick=stick).table(STANDARD)[2:]
    memory = new_memory(1) if memory is None else memory
    spools = np.zeros(1)
    pid_cycle(np.zeros(1), np.array([error]), memory, table, 0.01, spools)
    return spools[0], memory


def cycles(errors, **changes):
    """Return the spools of several cycles."""
    memory, spools = None, []
    for error in errors:
        spool, memory = cycle(error, memory, **changes)
        spools.append(spool)
    return np.array(spools)


def test_output_jumps_over_the_dead_band():
    gains = {'proportional': 50.0, 'full_volts': 10.0, 'smallest': 0.002, 'limit': 8.0}
    shares = {0.05: 0.25, -0.05: 0.25, 9.0: 0.8}
    for error, share in shares.items():
        spool, _ = cycle(error, **gains)
        assert spool == pytest.approx(np.sign(error) * (0.05 + 0.95 * share))
    assert cycle(3e-4, **gains)[0] == cycle(np.nan, **gains)[0] == 0.0


def test_an_open_valve_closes_later_than_it_opens():
    gains = {'proportional': 10.0, 'smallest': 0.01, 'closing': 0.004, 'full_volts': 10.0}
    spools = cycles((0.008, 0.012, 0.008, 0.003, 0.008, -0.008), **(ONLY | gains))
    assert (spools != 0.0).tolist() == [False, True, True, False, False, False]


def test_rate_of_the_error_goes_through_a_low_pass():
    gains = {'smallest': 0.0, 'closing': None, 'derivative': 2.0, 'derivative_time': 0.03}
    spools = cycles((0.0, 0.01, 0.02, 0.03), **(ONLY | gains))
    volts = (spools - 0.05 * np.sign(spools)) / 0.95 * 10.0
    assert volts == pytest.approx(2.0 * (1.0 - 0.75 ** np.arange(4)))


def test_rates_of_error_and_reference_count_from_the_second_cycle_on():
    spools = cycles((0.01, 0.02), **(ONLY | {'derivative': 2.0, 'feed_forward': 3.0}))
    assert spools == pytest.approx([0.0, 0.05 + 0.95 * (2.0 + 3.0) * 0.01 / 0.01 / 10.0])


def test_integral_does_not_grow_at_the_bound():
    _, memory = cycle(0.01, proportional=10.0, integral=5.0)
    assert memory[0, 0] == pytest.approx(5.0 * 0.01 * 0.01)
    _, memory = cycle(9.0, proportional=10.0, integral=5.0)
    assert memory[0, 0] == 0.0
    for _ in range(1000):
        _, memory = cycle(0.05, memory, proportional=10.0, integral=50.0, integral_limit=0.5)
    assert memory[0, 0] == 0.5


def test_stick_follows_a_sine_and_the_boom_stays_locked():
    chosen = shipped('sine', duration=10.0)
    run = run_of(chosen, step=1e-3)
    wanted = references(STANDARD, chosen, run.column('time'))
    assert np.isnan(wanted[:, :2]).all()
    assert wanted[[0, 250], 2] == pytest.approx([-1.6, -1.2])
    assert np.abs(wanted[:, 2] - run.column('q_stick')).max() < 0.02
    assert np.ptp(run.column('q_boom')) < 5e-3
    assert run.column('spool_boom').any() == 0
    fine = run_of(chosen, step=1e-4).column('q_stick')
    assert np.abs(run.column('q_stick') - fine).max() < 1e-4
    reduced = run_of(chosen, step=5e-3, model='reduced').column('q_stick')
    assert np.abs(reduced - fine).max() < 2e-3


@pytest.mark.parametrize('seed', [None, 1, 2])
def test_tip_follows_lines_and_circles(seed):
    """With true angles, and with the noise of typical sensors."""
    chosen = shipped('tip')
    sensors = None if seed is None else load_sensors('typical').replace(seed=seed)
    run = run_of(chosen, step=1e-3, sensors=sensors)
    wanted = tip_at(STANDARD, references(STANDARD, chosen, run.column('time')))
    error = np.linalg.norm(tip_at(STANDARD, run.stack(ANGLES)) - wanted, axis=1)
    assert error.max() == pytest.approx(run.tip_error)
    assert error.max() < 0.06
    assert run.warnings() == (), 'no oil cavitates'
    assert run.summary()['lowest_pressure'] > 5e5
    assert max(run.training()[f'reversals_{name}'] for name in JOINTS) <= 4
    assert np.ptp(wanted, axis=0).min() > 0.5


def test_joints_without_a_sine_stay_closed_until_a_trajectory_moves_them():
    guidance = HarvesterFollower(STANDARD, load_controller(), shipped('sine'))
    away = Measurement(np.array([0.0, 0.60, -1.6]))
    state, spools = guidance.answer(None, 0.0, away)
    assert spools == (0.0, 0.0, 0.0)
    # The boom is not looked after, so it is not left behind either.
    assert guidance.answer(state, 0.01, away)[0].resumptions == 0
    # Taken over anew in mid-run, the stick goes back to its sine, the boom is left alone.
    late = Measurement(np.array([0.0, 0.60, -1.4]))
    state, _ = guidance.answer(None, 2.0, late)
    reference = guidance.cycle(state, 3.0, late)[0].trajectory.at(3.0)
    assert np.isnan(reference.angles[:2]).all()
    assert np.isfinite(reference.angles[2])


def test_a_scenario_of_one_cycle_is_followed():
    guidance = HarvesterFollower(STANDARD, load_controller(), shipped('sine', duration=0.004))
    still = Measurement(np.array([0.0, 0.60, -1.6]))
    assert guidance.answer(None, 0.0, still)[1] == (0.0, 0.0, 0.0)
