"""The cohesion from measurements: known values come back, and useless data are refused."""

import dataclasses
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_excavator.cohesion import fit_cohesion
from longreach_excavator.columns import COLUMNS
from longreach_excavator.measurements import STEEL, Measurements, read_measurements
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.simulation import simulate

NOISE = {'force_lk': 1500.0, 'force_pk': 1500.0, 'theta_4': math.radians(0.3)}


@pytest.fixture
def dig(excavator):
    """Return a function that digs in a soil with a cohesion [Pa], with each step as a row."""

    def run(cohesion, duration, mode='hydraulic'):
        return simulate(excavator, dig_scenario(mode, cohesion, duration), sample_time=1e-3)

    return run


def measured(result, *columns, seed=0, every=10, share=1.0):
    """Return columns of a run with a share of the noise, at every so many rows."""
    exact = np.stack([result.column(name)[::every] for name in columns], axis=1)
    noise = np.random.default_rng(seed).standard_normal(exact.shape)
    noise *= [share * NOISE[name] for name in columns]
    return Measurements(columns, exact + noise, result.column('time')[::every])


def last_pose(result, error=0.0):
    """Return the last bucket angle of a run, off by an error [rad]."""
    return Measurements(('theta_4',), np.array([[result.column('theta_4')[-1] + error]]))


def blind(duration, mode='hydraulic', forces=''):
    """Return a dig that does not say its cohesion."""
    return dig_scenario(mode, None, duration, forces=forces)


@pytest.mark.slow
def test_known_cohesions_come_back_within_their_errors(excavator, dig):
    scores, both = [], ('force_lk', 'theta_4')
    cases = [(12e3, both[:1]), (17e3, both), (19.5e3, both[:1]), (19.5e3, both)]
    for seed, (cohesion, columns) in enumerate(cases):
        data = measured(dig(cohesion, 1.2), *columns, seed=seed)
        fit = fit_cohesion(excavator, blind(1.2), data)
        assert 5.0 < fit.standard_error < 0.02 * cohesion
        scores.append((fit.cohesion - cohesion) / fit.standard_error)
        for name, rms in fit.residuals().items():
            assert rms == pytest.approx(NOISE[name], rel=0.25)
    assert np.abs(scores).max() < 3.5
    # Neither are the errors far too large.
    assert 0.2 < np.sqrt(np.mean(np.square(scores))) < 2.0


@pytest.mark.slow
def test_narrow_valley_of_a_whole_sweep_is_found(excavator, dig):
    """The bucket is out of the soil after 6 s: another cohesion misses the time, or stalls."""
    data = measured(dig(17e3, 7.0), 'force_lk', every=20)
    fit = fit_cohesion(excavator, blind(7.0), data)
    assert abs(fit.cohesion - 17e3) < 3.5 * fit.standard_error < 20.0
    assert not fit.result.stalled()


def test_best_of_the_valleys_between_jumps_has_an_honest_error_of_few_rows(standard, monkeypatch):
    """After the sweep each cycle in which the valve may close has a valley of its own."""

    def angles(times, cohesion):
        jumps = np.where(times > 3.5, 0.03 * (cohesion / 25.0 % 1.0 - 0.5), 0.0)
        return 0.4 - 6e-5 * cohesion * np.minimum(times, 3.5) / 3.5 + jumps

    def run(_, scenario, sample_time):
        times = np.arange(0.0, 7.005, 100.0 * sample_time)
        columns = {'time': times, 'theta_4': angles(times, scenario.cohesion)}
        return SimpleNamespace(message='', column=columns.__getitem__)

    monkeypatch.setattr('longreach_excavator.cohesion.simulate', run)
    scores = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        true, times = random.uniform(12e3, 18e3), np.sort(random.uniform(0.3, 6.9, 15))
        shown = angles(times, true) + random.normal(0.0, 0.009, times.size)
        fit = fit_cohesion(standard, blind(7.0), Measurements(('theta_4',), shown[:, None], times))
        every = np.append(true + np.arange(-1000.0, 1000.0, 0.5), fit.cohesion)[:, None]
        squares = np.sum((angles(times, every) - shown) ** 2, axis=1) / 0.009**2
        assert squares[-1] < squares.min() + 0.5
        scores.append((fit.cohesion - true) / fit.standard_error)
    # Without Student's factor and the valleys nearby errors were 1.2 times as large as stated.
    assert 0.8 < np.sqrt(np.mean(np.square(scores))) < 1.1


