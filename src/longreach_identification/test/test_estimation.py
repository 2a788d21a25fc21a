"""Tests of weighted least squares and its standard errors."""

import json
import math
from typing import NamedTuple

import numpy as np
import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_identification import covariance
from longreach_identification.estimation import Prior, Problem, Unknown, estimate, profile
from longreach_identification.machine import Recording, Signal
from longreach_identification.search import CONVERGED, INTERRUPTED, STOPPED

TIMES = np.arange(0.0, 10.0, 0.02)


def oscillation(values, times):
    return (
        values['amplitude']
        * np.exp(-values['decay'] * times)
        * np.cos(2.0 * math.pi * values['frequency'] * times)
    )


class Decay(NamedTuple):
    """The model of these tests; ``none_above``: frequency above which it has no prediction."""

    recordings: tuple[Recording, ...]
    none_above: float = math.inf

    def __call__(self, number, values):
        if values['frequency'] > self.none_above:
            raise LongreachError(f'frequency = {values["frequency"]:g}')
        return {
            name: oscillation(values, signal.times) * (2.0 if name == 'double' else 1.0)
            for name, signal in self.recordings[number].signals.items()
        }


TRUE = {'amplitude': 1.0, 'decay': 0.2, 'frequency': 0.5}
START = (
    Unknown('amplitude', 0.8, 0.0, 10.0),
    Unknown('decay', 0.3, 0.0, 5.0),
    Unknown('frequency', 0.52, 0.1, 2.0),
)


def recording(noise, name='one', deviation=0.05, offset=0.0, signals=('single',), times=TIMES):
    """Return a recording of the model with given noise for each signal."""
    return Recording(
        name,
        {
            signal: Signal(
                times,
                oscillation(TRUE, times) * (2.0 if signal == 'double' else 1.0)
                + offset
                + noise[..., k, :].reshape(-1),
                np.full(times.size, deviation),
            )
            for k, signal in enumerate(signals)
        },
    )


def white(seed, rows=1, level=0.05, times=TIMES):
    return level * np.random.default_rng(seed).standard_normal((rows, times.size))


def problem_of(*recordings, unknowns=START, **settings):
    return Problem(Decay(recordings), recordings, unknowns, **settings)


def red(seed, rho=0.95, level=0.05):
    """Return noise of first order with a given deviation."""
    rng = np.random.default_rng(seed)
    noise = np.empty((1, TIMES.size))
    noise[0, 0] = level * rng.standard_normal()
    for k, step in enumerate(rng.standard_normal(TIMES.size - 1), 1):
        noise[0, k] = rho * noise[0, k - 1] + level * math.sqrt(1.0 - rho**2) * step
    return noise


