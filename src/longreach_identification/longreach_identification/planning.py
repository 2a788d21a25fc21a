"""
Which experiments determine parameters best.

The information of a release is J^T J of its signals in units of their noise, less what its own
unknowns take (the Schur complement); that of poses at rest the inverse of the covariance, less
what was known before. Each choice gives, with those before it, the smallest confidence region.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_identification.dynamics import Settings, problem_of
from longreach_identification.estimation import Prior, Problem, information_of
from longreach_identification.machine import Identifiable, Recording
from longreach_identification.statics import identify_statics, still_poses

# What is known without a prior, relative to the size of a parameter: a determinant needs it.
_VAGUE = 10.0
# What a model leaves unexplained, relative to the size of a parameter.
_FLOOR = 1e-3


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
    settings: Settings | None = None,
    *,
    at_rest: Mapping[str, Sequence[Recording]] | None = None,
    repeats: bool = False,
    **workers: Any,
) -> Plan:
    """Choose ``count`` of the possible experiments, with ``repeats`` one again."""
    # ``recordings``: releases with deviations of all signals; ``at_rest``: poses at rest by name.
    at_rest = at_rest or {}
    every = [*at_rest, *(recording.name for recording in recordings)]
    if count > len(every) and not repeats:
        raise InputError(f'count = {count}, allowed: {len(every)} experiments, or repeats')
    problem = problem_of(identifiable, machine, recordings, parameters, settings, {})
    for recording in problem.recordings:
        for name, signal in recording.signals.items():
            if not np.isfinite(signal.deviation).all():
                raise InputError(f'{name} of {recording.name} has no deviation; give one')
    common = _Common(problem)
    # Of poses at rest, and of motion.
    rest = [common.at_rest(identifiable, machine, one, parameters) for one in at_rest.values()]
    motion = [common.reduced(one, problem.names) for one in information_of(problem, **workers)]
    each = [np.stack([one, common.none]) for one in rest]
    each += [np.stack([common.none, one]) for one in motion]
    known, choices, left = 0.0 * each[0], [], list(range(len(each)))
    for _ in range(count):
        best = min(left, key=lambda k: common.volume(known + each[k]))
        known = known + each[best]
        choices.append(Choice(every[best], common.errors(known)))
        if not repeats:
            left.remove(best)
    alone = {name: common.errors(own) for name, own in zip(every, each, strict=True)}
    return Plan(tuple(choices), alone)


class _Common:
    """The unknowns that all experiments share, in units of their sizes."""

    def __init__(self, problem: Problem) -> None:
        unknowns = [unknown for unknown in problem.unknowns if unknown.recording is None]
        self.names = [unknown.name for unknown in unknowns]
        self.sizes = np.array([unknown.inner().size for unknown in unknowns])
        # Of a unit of each in that of the parameter.
        self.scales = self.sizes * [u.start if u.logarithmic else 1.0 for u in unknowns]
        considered = np.array([unknown.considered for unknown in unknowns])
        self.free, self.considered = np.flatnonzero(~considered), np.flatnonzero(considered)
        # What is known before: a prior, of parameters and dimensions, otherwise hardly anything.
        self.covariance = np.diag((_VAGUE * np.ones(len(unknowns))) ** 2)
        place, own = self.of(problem.prior)
        self.covariance[np.ix_(place, place)] = own
        self.none = np.zeros_like(self.covariance)

    def of(self, prior: Prior) -> tuple[list[int], np.ndarray]:
        """Return which unknowns a prior has, and its covariance of these."""
        place = [j for j, name in enumerate(self.names) if name in prior.names]
        rows = [prior.names.index(self.names[j]) for j in place]
        sizes = self.sizes[place]
        return place, prior.covariance[np.ix_(rows, rows)] / np.outer(sizes, sizes)

    def reduced(self, matrix: np.ndarray, every: Sequence[str]) -> np.ndarray:
        """Return the information about the shared unknowns when others are unknown."""
        kept = np.array([every.index(name) for name in self.names])
        own = np.setdiff1d(np.arange(len(every)), kept)
        # Those of other recordings have none.
        own = own[np.diag(matrix)[own] > 0.0]
        mixed = matrix[np.ix_(kept, own)]
        solved = np.linalg.lstsq(matrix[np.ix_(own, own)], mixed.T)[0]
        reduced = matrix[np.ix_(kept, kept)] - mixed @ solved
        return np.asarray(reduced * np.outer(self.sizes, self.sizes))

    def at_rest(
        self,
        identifiable: Identifiable,
        machine: Any,
        recordings: Sequence[Recording],
        parameters: Sequence[str],
    ) -> np.ndarray:
        """Return the information of poses at rest, simulated with the noise of sensors."""
        statics = identifiable.statics()
        poses, stretches = still_poses(statics, machine, recordings)
        chosen = identifiable.chosen(machine, parameters)
        names = [name for name, free in chosen.items() if not free.logarithmic]
        place, own = self.of(identify_statics(statics, machine, poses, names, stretches).prior())
        information = np.linalg.inv(own)
        # What was known of dimensions is in it.
        fixed = np.isin(place, self.considered)
        spread = np.diag(self.covariance)[place]
        information[fixed, fixed] -= 1.0 / spread[fixed]
        matrix = np.zeros_like(self.covariance)
        matrix[np.ix_(place, place)] = information
        return matrix

    def spread(self, information: np.ndarray) -> np.ndarray:
        """Return the covariance; poses at rest tell dimensions, motion considers them."""
        at_rest, motion = information
        free, considered = self.free, self.considered
        order = np.concatenate([free, considered])
        before = np.linalg.inv(np.linalg.inv(self.covariance) + at_rest)[np.ix_(order, order)]
        known = np.linalg.inv(before[: free.size, : free.size])
        own = motion[np.ix_(free, free)]
        inverse = np.linalg.inv(own + known)
        weights = np.hstack([known, -motion[np.ix_(free, considered)]])
        part = inverse @ (own + weights @ before @ weights.T) @ inverse
        return np.asarray(part + _FLOOR**2 * np.eye(free.size))

    def errors(self, information: np.ndarray) -> dict[str, float]:
        """Return the standard errors of the parameters."""
        found = self.scales[self.free] * np.sqrt(np.diag(self.spread(information)))
        return {self.names[j]: float(error) for j, error in zip(self.free, found, strict=True)}

    def volume(self, information: np.ndarray) -> float:
        """Return the logarithm of the squared volume of the confidence region."""
        sign, value = np.linalg.slogdet(self.spread(information))
        return float(value) if sign > 0.0 else math.inf