@pytest.mark.slow
def test_pose_in_which_the_bucket_stalled_is_enough(excavator, dig):
    result, off = dig(22e3, 4.0), math.radians(0.2)
    fits = [
        fit_cohesion(excavator, blind(4.0), last_pose(result, off), noise={'theta_4': noise})
        for noise in (off, 2.0 * off)
    ]
    for fit in fits:
        assert fit.summary()['stalled']
        assert fit.fitted[0, 0] == pytest.approx(result.column('theta_4')[-1] + off, abs=1e-5)
    # One standard error off, as the measurement is.
    assert fits[0].cohesion - 22e3 == pytest.approx(fits[0].standard_error, rel=0.1)
    assert fits[1].standard_error == pytest.approx(2.0 * fits[0].standard_error, rel=0.1)


def test_pose_on_the_way_with_its_time_is_enough(excavator, dig):
    result = dig(15e3, 2.5)
    data = Measurements(
        ('theta_4',), result.column('theta_4')[-1:, None], result.column('time')[-1:]
    )
    # The scenario lasts as long as the data, whatever it says itself.
    fit = fit_cohesion(excavator, blind(7.0), data)
    assert fit.cohesion == pytest.approx(15e3, rel=1e-4)
    assert fit.result.column('time')[-1] == pytest.approx(2.5)


def test_exact_data_at_any_times_give_the_cohesion(excavator, dig):
    data = measured(dig(14.2e3, 1.2), 'force_pk', 'theta_4', every=37, share=0.0)
    fit = fit_cohesion(excavator, blind(1.2), data)
    assert fit.cohesion == pytest.approx(14.2e3, rel=1e-4)
    assert fit.residuals()['force_pk'] < 20.0


def test_printed_forces(excavator, dig):
    data = measured(dig(17e3, 0.14, 'printed'), 'force_lk', 'theta_4', every=1)
    fit = fit_cohesion(excavator, blind(0.14, 'printed'), data)
    assert abs(fit.cohesion - 17e3) < 3.5 * fit.standard_error < 200.0


@pytest.mark.slow
def test_measured_pressures_as_in_the_thesis(excavator, dig, tmp_path):
    """Pressures drive the machine, the strain of a rod tells the soil, all in one file."""
    result, area = dig(18e3, 1.5), 4.2e-3
    names = [name for name in COLUMNS.names if name == 'time' or name.startswith('p_')]
    rows = np.stack([result.column(name)[::5] for name in names], axis=1)
    data = measured(result, 'force_lk', every=5)
    strain, file = data.values / (area * STEEL), tmp_path / 'test.csv'
    head = ','.join([*names, 'strain_lk'])
    np.savetxt(file, np.hstack([rows, strain]), '%.10g', ',', header=head, comments='')
    read = read_measurements(file, area)
    assert np.allclose(read.values, data.values, rtol=1e-8)
    fit = fit_cohesion(excavator, blind(1.5, 'printed', str(file)), read)
    assert abs(fit.cohesion - 18e3) < 3.5 * fit.standard_error < 1000.0


@pytest.mark.slow
def test_errors_that_follow_each_other_count_as_fewer(excavator, dig):
    result, scores, errors = dig(17e3, 1.5), [], []
    for correlation in (0.0, 0.9):
        rng = np.random.default_rng(8)
        fresh = rng.standard_normal(151)
        noise = np.empty(151)
        noise[0] = fresh[0]
        for k in range(1, 151):
            noise[k] = correlation * noise[k - 1] + math.sqrt(1 - correlation**2) * fresh[k]
        values = result.column('force_lk')[::10] + 1500.0 * noise
        data = Measurements(('force_lk',), values[:, None], result.column('time')[::10])
        fit = fit_cohesion(excavator, blind(1.5), data)
        scores.append(abs(fit.cohesion - 17e3) / fit.standard_error)
        errors.append(fit.standard_error)
    assert max(scores) < 3.5
    # About the root of (1 + 0.9) / (1 - 0.9), 4.4; a short record shows less.
    assert 2.0 < errors[1] / errors[0] < 6.0


@pytest.mark.slow
def test_model_that_does_not_fit_gives_a_value_with_large_residuals(excavator, dig):
    """A valve that closes at another moment makes many narrow valleys; they are one."""
    data = measured(dig(17e3, 6.5), 'force_lk', 'theta_4', every=5, share=0.0)
    fit = fit_cohesion(excavator, blind(7.0).replace(depth='surface'), data)
    assert 17.5e3 < fit.cohesion < 21e3
    assert fit.residuals()['force_lk'] > 2e3
    exactly = fit_cohesion(excavator, blind(7.0), data)
    assert fit.standard_error > 1e3 * exactly.standard_error