class TestLinear:
    """A problem whose solution and covariance are known in closed form."""

    times = np.arange(30.0)

    @staticmethod
    def line(_number, values):
        return {'y': values['slope'] * TestLinear.times + values['level']}

    def solve(self, **settings):
        y = 2.0 * self.times - 1.0 + 0.5 * np.random.default_rng(3).standard_normal(30)
        data = Recording('line', {'y': Signal(self.times, y, np.full(30, 0.5))})
        unknowns = Unknown('slope', 1.0), Unknown('level', 0.0)
        return y, estimate(Problem(self.line, [data], unknowns, **settings))

    def test_solution_and_covariance_are_those_of_linear_regression(self):
        y, found = self.solve()
        A = np.stack([self.times, np.ones(30)], axis=1)
        expected = np.linalg.lstsq(A, y, rcond=None)[0]
        assert found.values == pytest.approx(expected, rel=1e-6)
        # Few rows with a known deviation: it is not made smaller.
        level = max(1.0, np.sum((y - A @ expected) ** 2) / 0.25 / 28.0)
        assert found.covariance == pytest.approx(level * 0.25 * np.linalg.inv(A.T @ A), rel=1e-4)
        assert found.status == CONVERGED
        assert found.warnings == ()

    def test_few_rows_may_be_exact(self):
        data = Recording('line', {'y': Signal(self.times, self.times, np.full(30, np.nan))})
        unknowns = Unknown('slope', 1.0), Unknown('level', 0.0)
        found = estimate(Problem(self.line, [data], unknowns))
        assert found.values == pytest.approx([1.0, 0.0])
        assert (found.standard_errors < 1e-9).all()
        assert found.propagated(lambda v: {'y': 3.0 * v['slope']})['y'] == pytest.approx(
            (3.0, 0.0)
        )

    def test_prior_is_weighted_by_its_covariance(self):
        prior = Prior(('other', 'slope'), np.array([9.0, 3.0]), np.diag([1.0, 0.01**2]))
        y, found = self.solve(prior=prior)
        A = np.stack([self.times, np.ones(30)], axis=1)
        rows = np.concatenate([A / 0.5, [[100.0, 0.0]]])
        expected = np.linalg.lstsq(rows, np.append(y / 0.5, 300.0), rcond=None)[0]
        assert found.values == pytest.approx(expected, rel=1e-6)
        assert 0.0 < found.prior_share[0] < 1.0
        assert found.prior_share[1] == 0.0

    def test_derived_quantity_has_the_error_of_its_combination(self):
        _, found = self.solve()
        value, error = found.propagated(lambda v: {'y': v['slope'] * 10.0 + v['level']})['y']
        gradient = np.array([10.0, 1.0])
        assert value == pytest.approx(gradient @ found.values)
        assert error == pytest.approx(math.sqrt(gradient @ found.covariance @ gradient))

    def test_derived_quantity_at_the_edge_of_what_a_machine_may_have(self):
        _, found = self.solve()

        def derived(values, side):
            if side * (values['level'] - found.value('level')) > 0.0:
                raise InputError('level, allowed: less, or more')
            return {'y': values['slope'] * 10.0 + values['level']}

        inside = found.propagated(lambda values: derived(values, 0.0))['y']
        for side in (1.0, -1.0):
            edge = found.propagated(lambda values, side=side: derived(values, side))['y']
            assert edge == pytest.approx(inside)


def test_combination_at_fault_is_in_the_warning():
    def same_product(_number, values):
        return {'y': values['one'] * values['other'] * np.linspace(0.0, 1.0, 100)}

    y = 6.0 * np.linspace(0.0, 1.0, 100) + white(1, times=np.empty(100))[0]
    data = Recording('product', {'y': Signal(np.arange(100.0), y, np.full(100, 0.05))})
    found = estimate(Problem(same_product, [data], (Unknown('one', 2.0), Unknown('other', 3.0))))
    assert found.value('one') * found.value('other') == pytest.approx(6.0, rel=0.02)
    assert found.condition > 1e5
    assert any('0.71 one' in text and '0.71 other' in text for text in found.warnings)


def draws(noise_of):
    """Return values and standard errors of many draws, and how many intervals hold, by unknown."""
    found = [estimate(problem_of(recording(noise_of(seed)))) for seed in range(60)]
    bounds = np.array([[one.interval(name) for name in TRUE] for one in found])
    true = list(TRUE.values())
    inside = (bounds[..., 0] < true) & (true < bounds[..., 1])
    values, errors = zip(*((one.values, one.standard_errors) for one in found), strict=True)
    return values, errors, inside.mean(axis=0)


def test_intervals_hold_for_white_noise():
    assert draws(white)[2].mean() > 0.9


def test_intervals_hold_for_correlated_noise_and_are_not_too_wide():
    values, errors, share = draws(red)
    # With uncorrelated residuals assumed, they would hold about half of the time.
    assert share.mean() > 0.88
    assert share.min() > 0.8
    assert np.mean(errors, axis=0) == pytest.approx(np.std(values, axis=0), rel=0.3)


def on_lines(number, values):
    x = np.linspace(0.5, 1.5, 12)
    return {'force': values['a'] * x + (number % 2) * values['b']}


