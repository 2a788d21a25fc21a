"""
Parameters from the motion of a machine: simulation-error least squares over whole recordings.

Each recording is simulated from the rest before its first event (single shooting). It has own
unknowns: a constant of each signal, delays of clocks against the event, and errors of the start.
Dimensions are considered: not estimated, but counted in all errors. Where actuators slip, or
residuals are larger than at rest, the search goes over growing durations.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_identification.estimation import (
    Estimate,
    Prior,
    Problem,
    Unknown,
    best_of,
    estimate,
)
from longreach_identification.growing import excess, grow
from longreach_identification.machine import Identifiable, Recording, Signal, matches
from longreach_identification.search import INTERRUPTED
from longreach_identification.stillness import resolution_of

# Groups of signals with a clock of their own; others have that of the first group.
CLOCKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {'sensors': ('*',), 'cameras': ('marker_*',)}
)
# Rest before the event that is compared, and latest stamps [s].
_REST, _LATEST = 1.0, 1.0
# Share of the variance before that is left, from which data do not tell a parameter.
_UNTOLD = 0.7
# Residuals of another signal's prediction over those of its own, from which both look swapped.
_RESEMBLES = 0.3
# Share of the duration that must be explained where actuators slip, for a result from it alone.
_ENOUGH = 0.1
# Delay of stamps that is named [s], and its standard errors; delays that are tried then [s].
_LATE, _SURELY = 0.05, 5.0
_DELAYS = np.linspace(-_LATEST, _LATEST, 41)


class Simulation(NamedTuple):
    """How a recording is simulated."""

    experiment: Any
    times: Mapping[str, np.ndarray]  # by signal
    clocks: Mapping[str, str]  # unknown delay of each signal
    corrections: Mapping[str, str]  # unknown of each correction


@dataclasses.dataclass(frozen=True)
class Simulated:
    """Predicts recordings by simulation; a ``Predict`` of the estimation."""

    identifiable: Identifiable
    machine: Any  # that of the start file
    fixed: dict[str, float]  # known parameters
    runs: Sequence[Simulation]  # by recording

    def __call__(self, number: int, values: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return the predicted signals of a recording."""
        experiment, times, clocks, corrections = self.runs[number]
        times = {n: at - values[clocks[n]] if n in clocks else at for n, at in times.items()}
        machine = self.machine_with(values)
        if corrections:
            changes = {short: values[name] for short, name in corrections.items()}
            experiment = self.identifiable.corrected(machine, experiment, changes)
        return self.identifiable.predict(machine, experiment, times)

    def machine_with(self, values: Mapping[str, float]) -> Any:
        """Return the machine for values of the unknowns."""
        own = {name: value for name, value in values.items() if '@' not in name}
        return self.identifiable.with_values(self.machine, {**self.fixed, **own})

    def doubts(self, machine: Any) -> list[str]:
        """Return why standard errors of a machine do not hold."""
        every = (self.identifiable.doubts(machine, run.experiment) for run in self.runs)
        return [text for text in dict.fromkeys(every) if text]


class Found(NamedTuple):
    """Result of :func:`identify`; ``derived`` is of the first ``experiment``, with errors."""

    estimate: Estimate
    machine: Any
    experiment: Any
    derived: dict[str, tuple[float, float]]
    notes: tuple[str, ...] = ()  # what was left out, as usual

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            **self.estimate.to_dict(),
            'derived': {
                name: {'value': value, 'standard_error': error if math.isfinite(error) else None}
                for name, (value, error) in self.derived.items()
                # What follows from nothing that was estimated is no result.
                if error != 0.0
            },
        }


@dataclasses.dataclass(frozen=True)
class Settings:
    """How :func:`identify` compares recordings."""

    signals: Sequence[str] = ('*',)  # patterns of the signals to compare
    # From statics; its parameters are estimated, too, so that their uncertainty counts.
    prior: Prior | None = None
    # Values of other parameters, in place of those of the machine.
    fixed: Mapping[str, float] | None = None
    offsets: Sequence[str] = ('*',)  # patterns of signals with a constant in each recording
    # Patterns of signals by clock; a signal has the last one that fits. Empty: all stamps and the
    # events have the same clock.
    clocks: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=lambda: CLOCKS)
    duration: float = math.inf  # time after the first event that is compared [s]
    # Shorter durations that are compared first [s]: over a long time an oscillation with a wrong
    # frequency is out of phase, and the search would end far from the solution.
    horizons: Sequence[float] = (4.0,)
    validation: Sequence[str] = ()  # names of recordings that are not fitted
    iterations: int = 20  # of the search, for given noise levels
    robust: bool = False  # whether outliers weigh less


