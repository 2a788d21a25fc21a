"""
Parameters from poses at rest: weighted least squares over all poses together.

The force left where an actuator stops has an unknown mean, with the sign of the last motion; its
scatter, and not the noise of sensors, is the variance of the residuals. Constant errors of
sensors, drifts of gauges, dimensions and the payload are unknowns with a prior. Predictions are
linearised, and the estimate is repeated from where it led to until it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_identification.estimation import Estimate, Prior, Problem, Unknown, estimate
from longreach_identification.machine import Identifiable, Recording, matches
from longreach_identification.recordings import check_finite, check_recordings, require, signal
from longreach_identification.search import INTERRUPTED
from longreach_identification.stillness import Mean, Motion, StillStretch, find_still

# Relative step of differences, and rounds until the estimate stays to within this share of its
# standard errors.
_STEP, _MOST_ROUNDS, _STAYS = 1e-3, 6, 0.1
# Fewest poses that determine a friction and a mass.
_FEWEST_POSES = 3
# Fewest rows of a test of residuals; difference of positions in equal poses, over the largest
# range.
_FEWEST_ROWS, _SAME = 8, 0.01
# Warned about: residual of a pose over the scatter of all; how far data move what is known before,
# in standard deviations of such moves, and of what is known; and the chance with which residuals
# that are noise depend on time, pose or payload.
_OUTLIER, _PULLED, _FAR, _CHANCE = 6.0, 3.0, 1.5, 0.01
# Warned about: relative range of a position over all poses, as of a sensor that is stuck.
_STUCK = 1e-9
# Correlation over the poses of a gauge that measures what the model predicts.
_FOLLOWS = 0.95
# Warned about: standard error of a mean over the range of the means. Noise and vibrations have at
# most 0.01 in usual recordings, a clock that is late by most of a rest has more.
_MOVES = 0.03
# Warned about: a gauge's sensitivity over that of the start file.
_OTHER_UNIT = 5.0
# Least noise of a quantity, relative to its largest mean.
_MOST_EXACT = 1e-5
# Name of the payload among conditions.
THE_PAYLOAD = 'the payload'
# Standard deviation of the drift of a gauge: 2 um/m in 10 minutes [1/s].
DRIFT = 3.3e-9
# Warned about: scatter of a force over the typical friction of its actuator. That of the friction
# which is left at stops is half of it.
_BEYOND_FRICTION = 2.0
# Beginnings of the names of gauges, and of their factors.
_GAUGES, _SENSITIVITY = 'strain_', 'gauge_sensitivity_'


class StaticPose(NamedTuple):
    """A pose at rest, and what was measured in it."""

    recording: str
    start: float  # [s]
    end: float  # [s]
    setting: Any  # pose and load, for the machine
    measured: Mapping[str, Mean]  # quantities such as force_1, strain_1
    directions: Mapping[str, int]  # of quantities with friction: of the last motion; 0: unknown


class Nuisance(NamedTuple):
    """An unknown besides the free parameters: an error, or a parameter that is known roughly."""

    name: str
    unit: str
    scale: float  # typical size; of what is not judged ten times as much
    deviation: float = np.inf  # of its prior; inf: no prior; 0: it is none
    mean: float = 0.0  # of its prior
    bounds: tuple[float, float] = (-np.inf, np.inf)


# Predicts each quantity in all poses, for values of parameters and nuisances.
StaticModel = Callable[[Mapping[str, float]], dict[str, np.ndarray]]


class StaticMachine(Protocol):
    """What a machine adds to :class:`longreach_identification.machine.Identifiable`."""

    @property
    def page(self) -> Identifiable:
        """Parameters and signals of the machine."""

    def needed(self, machine: Any) -> tuple[tuple[str, ...], ...]:
        """Return the needed signals, see :func:`longreach_identification.recordings.require`."""

    def motions(self, machine: Any, recording: Recording) -> Mapping[str, Motion]:
        """Return the motions by which it is seen whether the machine stands still."""

    def pose(self, machine: Any, recording: Recording, stretch: StillStretch) -> StaticPose:
        """Return what was measured in a stretch; raises InputError."""

    def nuisances(self, machine: Any, poses: Sequence[StaticPose]) -> tuple[Nuisance, ...]:
        """Return what is unknown besides the parameters."""

    def model(self, machine: Any, poses: Sequence[StaticPose]) -> StaticModel:
        """Return the prediction of poses."""

    def conditions(self, pose: StaticPose) -> dict[str, float]:
        """Return on what residuals must not depend: what tells the pose, and the payload."""


class StaticResult(NamedTuple):
    """Result of :func:`identify_statics`; sensitivity to dimensions wrong by 1 % (10 mm)."""

    estimate: Estimate  # recordings of its problem have the poses at their middle
    parameters: tuple[str, ...]
    before: dict[tuple[str, str], np.ndarray]  # predictions of the start file
    residuals: dict[str, np.ndarray]  # (poses,); NaN where not used
    stretches: tuple[str, ...]  # lines on what was used
    sensitivity: dict[str, dict[str, float]]
    notes: tuple[str, ...]  # what was left out, as usual

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the result must know."""
        return self.estimate.warnings

    def prior(self) -> Prior:
        """Return parameters and their covariance as prior for another estimation."""
        return self.estimate.prior(self.parameters)

    def values(self) -> dict[str, float]:
        """Return parameters for ``with_values``; biases of gauges are means of recordings."""
        found = {name: self.estimate.value(name) for name in self.parameters}
        biases: dict[str, list[float]] = {}
        for name, value in self.estimate.by_name.items():
            if name.startswith('gauge_bias_'):
                biases.setdefault(name.partition('@')[0], []).append(value)
        return found | {name: float(np.mean(values)) for name, values in biases.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        more = {'stretches': list(self.stretches), 'sensitivity': self.sensitivity}
        return self.estimate.to_dict() | more


def still_poses(
    statics: StaticMachine,
    machine: Any,
    recordings: Sequence[Recording],
    shortest: float = 5.0,
    window: float = 2.5,
) -> tuple[list[StaticPose], list[str]]:
    """
    Return the poses at rest in recordings, and lines on which parts are used, and why not.

    ``shortest`` and ``window`` are those of
    :func:`longreach_identification.stillness.find_still`. InputError when a recording lacks
    signals, is of no use, or has no pose at rest.
    """
    signals = statics.page.signals(machine)
    check_recordings(recordings, signals)
    poses, lines = [], []
    for recording in recordings:
        patterns = require(recording, statics.needed(machine), signals)
        check_finite(recording, [*patterns, f'{_GAUGES}*'])
        motions = statics.motions(machine, recording)
        stretches, parts = find_still(recording, motions, shortest, window)
        if not stretches:
            reasons = dict.fromkeys(part.partition('not used, ')[2] for part in parts)
            raise InputError(
                f'{recording.name} has no stretch in which the machine stands still for'
                f' {shortest:g} s: {"; ".join(reasons) or "it moves all the time"}'
            )
        poses += [statics.pose(machine, recording, stretch) for stretch in stretches]
        lines += parts
    return poses, lines


def identify_statics(
    statics: StaticMachine,
    machine: Any,
    poses: Sequence[StaticPose],
    parameters: Sequence[str] = ('mass_scale_*', 'gauge_sensitivity_*'),
    stretches: Sequence[str] = (),
) -> StaticResult:
    """
    Estimate parameters from poses at rest, those of :func:`still_poses`, as are ``stretches``.

    ``machine`` is that of the start file, ``parameters`` are patterns of those that are free.
    Sensitivities of all gauges that are used are free in any case: taken for exact, they would
    make masses wrong without a word. InputError for unknown parameters, too few poses, and poses
    from one direction only; LongreachError when the machine cannot stand in a pose.
    """
    if len(poses) < _FEWEST_POSES:
        raise InputError(
            f'there are {len(poses)} poses at rest, allowed: at least {_FEWEST_POSES}; hold more'
            ' poses, or shorten the shortest stretch'
        )
    values = _values(poses)
    warnings, notes = _check_directions(poses, values)
    warnings += [*_check_rest(poses, values), *_check_stuck(statics, poses)]
    values = {name: shown for name, shown in values.items() if np.isfinite(shown).any()}
    gauges = [name for name in values if name.startswith(_GAUGES)]
    start = statics.page.values(machine)
    free = statics.page.free_parameters(machine)
    for pattern in parameters:
        if not any(fnmatchcase(parameter.name, pattern) for parameter in free):
            names = ', '.join(parameter.name for parameter in free)
            raise InputError(f'parameter {pattern!r}, allowed: {names}')
    measured = {f'{_SENSITIVITY}{name.rpartition("_")[2]}' for name in gauges}
    asked = [parameter.name for parameter in free if matches(parameter.name, parameters)]
    missing = [n for n in asked if n.startswith(_SENSITIVITY) and n not in measured]
    if missing:
        warnings.append(
            f'{", ".join(missing)}: not estimated, as their gauges have no mean in any pose; they'
            ' are not recorded, or too seldom'
        )
    unknowns = [
        Unknown(p.name, start[p.name], p.lowest, p.highest)
        for p in free
        if p.name in measured or (p.group != 'gauges' and p.name in asked)
    ]
    wanted = [unknown.name for unknown in unknowns]
    nuisances = [
        nuisance
        for nuisance in statics.nuisances(machine, poses)
        if nuisance.deviation > 0.0 and nuisance.name not in wanted
    ]
    recordings = list(dict.fromkeys(pose.recording for pose in poses))
    index = np.array([recordings.index(pose.recording) for pose in poses])
    middles = np.array([0.5 * (pose.start + pose.end) for pose in poses])
    since = np.array([t - middles[index == k].mean() for t, k in zip(middles, index, strict=True)])
    # Derivatives (quantities, poses) by biases and drifts of gauges.
    effects: dict[str, np.ndarray] = {}
    places: dict[str, int] = {}
    for gauge in gauges:
        for number, recording in enumerate(recordings):
            here = index == number
            own = values[gauge][np.isfinite(values[gauge]) & here]
            if own.size:
                last = f'{gauge.rpartition("_")[2]}@{recording}'
                bias = Nuisance(f'gauge_bias_{last}', '1', float(np.abs(own).max()) or 1e-6)
                drift = Nuisance(f'gauge_drift_{last}', '1/s', 10.0 * DRIFT, DRIFT)
                nuisances += [bias, drift]
                for nuisance, change in ((bias, here.astype(float)), (drift, here * since)):
                    effects[nuisance.name] = np.array([(n == gauge) * change for n in values])
                    places[nuisance.name] = number
    unknowns += [
        Unknown(n.name, n.mean, *n.bounds, n.scale, places.get(n.name)) for n in nuisances
    ]
    known = [nuisance for nuisance in nuisances if np.isfinite(nuisance.deviation)]
    prior = Prior(
        tuple(nuisance.name for nuisance in known),
        np.array([nuisance.mean for nuisance in known]),
        np.diag([nuisance.deviation**2 for nuisance in known]),
    )
    data = [
        Recording(
            recording,
            {
                name: signal(middles[index == number], shown[index == number])
                for name, shown in values.items()
                if np.isfinite(shown[index == number]).any()
            },
        )
        for number, recording in enumerate(recordings)
    ]
    first = _first_alike(statics, poses)
    alike = [first[index == number] for number in range(len(recordings))]
    # Of few poses the scatter can be smaller than what the means allow, down to nothing where a
    # simulation has no noise: the noise levels would fall, and the estimate move, in each round.
    floors = {
        name: max(
            float(
                np.median([p.measured[name].standard_error for p in poses if name in p.measured])
            ),
            _MOST_EXACT * float(np.nanmax(np.abs(values[name]))),
        )
        for name in values
    }
    model = statics.model(machine, poses)
    layout = effects, tuple(values), index
    # Such as the friction of a cylinder whose force is not used.
    rows = np.isfinite(np.stack(list(values.values())))
    predict = _Linear(model, unknowns, *layout)
    acting = predict.slopes[rows].any(axis=0)
    unknowns = [u for u, acts in zip(unknowns, acting, strict=True) if u.name in wanted or acts]
    found: Estimate | None = None
    for number in range(_MOST_ROUNDS):
        # After two rounds the slopes no longer change.
        predict = _Linear(model, unknowns, *layout, predict.slopes if number > 1 else None)
        before = found
        problem = Problem(predict, data, unknowns, prior, floors=floors, poses=alike)
        found = estimate(problem)
        if found.status == INTERRUPTED:
            break
        unknowns = [unknown._replace(start=found.value(unknown.name)) for unknown in unknowns]
        if before is not None:
            change = np.abs(found.values - before.values) - _STAYS * found.standard_errors
            if all(change[found.names.index(name)] <= 0.0 for name in wanted):
                break
    else:
        warnings.append('the estimate still changed after all rounds of linearisation')
    assert found is not None
    shapes = model(start)
    residuals = {n: values[n] - shown for n, shown in predict.all(found.by_name).items()}
    warnings += _check_scatter(nuisances, found)
    warnings += _check_priors(known, found)
    warnings += _check_shapes(values, index, shapes)
    warnings += _check_sensitivities(found, start)
    warnings += [*found.warnings, *_check_residuals(statics, poses, residuals, since)]
    # What is known roughly is a parameter as well: its errors are correlated with theirs.
    estimated = tuple(name for name in found.names if name in start)
    return StaticResult(
        found._replace(
            start=np.array([start.get(name, 0.0) for name in found.names]),
            warnings=tuple(warnings),
        ),
        estimated,
        {
            (recording.name, name): shapes[name][index == number]
            for number, recording in enumerate(data)
            for name in recording.signals
        },
        residuals,
        tuple(stretches),
        _sensitivity(predict.slopes, rows, found, estimated, known),
        tuple(notes),
    )


def _values(poses: Sequence[StaticPose]) -> dict[str, np.ndarray]:
    """Return the mean of each quantity in all poses, (poses,); NaN where it is not used."""
    found = {}
    for name in dict.fromkeys(name for pose in poses for name in pose.measured):
        # Where the direction is unknown, so is the sign of the friction.
        means = [
            pose.measured.get(name) if pose.directions.get(name, 1) else None for pose in poses
        ]
        found[name] = np.array([np.nan if mean is None else mean.value for mean in means])
    return found


def _first_alike(statics: StaticMachine, poses: Sequence[StaticPose]) -> np.ndarray:
    """Return for each pose the first with its positions and directions, whatever the payload."""
    positions = [statics.conditions(pose) for pose in poses]
    for one in positions:
        del one[THE_PAYLOAD]
    names = {name for one in positions for name in one}
    # By the largest range: what does not move has noise only.
    near = _SAME * max(np.ptp([one[name] for one in positions if name in one]) for name in names)

    def alike(j: int, k: int) -> bool:
        one, other = positions[j], positions[k]
        # Those from other sensors are others.
        same = one.keys() == other.keys() and poses[j].directions == poses[k].directions
        return same and all(abs(one[name] - other[name]) <= near for name in one)

    return np.array([next(j for j in range(k + 1) if alike(j, k)) for k in range(len(poses))])


def _check_directions(
    poses: Sequence[StaticPose], values: Mapping[str, np.ndarray]
) -> tuple[list[str], list[str]]:
    """Return warnings and notes about directions; InputError when there is one only."""
    warnings = []
    unused: dict[int, list[str]] = {}
    for name, shown in values.items():
        signs = [pose.directions[name] for pose in poses if name in pose.directions]
        if not signs:
            continue
        seen = {sign for sign in signs if sign}
        if not seen:
            raise InputError(
                f'{name}: its actuator moved before none of the poses, so that friction and mass'
                ' cannot be told apart; is the sensor of its position stuck? Otherwise approach'
                ' poses from both sides'
            )
        if len(seen) < 2:
            which = 'extending' if 1 in seen else 'retracting'
            raise InputError(
                f'{name}: the last motion before all poses was in the same direction ({which}), so'
                ' that friction and mass cannot be told apart; approach poses from both sides'
            )
        unknown = len(signs) - int(np.count_nonzero(np.isfinite(shown)))
        if unknown:
            unused.setdefault(unknown, []).append(name)
        fewest = min(signs.count(1), signs.count(-1))
        if fewest < 2:
            warnings.append(
                f'{name}: only {fewest} pose was approached from one of both directions; friction'
                ' and mass are told apart by it alone'
            )
    return warnings, [
        f'{", ".join(names)}: not used in {count} of {len(poses)} poses, before which the actuator'
        ' did not move, so that the sign of its friction is unknown'
        for count, names in unused.items()
    ]


def _check_rest(poses: Sequence[StaticPose], values: Mapping[str, np.ndarray]) -> list[str]:
    """Return warnings about quantities that move while the actuators rest."""
    warnings = []
    for name, means in values.items():
        use = np.flatnonzero(np.isfinite(means)).tolist()
        if len(use) < _FEWEST_POSES:
            continue
        worst = max((poses[k] for k in use), key=lambda pose: pose.measured[name].standard_error)
        error, size = worst.measured[name].standard_error, float(np.ptp(means[use]))
        if error > _MOVES * size:
            warnings.append(
                f'{name} moves or is noisy while the actuators rest, most in {worst.recording} at'
                f' {worst.start:.0f} s (standard error {error:.2g}, range over the poses'
                f' {size:.2g}): is its clock another one?'
            )
    return warnings


def _check_stuck(statics: StaticMachine, poses: Sequence[StaticPose]) -> list[str]:
    """Return warnings about positions that are the same in all poses of a recording."""
    warnings = []
    for recording in dict.fromkeys(pose.recording for pose in poses):
        every = [statics.conditions(pose) for pose in poses if pose.recording == recording]
        names = set.intersection(*map(set, every)) - {THE_PAYLOAD}
        moved = {n: np.ptp([one[n] for one in every]) / abs(every[0][n] or 1.0) for n in names}
        stuck = sorted(name for name, by in moved.items() if by < _STUCK)
        if stuck and len(stuck) < len(names):
            warnings.append(
                f'{", ".join(stuck)} of {recording} is the same in all {len(every)} poses, while'
                ' others move: is its sensor stuck?'
            )
    return warnings


def _check_residuals(
    statics: StaticMachine,
    poses: Sequence[StaticPose],
    residuals: Mapping[str, np.ndarray],
    times: np.ndarray,
) -> list[str]:
    """Return warnings about outliers, and residuals that depend on time, pose or payload."""
    from scipy.stats import pearsonr

    warnings = []
    conditions = [statics.conditions(pose) for pose in poses]
    whats = dict.fromkeys(what for one in conditions for what in one)
    given = {what: np.array([one.get(what, np.nan) for one in conditions]) for what in whats}
    first = _first_alike(statics, poses)
    tests = len(residuals) * (1 + len(given))
    for name, rest in residuals.items():
        use = np.isfinite(rest)
        # An outlier enlarges the scatter, but hardly the median.
        size = np.abs(np.where(use, rest, 0.0))
        usual = 1.483 * float(np.median(size[use]))
        far = [
            f'{poses[k].recording} at {poses[k].start:.0f} s'
            for k in np.flatnonzero(size > _OUTLIER * usual).tolist()
        ]
        if far:
            warnings.append(
                f'{name} is further from the model than {_OUTLIER:g} times its usual scatter in'
                f' {", ".join(far)}; look at what happened there, or leave that part out'
            )
        for what, values in {'the time': times, **given}.items():
            use = np.isfinite(rest) & np.isfinite(values)
            x, y = values[use], rest[use]
            if what != THE_PAYLOAD:
                # What friction leaves in a pose is alike each time, with and without a load.
                _, pose, count = np.unique(first[use], return_inverse=True, return_counts=True)
                x, y = (np.bincount(pose, v) / count for v in (x, y))
            if len(x) < _FEWEST_ROWS or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
                continue
            related, chance = pearsonr(x, y)
            if chance < _CHANCE / tests:
                warnings.append(
                    f'the residuals of {name} depend on {what} (correlation {related:.2f}): the'
                    ' model lacks something, or a signal, a dimension or the payload is wrong;'
                    ' standard errors do not hold'
                )
    return warnings


def _check_sensitivities(found: Estimate, start: Mapping[str, float]) -> list[str]:
    """Return warnings about gauges that may be in another unit."""
    pairs = {n: (found.value(n), start[n]) for n in found.names if n.startswith(_SENSITIVITY)}
    return [
        f'{name} is {value:.3g}, in the start file {usual:.3g}: is the unit or the sign of its'
        ' gauge wrong?'
        for name, (value, usual) in pairs.items()
        if not usual / _OTHER_UNIT < value < usual * _OTHER_UNIT
    ]


def _check_shapes(
    values: Mapping[str, np.ndarray], index: np.ndarray, shapes: Mapping[str, np.ndarray]
) -> list[str]:
    """Return warnings about gauges that do not follow the model: swapped, or of a wrong sign."""

    def centred(means: np.ndarray, use: np.ndarray) -> np.ndarray:
        # Each recording has a bias of its own.
        found = np.where(use, means, 0.0)
        for k in np.unique(index[use]):
            found[use & (index == k)] -= found[use & (index == k)].mean()
        return found

    def related(one: np.ndarray, other: np.ndarray) -> float:
        size = float(np.linalg.norm(one) * np.linalg.norm(other))
        return float(one @ other) / size if size else 1.0

    warnings = []
    gauges = [name for name in values if name.startswith(_GAUGES)]
    for name in gauges:
        use = np.isfinite(values[name])
        use = use & np.array([np.count_nonzero(use[index == k]) > 1 for k in index])
        if np.count_nonzero(use) < _FEWEST_ROWS:
            continue
        measured = centred(values[name], use)
        alike = {other: related(measured, centred(shapes[other], use)) for other in gauges}
        if alike[name] > _FOLLOWS:
            continue
        best = max(gauges, key=lambda other: alike[other])
        remedy = 'is it of another beam, or does it drift?'
        if -alike[name] > alike[best]:
            remedy = 'is its sign wrong?'
        elif best != name and alike[best] > _FOLLOWS:
            remedy = f'it looks like {best}: are both swapped?'
        warnings.append(
            f'{name} does not follow the model over the poses (correlation {alike[name]:.2f});'
            f' {remedy}'
        )
    return warnings


def _check_priors(known: Sequence[Nuisance], found: Estimate) -> list[str]:
    """Return warnings about what contradicts what was known before."""
    values, shares = found.by_name, dict(zip(found.names, found.prior_share, strict=True))
    return [
        f'{name} = {values[name]:.4g} {unit}, known before as {mean:.4g} +- {deviation:.2g}: the'
        ' data contradict this. This dimension, payload or sensor may be wrong, or another that'
        ' acts alike; standard errors do not hold'
        for name, unit, _, deviation, mean, _ in known
        if name in values
        and abs(values[name] - mean) / deviation > max(_PULLED * np.sqrt(1.0 - shares[name]), _FAR)
    ]


def _sensitivity(
    slopes: np.ndarray,
    rows: np.ndarray,
    found: Estimate,
    free: Sequence[str],
    known: Sequence[Nuisance],
) -> dict[str, dict[str, float]]:
    """Return by how much each parameter changes, relative to it, for 0.01 of each dimension."""
    deviations = {nuisance.name: nuisance.deviation for nuisance in known}
    exact = [
        n.name
        for n in known
        if n.name in found.names and n.unit in ('1', 'm') and not n.name.startswith('pose_bias')
    ]
    levels = np.array([fit.deviation for fit in found.fit.values()])
    weighted = (slopes / levels[:, None, None])[rows]
    other = [j for j, name in enumerate(found.names) if name not in exact]
    own = weighted[:, other]
    before = [deviations.get(found.names[j], np.inf) ** -2.0 for j in other]
    information = own.T @ own + np.diag(before)
    scale = np.sqrt(np.diag(information))
    inverse = np.linalg.pinv(information / np.outer(scale, scale)) / np.outer(scale, scale)
    table = {}
    for name in exact:
        change = -0.01 * inverse @ (own.T @ weighted[:, found.names.index(name)])
        table[name] = {
            found.names[j]: float(step / found.values[j])
            for j, step in zip(other, change, strict=True)
            if found.names[j] in free and found.values[j]
        }
    return table


def _check_scatter(nuisances: Sequence[Nuisance], found: Estimate) -> list[str]:
    """Return warnings about forces that friction does not explain."""
    frictions = {n.name.replace('left_friction', 'force'): 0.1 * n.scale for n in nuisances}
    return [
        f'{name} scatters by {fit.deviation:.3g} N about the model, its friction by about'
        f' {frictions[name] / 2.0:.3g} N: payload, columns, areas or units are wrong, or friction'
        ' is larger than in the file; masses do not hold'
        for name, fit in found.fit.items()
        if name in frictions and fit.deviation > _BEYOND_FRICTION * frictions[name]
    ]


class _Linear:
    """Linearised prediction of all poses, for :class:`Problem`."""

    def __init__(
        self,
        model: StaticModel,
        unknowns: Sequence[Unknown],
        effects: Mapping[str, np.ndarray],
        measured: tuple[str, ...],
        index: np.ndarray,
        slopes: np.ndarray | None = None,
    ) -> None:
        self._measured, self._index = measured, index
        self._at = {unknown.name: unknown.start for unknown in unknowns}
        here = model(self._at)
        # Shapes (quantities, poses) and (quantities, poses, unknowns).
        self._base = np.stack([here[name] for name in measured])
        self.slopes = np.zeros((*self._base.shape, len(unknowns)))
        for j, unknown in enumerate(unknowns):
            if unknown.name in effects:
                self.slopes[..., j] = effects[unknown.name]
                self._base += unknown.start * effects[unknown.name]
            elif slopes is not None:
                self.slopes[..., j] = slopes[..., j]
            else:
                step = _STEP * unknown.size
                # One-sided: the linearisation is repeated at the estimate anyway.
                there = model({**self._at, unknown.name: unknown.start + step})
                change = [there[name] - here[name] for name in measured]
                self.slopes[..., j] = np.stack(change) / step

    def all(self, values: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return the predictions of all poses."""
        change = np.array([values[name] - start for name, start in self._at.items()])
        return dict(zip(self._measured, self._base + self.slopes @ change, strict=True))

    def __call__(self, recording: int, values: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return the predictions of the poses of a recording."""
        rows = self._index == recording
        return {name: predicted[rows] for name, predicted in self.all(values).items()}