def test_what_is_left_alike_in_a_pose_each_time_counts_once():
    random, labels = np.random.default_rng(3), [np.arange(12)] * 4
    z = []
    for _ in range(100):
        left = random.standard_normal(12)
        rows = [left + 0.1 * random.standard_normal(12) for _ in labels]
        shown = [
            Recording(str(k), {'force': Signal(np.arange(12.0), own, np.full(12, np.nan))})
            for k, own in enumerate(rows)
        ]
        unknowns = [Unknown('a', 0.1), Unknown('b', 0.1)]
        found = estimate(Problem(on_lines, shown, unknowns, poses=labels))
        z.append(found.values / found.standard_errors)
    size = np.sqrt(np.mean(np.square(z), axis=0))
    # Of rows taken as independent 1.7 and 0.65: what differs between recordings is known better.
    assert size == pytest.approx([1.0, 1.0], abs=0.25)


def test_unknown_noise_levels_are_estimated():
    noise = np.concatenate([white(5), white(6, level=0.2)])
    data = recording(noise, deviation=np.nan, signals=('single', 'double'))
    found = estimate(problem_of(data))
    exact = problem_of(recording(np.zeros((1, TIMES.size)), deviation=np.nan))
    assert estimate(exact).values == pytest.approx(list(TRUE.values()), rel=1e-5)
    fit = found.fit['single']
    assert (fit.rms, fit.deviation) == pytest.approx((0.05, 0.05), rel=0.1)
    assert fit.variance_explained > 0.95
    assert found.fit['double'].deviation == pytest.approx(0.2, rel=0.1)
    for name, deviation in (('single', 0.05), ('double', 0.2)):
        signal = data.signals[name]
        data.signals[name] = signal._replace(deviation=np.full(TIMES.size, deviation))
    assert found.values == pytest.approx(estimate(problem_of(data)).values, rel=2e-3)


def test_offset_is_eliminated_and_reported():
    data = recording(white(7), offset=3.0)

    def shifted(number, values):
        return {'single': Decay((data,))(number, values)['single'] + values['offset']}

    found = estimate(problem_of(data, offsets=['sing*']))
    explicit = estimate(Problem(shifted, [data], (*START, Unknown('offset', 0.0))))
    key = 'one', 'single'
    assert found.predicted[key] == pytest.approx(explicit.predicted[key], rel=1e-5, abs=1e-5)
    assert found.values == pytest.approx(explicit.values[:3], rel=1e-5)
    assert found.standard_errors == pytest.approx(explicit.standard_errors[:3], rel=2e-3)


def test_missing_values_are_left_out():
    data = recording(white(8))
    values = data.signals['single'].values
    values[::3] = np.nan
    found = estimate(problem_of(data))
    assert found.rows == np.isfinite(values).sum()
    assert found.value('frequency') == pytest.approx(0.5, abs=0.01)


def test_validation_is_predicted_but_not_fitted():
    one, two = recording(white(9)), recording(white(10), 'two')
    found = estimate(problem_of(one, two, validation=['two']))
    fit = found.fit['single']
    assert fit.rows + fit.validation_rows == 2 * TIMES.size
    assert fit.validation_rms == pytest.approx(0.05, rel=0.15)
    alone = estimate(problem_of(one))
    assert found.values == pytest.approx(alone.values, rel=1e-6)


def test_unknown_of_one_recording_costs_runs_of_that_one():
    data = (recording(white(11)), recording(white(12), 'two'))

    def own_amplitudes(number, values):
        return Decay(data)(number, {**values, 'amplitude': values[f'amplitude_{number}']})

    unknowns = [*START[1:], *(Unknown(f'amplitude_{k}', 0.8) for k in range(2))]
    every = estimate(Problem(own_amplitudes, data, unknowns))
    unknowns[2:] = [u._replace(recording=k) for k, u in enumerate(unknowns[2:])]
    each = estimate(Problem(own_amplitudes, data, unknowns))
    assert each.values == pytest.approx(every.values, rel=1e-9)
    assert each.covariance == pytest.approx(every.covariance, rel=1e-6)
    assert each.evaluations < every.evaluations


