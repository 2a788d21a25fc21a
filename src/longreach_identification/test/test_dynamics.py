"""The search of parameters from motion, with a machine that oscillates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_identification import dynamics, growing
from longreach_identification.estimation import Estimate
from longreach_identification.machine import (
    FreeParameter,
    Identifiable,
    MeasuredSignal,
    Recording,
    Signal,
    SpoolRun,
)
from longreach_identification.recordings import signal
from longreach_identification.search import INTERRUPTED

NOISE = 0.05
TIMES = np.arange(-1.0, 20.0, 0.02)
MOVED = TIMES.clip(0.0)  # since it begins to move


class Oscillator(Identifiable):
    """A machine with one parameter, an angular frequency [rad/s], which is the machine itself."""

    name = 'oscillator'
    speed = 1.0

    def load(self, file: str | None) -> float:
        return 3.0

    def free_parameters(self, machine: float) -> tuple[FreeParameter, ...]:
        return (FreeParameter('frequency', 'motion', 'rad/s', 0.1, 100.0),)

    def values(self, machine: float) -> dict[str, float]:
        return {'frequency': machine}

    def with_values(self, machine: float, values: Mapping[str, float]) -> float:
        return values.get('frequency', machine)

    def signals(self, machine: float) -> tuple[MeasuredSignal, ...]:
        return (MeasuredSignal('motion', '1', ()),)

    def experiment(self, machine: float, recording: Recording) -> SpoolRun:
        return SpoolRun(recording.name, 0.0, float(recording.signals['motion'].times[-1]))

    def predict(
        self, machine: float, experiment: SpoolRun, times: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        moved = {name: np.sin(self.speed * machine * at.clip(0.0)) for name, at in times.items()}
        return {name: 0.5 * v if name == 'strain_2' else v for name, v in moved.items()}


class Fast(Oscillator):
    speed = 5.0


class Slipping(Oscillator):
    def doubts(self, machine: float, experiment: SpoolRun) -> str:
        return 'an actuator slips'


class Pair(Oscillator):
    """Two parameters whose sum is the frequency: of the small one the data tell little."""

    least = 0.0  # share of the large one

    def free_parameters(self, machine: float) -> tuple[FreeParameter, ...]:
        known = ('motion', 'rad/s', 0.1, 100.0, '', math.log(3.0), True)
        return tuple(FreeParameter(name, *known) for name in ('large', 'small'))

    def values(self, machine: float) -> dict[str, float]:
        return {'large': 0.9 * machine, 'small': 0.1 * machine}

    def with_values(self, machine: float, values: Mapping[str, float]) -> float:
        large, small = {**self.values(machine), **values}.values()
        if small < self.least * large:
            raise InputError('small, allowed: more')
        return large + small


def found(
    shown: np.ndarray,
    machine: Oscillator | None = None,
    clocks: Mapping[str, tuple[str, ...]] | None = None,
    others: Mapping[str, Signal] | None = None,
    parameters: tuple[str, ...] = ('frequency',),
) -> Estimate:
    """Identify from a frequency of 3 rad/s; notes are at the end of the warnings."""
    noise = NOISE * np.random.default_rng(1).standard_normal(TIMES.size)
    own = {'motion': signal(TIMES, shown + noise)}
    recording = Recording('run', {**own, **(others or {})})
    result = dynamics.identify(
        machine or Oscillator(), 3.0, [recording], parameters,
        dynamics.Settings(offsets=(), clocks=clocks or {}, horizons=()),
        processes=1, progress=False,
    )  # fmt: skip
    return result.estimate._replace(warnings=(*result.estimate.warnings, *result.notes))


def test_residuals_above_the_noise_start_a_search_from_the_first_moments_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = np.sin(3.4 * MOVED)
    mended = found(shown)
    assert abs(mended.value('frequency') - 3.4) < 3.0 * mended.standard_errors[0] < 0.01
    assert mended.warnings == ()
    # Without it, the search ends in one of the other minima.
    monkeypatch.setattr(dynamics, 'excess', lambda *_: {})
    assert abs(found(shown).value('frequency') - 3.4) > 0.1


@pytest.mark.parametrize(
    ('least', 'text'), [(0.0, 'kept as in the start'), (0.0976, 'they are as the search left')]
)
def test_what_data_hardly_tell_is_kept_and_the_rest_still_fits(least: float, text: str) -> None:
    machine = Pair()
    machine.least = least
    kept = found(np.sin(3.4 * MOVED), machine, parameters=('large', 'small'))
    assert kept.values.sum() == pytest.approx(3.4, abs=2e-3)
    assert (kept.value('small') == pytest.approx(0.3, rel=1e-9)) == (least == 0.0)
    assert text in kept.warnings[-1]


@pytest.mark.parametrize(('late', 'told'), [(0.3, True), (0.0, False)])
def test_clocks_that_are_late_are_named(late: float, told: bool) -> None:
    shown = np.sin(3.0 * (TIMES - late).clip(0.0))
    estimate = found(shown, clocks=dynamics.CLOCKS)
    assert estimate.value('delay_sensors@run') == pytest.approx(late, abs=0.01)
    text = 'the sensors of run seem to be 0.30 s late against the event'
    assert (text in ' '.join(estimate.warnings)) == told


def test_clocks_that_are_late_by_a_period_are_not_taken_for_punctual() -> None:
    shown = np.sin(15.0 * (TIMES - 0.35).clip(0.0))
    marker = Signal(TIMES, shown, np.full(TIMES.size, NOISE))
    estimate = found(np.sin(15.0 * MOVED), Fast(), dynamics.CLOCKS, {'marker_x': marker})
    assert estimate.value('delay_cameras@run') == pytest.approx(0.35, abs=0.01)
    assert estimate.value('delay_sensors@run') == pytest.approx(0.0, abs=0.01)
    assert 'the cameras of run seem to be 0.35 s late' in ' '.join(estimate.warnings)


@pytest.mark.parametrize('stopped', ['best_of', 'estimate'])
def test_an_interruption_while_other_delays_are_tried_keeps_the_result(
    monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    whole, calls = getattr(dynamics, stopped), []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        if stopped == 'best_of':
            raise KeyboardInterrupt
        done = whole(*arguments, **options)
        return done._replace(status=INTERRUPTED, aic=math.nan) if len(calls) == 2 else done

    monkeypatch.setattr(dynamics, stopped, interrupted)
    estimate = found(np.sin(3.0 * (TIMES - 0.3).clip(0.0)), clocks=dynamics.CLOCKS)
    assert calls
    assert estimate.status == INTERRUPTED
    assert estimate.value('delay_sensors@run') == pytest.approx(0.3, abs=0.01)
    assert 'other delays of clocks were not all tried' in ' '.join(estimate.warnings)


def test_signals_of_another_clock_are_named() -> None:
    shown = np.sin(3.4 * MOVED)
    warnings = found(shown, others={'camera': signal(TIMES + 1.7e9, shown)}).warnings
    assert warnings[0].startswith('camera of run have no row in the motion that is compared')


def test_what_no_parameters_explain_is_named_and_what_is_swapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    growing_once, calls = growing._growing, []
    monkeypatch.setattr(growing, '_growing', lambda *a: calls.append(a) or growing_once(*a))
    shown = np.sin(3.4 * MOVED) * np.exp(-0.2 * MOVED)
    warnings = ' '.join(found(shown).warnings)
    assert 'residuals in motion above those at rest: motion (' in warnings
    assert 'the model does not explain them: a column' in warnings
    # Where nothing slips other seeds lead to the same end, in minutes.
    assert len(calls) == 1
    moved, random = np.sin(3.0 * MOVED), np.random.default_rng(2)
    for shares, told in (
        ({'strain_1': 0.5, 'strain_2': 1.0}, ['strain_1', 'strain_2']),
        ({'strain_1': -1.0}, ['strain_1 of the other sign']),
    ):
        wrong = {
            n: signal(TIMES, random.normal(share * moved, NOISE)) for n, share in shares.items()
        }
        warnings = ' '.join(found(moved, others=wrong).warnings)
        for other in told:
            assert f'times, it looks like {other})' in warnings


def test_a_machine_that_needs_longer_recordings_keeps_its_first_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = Oscillator.experiment

    def experiment(self: Oscillator, machine: float, recording: Recording) -> SpoolRun:
        one = usual(self, machine, recording)
        if one.end < 5.0:
            raise InputError(f'{one.scenario} ends after {one.end:.3g} s, allowed: 5 s')
        return one

    monkeypatch.setattr(Oscillator, 'experiment', experiment)
    kept = found(np.sin(3.4 * MOVED))
    assert np.isfinite(kept.value('frequency'))
    assert 'not possible: run ends after' in ' '.join(kept.warnings)


def test_where_actuators_slip_the_part_that_is_explained_is_compared() -> None:
    later = np.where(TIMES > 8.0, 0.5, 0.0)
    mended = found(np.sin(3.4 * MOVED) + later, Slipping())
    assert abs(mended.value('frequency') - 3.4) < 4.0 * mended.standard_errors[0] < 0.02
    (text,) = (text for text in mended.warnings if text.startswith('only the first'))
    assert 4.0 < float(text.split()[3]) < 8.5
    assert mended.rows < TIMES.size / 2


@pytest.mark.parametrize('count', [0, 7])
def test_a_growing_search_that_is_interrupted_keeps_what_it_has_explained(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    solve, calls = growing._Stage.solved, []

    def solved(self: growing._Stage, points: list[np.ndarray]) -> growing.Solution:
        if len(calls) == count:
            raise KeyboardInterrupt
        calls.append(len(points))
        return solve(self, points)

    monkeypatch.setattr(growing._Stage, 'solved', solved)
    if not count:
        with pytest.raises(KeyboardInterrupt, match='before the first duration was explained'):
            found(np.sin(3.4 * MOVED), Slipping())
        return
    stopped = found(np.sin(3.4 * MOVED), Slipping())
    assert stopped.status == INTERRUPTED
    assert abs(stopped.value('frequency') - 3.4) < 0.1
    said = ' '.join(stopped.warnings)
    assert 'interrupted: these are the best values so far' in said
    assert 'only the first' in said
    assert 'not converged' not in said
    # As documented, without errors.
    shown = stopped.to_dict()['parameters']['frequency']
    assert shown['standard_error'] is None
    assert shown['interval'] == [None, None]
