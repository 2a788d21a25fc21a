"""
Which experiments determine parameters best.

Each possible experiment is a recording as exact sensors would make it, with the deviations of the
real ones. Its information about the parameters is J^T J, with the derivatives J of its signals in
units of their noise, less what its own unknowns take: constants of signals, delays of clocks and
errors of the start (the Schur complement of the information matrix). Experiments are chosen one
after the other, each the best next to those before it:

- criterion ``D``: largest determinant of the information: smallest volume of the confidence
  region;
- criterion ``A``: smallest sum of variances relative to the parameters' sizes.

The information is that of the smooth part of the predictions: jumps by stick and slip add to the
errors, see :mod:`longreach_identification.estimation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_identification.dynamics import CLOCKS, Settings, problem_of
from longreach_identification.estimation import Prior, information_of
from longreach_identification.machine import Identifiable, Recording

CRITERIA = ('D', 'A')
# What is known without a prior, relative to the size of a parameter: a determinant needs it.
_VAGUE = 10.0


class Choice(NamedTuple):
    """A chosen experiment."""

    name: str
    standard_errors: dict[str, float]  # of all experiments up to this one together


class Plan(NamedTuple):
    """Result of :func:`plan`."""

    choices: tuple[Choice, ...]
    alone: dict[str, dict[str, float]]  # standard errors of each possible experiment alone


def plan(
    identifiable: Identifiable,
    machine: Any,
    recordings: Sequence[Recording],
    parameters: Sequence[str],
    count: int,
    *,
    criterion: str = 'D',
    prior: Prior | None = None,
    signals: Sequence[str] = ('*',),
    clocks: Mapping[str, Sequence[str]] = CLOCKS,
    processes: int | None = None,
    cluster: str | None = None,
    progress: bool | None = None,
) -> Plan:
    """
    Choose ``count`` of the possible experiments by D- or A-optimality; one may be chosen again.

    Recordings have the deviations of all signals; the machine the best known parameters.
    """
    if criterion not in CRITERIA:
        raise InputError(f'criterion = {criterion!r}, allowed: {" | ".join(CRITERIA)}')
    if count < 1:
        raise InputError(f'count = {count}, allowed: at least 1')
    if not recordings:
        raise InputError('there is no possible experiment, allowed: at least one')
    problem = problem_of(
        identifiable,
        machine,
        recordings,
        parameters,
        Settings(signals=signals, prior=prior, clocks=clocks),
        {},
    )
    for recording in problem.recordings:
        for name, signal in recording.signals.items():
            if not np.isfinite(signal.deviation).all():
                raise InputError(f'{name} of {recording.name} has no deviation; give one')
    names = [unknown.name for unknown in problem.unknowns if unknown.recording is None]
    sizes = np.array([u.size for u in problem.unknowns if u.recording is None])
    each = [
        _without_own(matrix, problem.names, names) * np.outer(sizes, sizes)
        for matrix in information_of(
            problem, processes=processes, cluster=cluster, progress=progress
        )
    ]
    before = np.eye(len(names)) / _VAGUE**2
    if prior is not None:
        place = [names.index(name) for name in prior.names]
        scale = sizes[place]
        before[np.ix_(place, place)] = np.linalg.inv(prior.covariance / np.outer(scale, scale))

    def errors(information: np.ndarray) -> dict[str, float]:
        spread = sizes * np.sqrt(np.diag(np.linalg.inv(information)))
        return dict(zip(names, spread.tolist(), strict=True))

    known, choices = before, []
    for _ in range(count):
        best = min(range(len(each)), key=lambda k: _badness(known + each[k], criterion))
        known = known + each[best]
        choices.append(Choice(recordings[best].name, errors(known)))
    alone = {r.name: errors(before + own) for r, own in zip(recordings, each, strict=True)}
    return Plan(tuple(choices), alone)


def _without_own(matrix: np.ndarray, every: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Return the information about some unknowns when the others are unknown."""
    kept = np.array([every.index(name) for name in names])
    own = np.setdiff1d(np.arange(len(every)), kept)
    # Those of other recordings have none.
    own = own[np.diag(matrix)[own] > 0.0]
    if not own.size:
        return np.asarray(matrix[np.ix_(kept, kept)])
    mixed = matrix[np.ix_(kept, own)]
    solved = np.linalg.lstsq(matrix[np.ix_(own, own)], mixed.T)[0]
    return np.asarray(matrix[np.ix_(kept, kept)] - mixed @ solved)


def _badness(information: np.ndarray, criterion: str) -> float:
    """Return what a choice minimises."""
    if criterion == 'A':
        return float(np.trace(np.linalg.inv(information)))
    return -float(np.linalg.slogdet(information)[1])