def test_processes_do_not_change_the_result():
    problem = problem_of(recording(red(1)), recording(red(2), 'two'))
    one, two = (estimate(problem, processes=count) for count in (1, 2))
    assert np.array_equal(one.values, two.values)
    assert np.array_equal(one.covariance, two.covariance)


def test_values_without_a_prediction_are_avoided():
    data = recording(white(13))
    found = estimate(Problem(Decay((data,), none_above=0.5225), [data], START))
    assert found.value('frequency') == pytest.approx(0.5, abs=0.01)
    with pytest.raises(LongreachError, match=r'no prediction at the start: frequency = 0\.52'):
        estimate(Problem(Decay((data,), none_above=0.5), [data], START))


def test_what_makes_a_result_doubtful_is_named():
    bounded = (*START[:2], START[2]._replace(lowest=0.51))
    extra = 0.5 * np.sin(2.0 * math.pi * 1.3 * TIMES)
    for found, text in (
        (estimate(problem_of(recording(white(14)), unknowns=bounded)), 'lower bound 0.51'),
        (estimate(problem_of(recording(white(15))), iterations=1), STOPPED),
        (estimate(problem_of(recording(white(16) + extra))), 'times its noise'),
    ):
        assert text in ' '.join(found.warnings)
        assert (found.status == STOPPED) == (text == STOPPED)


def test_a_signal_that_a_constant_fits_better_is_named():
    noise = np.concatenate([white(21), white(22)])
    data = recording(noise, deviation=np.nan, signals=('single', 'double'))
    known = 'explains nothing of double, which a constant fits better'
    assert not any(known in text for text in estimate(problem_of(data)).warnings)
    data.signals['double'].values[:] *= -0.2
    assert any(known in text for text in estimate(problem_of(data)).warnings)


def test_outliers_weigh_less_on_request():
    noise = white(23)
    clean = estimate(problem_of(recording(noise, deviation=np.nan)))
    noise[0, 5:50:9] += 3.0
    data = recording(noise, deviation=np.nan)
    usual, robust = estimate(problem_of(data)), estimate(problem_of(data), robust=True)
    error = np.abs(np.array([one.values - clean.values for one in (usual, robust)]))
    assert (error[1] < clean.standard_errors).all()
    assert (error[0] > 2.0 * clean.standard_errors).any()
    assert robust.fit['single'].deviation < 0.3 * usual.fit['single'].deviation


def test_interruption_keeps_the_best_so_far():
    data = recording(white(17))
    unknowns = (*START[:1], Unknown('decay', 1.5, 0.0, 5.0), START[2])

    def interrupting(number, values):
        # When it comes close to the solution.
        if abs(values['decay'] - 0.2) < 0.02:
            raise KeyboardInterrupt
        return Decay((data,))(number, values)

    found = estimate(Problem(interrupting, [data], unknowns))
    assert found.status == INTERRUPTED
    assert any('interrupted' in text for text in found.warnings)
    start = np.sum((data.signals['single'].values / 0.05) ** 2)
    assert found.chi_square < start
    shown = found.propagated(lambda v: {'root': math.sqrt(v['decay']), 'three': 3.0})
    assert shown['root'][0] == math.sqrt(found.value('decay'))
    assert math.isnan(shown['root'][1])
    assert shown['three'] == (3.0, 0.0)
    json.dumps(found.to_dict(), allow_nan=False)


def test_profile_agrees_with_the_standard_error():
    problem = problem_of(recording(white(18)))
    found = estimate(problem)
    values, increase = profile(problem, found, 'frequency', points=5, reach=2.0)
    # (2 s / s)^2 at the ends for a parabola.
    assert increase == pytest.approx([4.0, 1.0, 0.0, 1.0, 4.0], rel=0.2, abs=0.05)
    assert values[2] == pytest.approx(found.value('frequency'))


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'unknowns': ()}, 'no unknown'),
        ({'unknowns': (Unknown('decay', 2.0, 0.0, 1.0),)}, r'decay at the start = 2, allowed: '),
        ({'validation': ['three']}, "'three', allowed: one"),
        ({'prior': Prior(('decay',), np.zeros(1), -np.eye(1))}, 'not positive definite'),
        ({'validation': ['one']}, 'no finite row to fit'),
    ],
)
def test_bad_problem_is_named(settings, message):
    with pytest.raises(InputError, match=message):
        estimate(problem_of(recording(white(0)), **settings))