def identify(
    identifiable: Identifiable,
    machine: Any,
    recordings: Sequence[Recording],
    parameters: Sequence[str],
    settings: Settings | None = None,
    *,
    processes: int | None = None,
    cluster: str | None = None,
    progress: bool | None = None,
) -> Found:
    """
    Estimate parameters of a machine from recordings of its motion.

    ``machine`` has the parameters at the start, to which scales are relative; ``parameters`` are
    names or groups, such as ``mass_scale_2`` or ``masses``; ``processes``, ``cluster`` and
    ``progress`` are those of :func:`longreach_dynamics.parallel.run_jobs`. InputError for unknown
    parameters, recordings that lack what is needed, and bad values; LongreachError when the
    machine at the start cannot be simulated.
    """
    settings = settings or Settings()
    workers: dict[str, Any] = {'processes': processes, 'cluster': cluster, 'progress': progress}

    def problem_at(duration: float, start: Mapping[str, float] | None) -> Problem:
        """Return the problem for a duration; without a start one parameter is scanned."""
        short = dataclasses.replace(settings, duration=duration)
        problem = problem_of(identifiable, machine, recordings, parameters, short, start)
        if start is not None or identifiable.scanned not in problem.names:
            return problem
        begin = {unknown.name: unknown.start for unknown in problem.unknowns}
        values = begin[identifiable.scanned] * identifiable.scan
        begin[identifiable.scanned] = best_of(problem, identifiable.scanned, values, **workers)
        return problem_of(identifiable, machine, recordings, parameters, short, begin)

    whole = problem_of(identifiable, machine, recordings, parameters, settings)
    predict = whole.predict
    assert isinstance(predict, Simulated)
    try:
        begin = {unknown.name: unknown.start for unknown in whole.unknowns}
        slips = bool(predict.doubts(predict.machine_with(begin)))
    except LongreachError:
        # The search says why.
        slips = False
    experiments = [run.experiment for run in predict.runs]
    found = _searched(problem_at, experiments, slips, settings, **workers)
    found, best, notes = _kept(predict, found)
    derived = found.propagated(
        lambda values: identifiable.derived(predict.machine_with(values), experiments[0])
    )
    silent, steps = [], _resolutions(recordings)
    for recording, used in zip(recordings, found.problem.recordings, strict=True):
        if names := _constant(recording, steps, settings.signals):
            notes.append(
                f'{", ".join(names)} of {recording.name} never change: their resolution is'
                ' unknown, and they are not compared'
            )
        if names := _unseen(recording, used, settings.signals):
            silent.append(
                f'{", ".join(names)} of {recording.name} have no row in the motion that is'
                ' compared, and count nothing: is their clock another one?'
            )
    silent += [
        f'{recording.name}: {what} at {time:g} s is not compared, only the time up to'
        f' {end:g} s; give a longer --duration, or the time of the event that counts, --event'
        f' {recording.name}=TIME'
        for recording, experiment in zip(recordings, experiments, strict=True)
        for time, what in recording.events
        if time >= (end := experiment.start + settings.duration)
    ]
    warnings = (*silent, *found.warnings, *_late(found), *predict.doubts(best))
    found = found._replace(warnings=warnings)
    return Found(found, best, experiments[0], derived, tuple(notes))