def test_noise_that_is_given_weights_columns(excavator, dig):
    data = measured(dig(17e3, 1.5), 'force_lk', 'theta_4')
    # The rod's force with a wrong gauge factor.
    wrong = Measurements(data.columns, data.values * [1.1, 1.0], data.times)
    trusting = [
        fit_cohesion(excavator, blind(1.5), wrong, noise={'force_lk': noise}).cohesion
        for noise in (10.0, 1e6)
    ]
    assert abs(trusting[1] - 17e3) < 200.0
    assert trusting[0] > 18e3


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(('factor', 'late'), [(-1.0, 0), (1.0, 50)])
def test_a_force_that_the_model_does_not_explain_is_named(excavator, dig, factor, late):
    data = measured(dig(17e3, 1.5), 'force_lk', 'theta_4')
    assert fit_cohesion(excavator, blind(1.5), data).estimate.warnings == ()
    force = np.roll(data.values[:, 0], late) * factor
    wrong = Measurements(data.columns, np.c_[force, data.values[:, 1]], data.times)
    try:
        told = ' '.join(fit_cohesion(excavator, blind(1.5), wrong).estimate.warnings)
    except InputError as error:
        told = str(error)
    assert re.search('residuals of force_lk|explains nothing of .*force_lk', told)


def test_result_shows_what_it_came_from(excavator, dig):
    data = measured(dig(12e3, 1.0), 'force_lk', 'theta_4')
    fit = fit_cohesion(excavator, blind(1.0), data)
    assert fit.result.machine.parameters.soil.cohesion == fit.cohesion
    again = simulate(excavator, dig_scenario('hydraulic', fit.cohesion, 1.0), sample_time=0.01)
    for k, name in enumerate(data.columns):
        assert np.allclose(fit.fitted[:, k], again.column(name), rtol=1e-12)
        rms = np.sqrt(np.mean((fit.fitted[:, k] - data.values[:, k]) ** 2))
        assert fit.residuals()[name] == pytest.approx(rms)
        assert fit.estimate.fit[name].deviation == pytest.approx(rms, rel=0.01)
    assert fit.scan[fit.scan[:, 1].argmin(), 0] == fit.cohesion
    summary = fit.summary()
    assert [one['unit'] for one in summary['residuals'].values()] == ['N', 'rad']
    assert (summary['cohesion_pa'], summary['rows']) == (fit.cohesion, 101)


def test_pose_after_a_whole_sweep_is_refused_with_the_bound(excavator, dig):
    with pytest.raises(InputError, match='do not determine the cohesion') as caught:
        fit_cohesion(excavator, blind(5.0), last_pose(dig(12e3, 5.0)))
    found = re.search(r'from 1000 to (\d+) Pa fit equally well', str(caught))
    bound = float(found[1])
    # With the bound the bucket sweeps just in time, with a little more it does not.
    assert dig(0.99 * bound, 5.0).time_to_sweep() is not None
    assert dig(1.02 * bound, 5.0).time_to_sweep() is None


def test_cohesion_outside_the_bounds_is_refused(excavator, dig):
    data = measured(dig(12e3, 1.0), 'force_lk')
    with pytest.raises(InputError, match=r'from 15000 to .* at its lower bound 15000'):
        fit_cohesion(excavator, blind(1.0), data, bounds=(15e3, 1e5))
    with pytest.raises(
        InputError, match=r'from \d+ to 8000 Pa .* or give other bounds than 2000 to'
    ):
        fit_cohesion(excavator, blind(1.0), data, bounds=(2e3, 8e3))


def test_columns_of_a_run_are_taken_once(dig, tmp_path):
    result, file = dig(12e3, 0.1), tmp_path / 'dig.csv'
    rows = np.stack([result.column(name) for name in COLUMNS.names], axis=1)
    np.savetxt(file, rows, '%.17g', ',', header=','.join(COLUMNS.names), comments='')
    data = read_measurements(file)
    # Lengths say the same as the angles.
    assert data.columns == ('force_lk', 'force_pk', 'theta_2', 'theta_3', 'theta_4')
    assert np.array_equal(data.values[:, 1], result.column('force_pk'))
    file.write_text(file.read_text().replace('theta_4', 'other', 1))
    assert read_measurements(file).columns[-1] == 'length_bucket'


def test_degrees_and_strains_are_turned_into_angles_and_forces(tmp_path):
    file = tmp_path / 'test.csv'
    file.write_text('time,theta_4_deg,strain_pk\n0,90,1e-4\n1,45,-2e-4\n')
    data = read_measurements(file, 5e-3, 2e11)
    assert data.columns == ('force_pk', 'theta_4')
    assert np.allclose(data.values, [[1e5, math.pi / 2], [-2e5, math.pi / 4]])


def test_scenario_that_runs_away_is_said_so(excavator, monkeypatch):
    failed = dataclasses.replace(simulate(excavator, blind(0.5)), message='it runs away')
    monkeypatch.setattr('longreach_excavator.cohesion.simulate', lambda *_, **_more: failed)
    data = Measurements(('theta_4',), np.zeros((1, 1)), np.array([0.5]))
    with pytest.raises(InputError, match='runs away with every cohesion'):
        fit_cohesion(excavator, blind(0.5), data)