def test_bad_deviation_and_prediction_are_named():
    with pytest.raises(InputError, match=r'deviation of single in one is 0\.0'):
        estimate(problem_of(recording(white(0), deviation=0.0)))

    def short(_number, _values):
        return {'single': np.zeros(3)}

    data = recording(white(0))
    with pytest.raises(InputError, match=r'prediction of single in one has \(3,\)'):
        estimate(Problem(short, [data], START))


def test_autoregression_of_known_process_and_its_covariance():
    coefficients, variance = covariance.autoregression(red(20, rho=0.9, level=1.0)[0])
    assert coefficients[0] == pytest.approx(-0.9, abs=0.08)
    assert variance == pytest.approx(1.0 - 0.81, rel=0.15)
    J = np.random.default_rng(21).standard_normal((200, 3))
    lag = np.abs(np.subtract.outer(np.arange(200), np.arange(200)))
    dense = J.T @ (0.8**lag) @ J
    assert covariance.coloured_product(J, np.array([-0.8]), 1.0 - 0.64) == pytest.approx(dense)


def test_an_unknown_without_effect_does_not_end_the_search():
    data = recording(white(1))
    start = (*START, Unknown('nothing', 1.0, 0.0, 100.0), Unknown('also nothing', 1.0, 0.0))
    found, other = (estimate(problem_of(data, unknowns=given)) for given in (start, START))
    assert found.values[:3] == pytest.approx(other.values, rel=1e-4)
    assert found.chi_square == pytest.approx(other.chi_square, rel=1e-6)
    assert any('say nothing about nothing, also nothing' in text for text in found.warnings)
    assert np.isinf(found.standard_errors).tolist() == [False, False, False, True, True]
    assert found.to_dict()['parameters']['nothing']['standard_error'] is None
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(('extra', 'told'), [(0.0, False), (0.5, True)])
def test_residuals_that_are_no_noise_are_named(extra, told):
    data = recording(white(3) + extra * np.cos(4.0 * TIMES), deviation=np.nan)
    warnings = estimate(problem_of(data)).warnings
    assert any('the residuals of single (' in text for text in warnings) == told


def test_a_reading_on_one_level_has_the_error_of_rounding():
    # Rounded to 4, an oscillation of amplitude 2 is 0 all the time.
    data = recording(white(3), deviation=np.nan)
    data.signals['double'] = data.signals['single']._replace(values=0.0 * TIMES)
    found = estimate(problem_of(data, floors={'double': 4.0 / math.sqrt(12.0)}))
    assert found.fit['double'].deviation == pytest.approx(4.0 / math.sqrt(12.0))
    assert found.value('amplitude') == pytest.approx(1.0, abs=0.05)


def test_what_is_known_poorly_is_named_rather_than_what_is_alike():
    x = np.linspace(-1.0, 1.0, 60)

    def three_lines(_, v):
        # Two are alike, and the third is small.
        return {'y': v['a'] * x + v['b'] * (x + 0.5 * x**2) + 1e-3 * v['c'] * x**4}

    shown = three_lines(0, dict.fromkeys('abc', 1.0))['y']
    shown = shown + 1e-3 * np.random.default_rng(1).standard_normal(60)
    data = (Recording('one', {'y': Signal(np.arange(60.0), shown, np.full(60, 1e-3))}),)
    found = estimate(Problem(three_lines, data, [Unknown(name, 1.0) for name in 'abc']))
    assert max(found.weakest, key=lambda name: abs(found.weakest[name])) == 'c'
    assert any('hardly tell 1.00 c' in text for text in found.warnings)