def _searched(
    problem_at: Callable[[float, Mapping[str, float] | None], Problem],
    experiments: Sequence[Any],
    slips: bool,
    settings: Settings,
    **workers: Any,
) -> Estimate:
    """Return the result of the plain search, or of the one over growing durations."""
    events = [one.start for one in experiments]

    def search(
        durations: Sequence[float],
        start: Mapping[str, float] | None = None,
        interrupted: bool = False,
    ) -> Estimate:
        known = {'robust': settings.robust, 'interrupted': interrupted, **workers}
        count = 1 if interrupted else settings.iterations
        for duration in durations:
            found = estimate(problem_at(duration, start), iterations=count, **known)
            if found.status == INTERRUPTED:
                break
            start = found.by_name
        return found

    def plain() -> Estimate:
        durations = [one for one in settings.horizons if one < settings.duration]
        durations.append(settings.duration)
        found = search(durations)
        if found.status == INTERRUPTED or not _late(found):
            return found
        # Oscillations are much alike when a stamp is wrong by a period: which is it?
        start = found.by_name
        try:
            for name in [one for one in found.names if one.startswith('delay_')]:
                start[name] = best_of(problem_at(durations[0], start), name, _DELAYS, **workers)
            other = search(durations, start)
        except KeyboardInterrupt:
            other = found._replace(status=INTERRUPTED)
        if other.status == INTERRUPTED:
            texts = (*found.warnings, 'interrupted: other delays of clocks were not all tried')
            return found._replace(status=INTERRUPTED, warnings=texts)
        return other if other.aic < found.aic else found

    def warned(found: Estimate, *texts: str) -> Estimate:
        texts = (*found.warnings, *texts, *_unexplained(found, events, slips))
        return found._replace(warnings=texts)

    first = None if slips else plain()
    if first and (first.status == INTERRUPTED or not _unexplained(first, events, slips)):
        return first
    length = min(settings.duration, max(one.end - one.start for one in experiments))
    try:
        grown, interrupted = grow(problem_at, events, length, slips, **workers)
    except LongreachError as error:
        # Such as a duration that is too short for the machine.
        text = f'a search over growing durations is not possible: {error}'
        return warned(first or plain(), text)
    if interrupted and first:
        text = 'interrupted: a search over growing durations was under way'
        return warned(first._replace(status=INTERRUPTED), text)
    if interrupted and not grown.values:
        raise KeyboardInterrupt('interrupted before the first duration was explained: no result')
    whole = grown.duration >= length
    if not (whole or interrupted or (slips and grown.duration >= _ENOUGH * length)):
        return warned(first or plain())
    found = search([settings.duration if whole else grown.duration], grown.values, interrupted)
    if first and not found.aic < first.aic:
        found = first
    if whole:
        return warned(found)
    text = f'only the first {grown.duration:.2g} s of {length:.3g} s after the event are explained'
    return warned(found, f'{text}, and compared')


def problem_of(
    identifiable: Identifiable,
    machine: Any,
    recordings: Sequence[Recording],
    parameters: Sequence[str],
    settings: Settings | None = None,
    start: Mapping[str, float] | None = None,
) -> Problem:
    """Return what :func:`identify` solves, from a start of all unknowns if there is one."""
    from scipy.linalg import block_diag

    settings = settings or Settings()
    prior, signals = settings.prior or Prior(), settings.signals
    if not recordings:
        raise InputError('there is no recording of motion, allowed: at least one')
    asked = [n for one in parameters for n in identifiable.chosen(machine, [one])]
    free = {entry.name: entry for entry in identifiable.free_parameters(machine)}
    known = dict(settings.fixed or {})
    considered = [
        name
        for name, entry in free.items()
        if math.isfinite(entry.deviation) and not entry.logarithmic
        if name not in asked and name not in known
    ]
    estimated = [n for n in dict.fromkeys([*asked, *prior.names]) if n not in considered]
    of_file = identifiable.values(machine)
    begin = of_file | known | dict(zip(prior.names, prior.mean.tolist(), strict=True))
    changed = {name: begin[name] for name in (*estimated, *considered, *known)}
    first = identifiable.with_values(machine, changed)
    begin |= start or {}
    unknowns: list[Unknown] = []
    beliefs: dict[str, tuple[float, float]] = {}

    def own(name: str, most: float, scale: float, number: int) -> None:
        """Add an unknown of a recording, about 0."""
        value = min(max(begin.get(name, 0.0), -most), most)
        unknowns.append(Unknown(name, value, -most, most, scale, number))

    for name in (*estimated, *considered):
        entry = free[name]
        # A logarithm needs a positive number.
        logarithmic = entry.logarithmic and entry.lowest > 0.0
        value = min(max(begin[name], entry.lowest), entry.highest)
        bounds = value, entry.lowest, entry.highest
        counts = name in considered
        unknowns.append(Unknown(name, *bounds, logarithmic=logarithmic, considered=counts))
        if math.isfinite(entry.deviation) and name not in prior.names:
            mean = math.log(of_file[name]) if logarithmic else of_file[name]
            beliefs[name] = (mean, entry.deviation)
    cut, runs, steps = [], [], _resolutions(recordings)
    for number, recording in enumerate(recordings):
        experiment = identifiable.experiment(first, recording)
        without = _constant(recording, steps, signals)
        part = _cut(recording, experiment, signals, settings.duration, without)
        # The pose may come from signals that are not compared.
        whole = _cut(recording, experiment, ['*'], settings.duration)
        experiment = identifiable.experiment(first, whole)
        clocks = {
            signal: f'delay_{clock}@{recording.name}'
            for clock, patterns in settings.clocks.items()
            for signal in part.signals
            if matches(signal, patterns)
        }
        for name in dict.fromkeys(clocks.values()):
            own(name, _LATEST, 0.1, number)
        corrections = {}
        for short, deviation in identifiable.corrections(first, experiment).items():
            corrections[short] = name = f'{short}@{recording.name}'
            beliefs[name] = (0.0, deviation)
            own(name, 10.0 * deviation, 10.0 * deviation, number)
        times = {name: shown.times for name, shown in part.signals.items()}
        runs.append(Simulation(experiment, times, clocks, corrections))
        cut.append(part)
    if all(recording.name in settings.validation for recording in cut):
        raise InputError('all recordings are for validation; leave at least one to fit')
    means, deviations = np.reshape(list(beliefs.values()), (-1, 2)).T
    joined = Prior(
        (*prior.names, *beliefs),
        np.concatenate([prior.mean, means]),
        block_diag(prior.covariance, np.diag(deviations**2)),
    )
    return Problem(
        Simulated(identifiable, machine, known, runs),
        cut,
        unknowns,
        joined,
        settings.offsets,
        settings.validation,
        {name: step / math.sqrt(12.0) for name, step in steps.items() if step > 0.0},
    )


def _kept(predict: Simulated, found: Estimate) -> tuple[Estimate, Any, list[str]]:
    """Return an estimate in which what data do not tell is as in the file, and its machine."""
    start = predict.identifiable.values(predict.machine)
    logarithmic = found.logarithmic
    untold = logarithmic & (found.prior_share > _UNTOLD) & np.isin(found.names, list(start))
    if not untold.any():
        return found, predict.machine_with(found.by_name), []
    names = [name for name, one in zip(found.names, untold, strict=True) if one]
    wanted = np.array([start[name] for name in names])
    away = found.values[untold] * np.log(wanted / found.values[untold])
    related = found.covariance[:, untold]
    moved = related @ np.linalg.solve(related[untold], away)
    # What is considered only stays.
    moved[~np.isfinite(moved) | (found.prior_share == 1.0)] = 0.0
    values = found.values + moved
    values[logarithmic] = found.values[logarithmic] * np.exp(
        moved[logarithmic] / found.values[logarithmic]
    )
    values[untold] = wanted
    kept = found._replace(values=values)
    text = (
        'kept as in the start file, with the error of what is known before; motions in which'
        ' actuators slip tell more about damping of joints and friction'
    )
    try:
        best = predict.machine_with(kept.by_name)
    except InputError:
        # Such as a static friction of the file that is less than the Coulomb friction found.
        kept, best = found, predict.machine_with(found.by_name)
        text = 'as in the start file they contradict what was found; they are as the search left'
    return kept, best, [f'the data hardly tell {", ".join(names)}: {text}']


def _late(found: Estimate) -> list[str]:
    """Return warnings about stamps that are late or early against the event."""
    texts = []
    for name, value, error in zip(found.names, found.values, found.standard_errors, strict=True):
        if name.startswith('delay_') and abs(value) > max(_LATE, _SURELY * error):
            clock, _, recording = name.removeprefix('delay_').partition('@')
            texts.append(
                f'the {clock} of {recording} seem to be {abs(value):.2f} s'
                f' {"late" if value > 0.0 else "early"} against the event; check its time and the'
                ' clocks'
            )
    return texts


def _resolutions(recordings: Sequence[Recording]) -> dict[str, float]:
    """Return the step of each quantised signal, 0 for others; on one level that of its kind."""
    steps: dict[str, float] = {}
    for recording in recordings:
        for name, shown in recording.signals.items():
            steps[name] = max(steps.get(name, 0.0), resolution_of(shown.values))
    kinds: dict[str, float] = {}
    for name, step in steps.items():
        kinds[_kind(name)] = max(kinds.get(_kind(name), 0.0), step)
    return {name: step or kinds[_kind(name)] for name, step in steps.items()}


def _kind(name: str) -> str:
    """Return the name of a signal without its last part, the number or the axis."""
    return name.rpartition('_')[0] or name


def _constant(
    recording: Recording, steps: Mapping[str, float], patterns: Sequence[str]
) -> list[str]:
    """Return signals without a change and a known resolution: they would be compared as exact."""
    return [
        name
        for name, shown in recording.signals.items()
        if matches(name, patterns) and steps[name] == 0.0
        if np.isnan(shown.deviation).all() and _levels(shown) == 1
    ]


def _unseen(recording: Recording, used: Recording, patterns: Sequence[str]) -> list[str]:
    """Return signals that are to be compared and have rows, but none in the motion."""
    return [
        name
        for name, shown in recording.signals.items()
        if matches(name, patterns) and name not in used.signals and _levels(shown) > 1
    ]


def _levels(shown: Signal) -> int:
    """Return how many finite values a signal has."""
    return int(np.unique(shown.values[np.isfinite(shown.values)]).size)


def _unexplained(found: Estimate, events: Sequence[float], slips: bool) -> tuple[str, ...]:
    """Return a warning about residuals in motion that are above those at rest, if there are."""
    ratios = excess(found.problem, found.predicted, events)
    if not ratios:
        return ()
    words = ', '.join(
        f'{name} ({ratio:.1f} times{_resembled(name, found)})' for name, ratio in ratios.items()
    )
    text = f'residuals in motion above those at rest: {words}; '
    if slips:
        text += (
            'parameters that act while actuators slip, such as damping of joints and friction, can'
            ' be off by more than their standard errors, as sticking and slipping may follow in'
            ' another order; release a lighter load, which all actuators hold'
        )
    else:
        text += (
            'the model does not explain them: a column, a sign, a dimension, the load or its event'
            ' is wrong, or a parameter is not estimated; standard errors do not hold'
        )
    return (text,)


def _resembled(name: str, found: Estimate) -> str:
    """Return which other signal of its kind explains an unexplained one much better, if any."""
    errors: dict[str, float] = {}
    for recording in found.problem.recordings:
        if name not in recording.signals:
            continue
        times, values, _ = recording.signals[name]
        for other, shown in recording.signals.items():
            if _kind(other) == _kind(name) and (recording.name, other) in found.predicted:
                here = np.interp(times, shown.times, found.predicted[recording.name, other])
                for sign, which in ((1.0, other), (-1.0, f'{other} of the other sign')):
                    error = float(np.nanstd(values - sign * here))
                    errors[which] = max(errors.get(which, 0.0), error)
    best = min(errors, key=lambda other: errors[other])
    return f', it looks like {best}' if errors[best] < _RESEMBLES * errors[name] else ''


def _cut(
    recording: Recording,
    experiment: Any,
    patterns: Sequence[str],
    duration: float,
    without: Sequence[str] = (),
) -> Recording:
    """Return the compared signals of a recording, from a rest before the event to the end."""
    first = experiment.start - _REST
    last = min(experiment.end, experiment.start + duration)
    found: dict[str, Signal] = {}
    for name, signal in recording.signals.items():
        if name not in without and matches(name, patterns):
            use = (signal.times >= first) & (signal.times <= last)
            if use.any():
                found[name] = Signal(*(column[use] for column in signal))
    if not found:
        raise InputError(
            f'{recording.name} has no signal {" or ".join(patterns)} between {first:g} s and'
            f' {last:g} s; found: {", ".join(recording.signals)}'
        )
    return recording._replace(signals=found)
