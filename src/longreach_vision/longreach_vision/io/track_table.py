"""Tracks of markers as messages and as a table, with noise and errors; unknown values are NaN."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers import (
    LOST,
    TRACKED,
    UNCERTAIN,
    BodyEstimate,
    Estimate,
    Location,
    Observation,
    Pose,
    RigFrame,
)
from longreach_vision.simulator.marker_path import MarkerPath

STATUSES = (TRACKED, UNCERTAIN, LOST)
"""Statuses in the order of their numbers."""

KINDS = ('in_plane', 'triangulated')
"""Kinds of estimates: in the plane, and triangulated without that assumption."""

CAMERAS = ('left', 'right')
"""Cameras in the order of their bits in the field ``cameras``, by default."""

OBSERVATIONS = 'longreach_msgs/msg/MarkerObservations'
ESTIMATES = 'longreach_msgs/msg/MarkerEstimates'
BODY = 'geometry_msgs/msg/PoseWithCovarianceStamped'

_SECOND = 1_000_000_000  # [ns]


def cameras_of(cameras: Iterable[str]) -> tuple[str, ...]:
    """Return the cameras of messages and tables for those of a rig: left and right, or those."""
    names = tuple(cameras)
    return CAMERAS if set(names) <= set(CAMERAS) else names


class Messages:
    """Makes messages: ``types`` returns the type of a name, stamps are in [ns]."""

    def __init__(
        self, types: Callable[[str], Callable[..., Any]], cameras: Sequence[str] = CAMERAS
    ) -> None:
        self._types, self._cameras = types, tuple(cameras)

    def _make(self, kind: str, **fields: Any) -> Any:
        return self._types(kind)(**fields)

    def _point(self, values: np.ndarray) -> Any:
        point = dict(zip('xyz', values.tolist(), strict=True))
        return self._make('geometry_msgs/msg/Point', **point)

    def header(self, stamp: int, frame_id: str) -> Any:
        """Return a header."""
        second, rest = divmod(stamp, _SECOND)
        time = self._make('builtin_interfaces/msg/Time', sec=second, nanosec=rest)
        return self._make('std_msgs/msg/Header', stamp=time, frame_id=frame_id)

    def observation(self, name: str, seen: Observation) -> Any:
        """Return the observation of a marker in an image."""
        return self._make(
            OBSERVATIONS.removesuffix('s'),
            name=name,
            status=STATUSES.index(seen.status),
            reason=seen.reason,
            center=np.array(seen.center, dtype=np.float64),
            covariance=np.array(seen.covariance, dtype=np.float64).ravel(),
            ellipse_center=np.array(seen.ellipse.center, dtype=np.float64),
            axes=np.array(seen.ellipse.axes, dtype=np.float64),
            angle=float(seen.ellipse.angle),
            rim_support=float(seen.rim_support),
            residual=float(seen.residual),
        )

    def observations(
        self, found: Mapping[str, Observation], camera: str, stamp: int = 0, frame_id: str = ''
    ) -> Any:
        """Return all observations in an image."""
        return self._make(
            OBSERVATIONS,
            header=self.header(stamp, frame_id),
            camera=camera,
            observations=[self.observation(*pair) for pair in found.items()],
        )

    def estimate(self, name: str, found: Estimate) -> Any:
        """Return the estimate of a marker."""
        fields: dict[str, Any] = {
            'name': name,
            'status': STATUSES.index(found.status),
            'reason': found.reason,
            'cameras': sum(1 << self._cameras.index(camera) for camera in found.cameras),
            'out_of_plane': float(found.out_of_plane),
            'out_of_plane_deviation': float(found.out_of_plane_deviation),
        }
        for kind in KINDS:
            location: Location | None = getattr(found, kind)
            place = np.full(3, math.nan) if location is None else location.position
            spread = np.full((3, 3), math.nan) if location is None else location.covariance
            noise = spread if location is None else location.noise
            fields[kind] = self._point(place)
            fields[f'{kind}_covariance'] = np.array(spread, dtype=np.float64).ravel()
            fields[f'{kind}_noise_covariance'] = np.array(noise, dtype=np.float64).ravel()
        return self._make(ESTIMATES.removesuffix('s'), **fields)

    def estimates(self, frame: RigFrame, stamp: int = 0, frame_id: str = '') -> Any:
        """Return all estimates of a set of images."""
        return self._make(
            ESTIMATES,
            header=self.header(stamp, frame_id),
            stamp_gap=frame.gap,
            chi_square=frame.chi_square,
            estimates=[self.estimate(*pair) for pair in frame.estimates.items()],
        )

    def pose(self, pose: Pose) -> Any:
        """Return a pose without time and frame."""
        turn = dict(zip('xyzw', pose.quaternion.tolist(), strict=True))
        return self._make(
            'geometry_msgs/msg/Pose',
            position=self._point(pose.translation),
            orientation=self._make('geometry_msgs/msg/Quaternion', **turn),
        )

    def body(self, pose: Pose, stamp: int, frame_id: str) -> Any:
        """Return a body's pose; the covariance has position first, and the parent's axes."""
        assert pose.covariance is not None
        turned = np.zeros((6, 6))
        turned[:3, 3:], turned[3:, :3] = np.eye(3), pose.rotation
        covariance = (turned @ pose.covariance @ turned.T).ravel()
        placed = self._make(
            'geometry_msgs/msg/PoseWithCovariance', pose=self.pose(pose), covariance=covariance
        )
        return self._make(BODY, header=self.header(stamp, frame_id), pose=placed)


# Order of the differences that pass noise and suppress slow motion.
_ORDER = 7
# Relative tolerance of equal intervals between images.
_EVEN = 0.1
# A number in a reason.
_NUMBER = re.compile(r'[-+]?\d+(\.\d+)?(e[-+]?\d+)?')


def _deviation(matrix: str, place: int, one: Any) -> float:
    """Return the root of a variance of an estimate; NaN if a recording lacks the matrix."""
    variances = getattr(one, matrix, None)
    return math.nan if variances is None else math.sqrt(max(variances[place], 0.0))


def _marker_columns() -> dict[str, Callable[[Any], float]]:
    """Return the columns of a marker, each read from a longreach_msgs/MarkerEstimate."""
    found: dict[str, Callable[[Any], float]] = {}
    found |= {name: attrgetter(name) for name in ('status', 'cameras')}
    for kind in KINDS:
        found |= {f'{kind}_{axis}': attrgetter(f'{kind}.{axis}') for axis in 'xyz'}
        for what, matrix in (('deviation', 'covariance'), ('noise', 'noise_covariance')):
            for k, axis in enumerate('xyz'):
                found[f'{kind}_{what}_{axis}'] = partial(_deviation, f'{kind}_{matrix}', 4 * k)
    return found | {name: attrgetter(name) for name in ('out_of_plane', 'out_of_plane_deviation')}


_MARKER = _marker_columns()
_CAMERA = ('status', 'u', 'v')
_BODY = (
    *('status', 'markers', *'xyz', *(f'q{axis}' for axis in 'xyzw')),
    *(
        f'{kind}_{axis}'
        for kind in ('deviation', 'rotation_deviation', 'noise', 'rotation_noise')
        for axis in 'xyz'
    ),
    'chi_square',
)


def columns_of(
    names: Sequence[str], cameras: Sequence[str] = CAMERAS, bodies: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the columns: time [s], stamp_gap [s]; then MARKER.COLUMN, BODY.COLUMN (README)."""
    own = [*_MARKER, *(f'{camera}_{what}' for camera in cameras for what in _CAMERA)]
    columns = [f'{name}.{what}' for name in names for what in own]
    columns += [f'{name}.{what}' for name in bodies for what in _BODY]
    return ('time', 'stamp_gap', *columns)


def row_of(
    frame: RigFrame,
    names: Sequence[str],
    cameras: Sequence[str] = CAMERAS,
    bodies: Sequence[str] = (),
) -> list[float]:
    """Return the row of a table of tracks, in the order of :func:`columns_of`."""
    plain = Messages(lambda _: SimpleNamespace, cameras)
    found = frame.observations
    observed = [plain.observations(found[one], one) if one in found else None for one in cameras]
    row = message_row(frame.time, names, plain.estimates(frame), observed)
    return row + [value for name in bodies for value in _located(frame.bodies.get(name))]


def message_row(
    time: float, names: Sequence[str], markers: Any, observed: Sequence[Any]
) -> list[float]:
    """Return the row of a MarkerEstimates, and of each camera's MarkerObservations if known."""
    row = [time, float(markers.stamp_gap)]
    lost, unseen = STATUSES.index(LOST), [float(STATUSES.index(LOST)), math.nan, math.nan]
    estimates = {one.name: one for one in markers.estimates}
    seen = [one and {each.name: each for each in one.observations} for one in observed]
    unknown = Messages(lambda _: SimpleNamespace).estimate('', Estimate('', LOST, ''))
    for name in names:
        row += [float(read(estimates.get(name, unknown))) for read in _MARKER.values()]
        for camera in seen:
            if camera is None:
                row += [math.nan] * len(unseen)
                continue
            one: Any = camera.get(name)
            known = one is not None and one.status != lost
            row += [float(one.status), *map(float, one.center)] if known else unseen
    return row


def _located(body: BodyEstimate | None) -> list[float]:
    if body is None or body.pose is None or body.pose.covariance is None:
        markers = 0 if body is None else len(body.markers)
        chi_square = math.nan if body is None else body.chi_square
        return [STATUSES.index(LOST), markers, *[math.nan] * 19, chi_square]
    pose, noise = body.pose, body.noise
    assert noise is not None
    row = [0.0, len(body.markers), *pose.translation.tolist(), *pose.quaternion.tolist()]
    for covariance in (body.pose.covariance, noise):
        turn, shift = np.sqrt(np.maximum(np.diag(covariance), 0.0)).reshape(2, 3).tolist()
        row += [*shift, *turn]
    return [*row, body.chi_square]


@dataclasses.dataclass(frozen=True, eq=False)
class Tracks:
    """Tracks of markers and bodies."""

    names: tuple[str, ...]
    cameras: tuple[str, ...]
    table: np.ndarray  # one row for each set of images, with the columns of columns_of
    # By marker or body, for each row, why it was not tracked; empty if it was.
    reasons: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    bodies: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return columns_of(self.names, self.cameras, self.bodies)

    @property
    def times(self) -> np.ndarray:
        """Times of the rows, shape (K,) [s]."""
        return self.table[:, 0]

    def column(self, name: str, what: str) -> np.ndarray:
        """Return one column of a marker, shape (K,)."""
        return self.table[:, self.columns.index(f'{name}.{what}')]

    def positions(self, name: str, kind: str = KINDS[0]) -> np.ndarray:
        """Return positions (K, 3) [m]; NaN where a marker was not tracked, also if uncertain."""
        found = np.stack([self.column(name, f'{kind}_{axis}') for axis in 'xyz'], axis=1)
        found[self.column(name, 'status') != STATUSES.index(TRACKED)] = math.nan
        return found

    def best_kind(self, name: str) -> str:
        """Return the kind of estimate with more rows; if equal, in the plane."""
        return max(KINDS, key=lambda kind: np.isfinite(self.positions(name, kind)[:, 0]).sum())

    def counts(self, name: str) -> dict[str, int]:
        """Return the number of rows of each status of a marker."""
        status = self.column(name, 'status')
        return {text: int((status == k).sum()) for k, text in enumerate(STATUSES)}

    def sightings(self) -> list[dict[str, Any]]:
        """Return what each camera contributes: sightings by status, tracked ones by marker."""
        rows = []
        for camera in self.cameras:
            status = {name: self.column(name, f'{camera}_status') for name in self.names}
            counted = {
                text: {name: int((one == k).sum()) for name, one in status.items()}
                for k, text in enumerate(STATUSES)
            }
            rows.append(
                {
                    'camera': camera,
                    'sightings': sum(int(np.isfinite(one).sum()) for one in status.values()),
                    'tracked': sum(counted[TRACKED].values()),
                    'uncertain': sum(counted[UNCERTAIN].values()),
                    'lost': sum(counted[LOST].values()),
                    'markers': counted[TRACKED],
                }
            )
        return rows

    def why_not(self, name: str) -> list[tuple[str, int]]:
        """Return reasons, those that differ in their numbers only together, with their counts."""
        found: dict[str, tuple[str, int]] = {}
        for reason in filter(None, self.reasons.get(name, ())):
            kind = _NUMBER.sub('', reason)
            first, count = found.get(kind, (reason, 0))
            found[kind] = first, count + 1
        return sorted(found.values(), key=lambda one: -one[1])

    def _told(self, name: str) -> list[dict[str, Any]]:
        return [{'reason': reason, 'images': count} for reason, count in self.why_not(name)]

    def summary(self) -> list[dict[str, Any]]:
        """Return a summary of each marker as plain numbers, of its :meth:`best_kind`."""
        rows = []
        for name in self.names:
            kind = self.best_kind(name)
            found = self.positions(name, kind)
            there, spread = found[np.isfinite(found[:, 0])], noise(self.times, found)
            rows.append(
                {
                    'name': name,
                    **{text.lower(): count for text, count in self.counts(name).items()},
                    'reasons': self._told(name),
                    'kind': kind,
                    **_ends(there),
                    'range': np.ptp(there, axis=0).tolist() if len(there) else None,
                    'noise': spread.tolist() if np.isfinite(spread).all() else None,
                }
            )
        return rows

    def body_summary(self) -> list[dict[str, Any]]:
        """Return a summary of each body as plain numbers, with the median of chi_square."""
        rows = []
        for name in self.bodies:
            poses = np.stack([self.column(name, axis) for axis in 'xyz'], axis=1)
            is_known = np.isfinite(poses[:, 0])
            there = poses[is_known]
            fits = self.column(name, 'chi_square')[is_known]
            rows.append(
                {
                    'name': name,
                    'images': len(poses),
                    'poses': len(there),
                    **_ends(there),
                    'chi_square': float(np.median(fits)) if len(fits) else None,
                    'reasons': self._told(name),
                }
            )
        return rows


def _ends(places: np.ndarray) -> dict[str, list[float] | None]:
    first, last = places[[0, -1]].tolist() if len(places) else (None, None)
    return {'first': first, 'last': last}


def noise(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """
    Return the noise (m,) of series (K, m) at times (K,): white, with the same seventh differences.

    Motion below a tenth of the sampling rate has hardly any influence on it.
    """
    width = values.shape[1]
    if len(times) <= _ORDER:
        return np.full(width, math.nan)
    steps = np.diff(times)
    span = np.lib.stride_tricks.sliding_window_view(steps, _ORDER)
    even = np.ptp(span, axis=1) < _EVEN * span.mean(axis=1)
    differences = np.diff(values, n=_ORDER, axis=0)
    whole = even & np.isfinite(differences).all(axis=1)
    if not whole.any():
        return np.full(width, math.nan)
    return np.asarray(
        np.sqrt(np.mean(differences[whole] ** 2, axis=0) / math.comb(2 * _ORDER, _ORDER))
    )


def compare(tracks: Tracks, path: MarkerPath) -> list[dict[str, Any]]:
    """Compare tracks with the true motion of the centres; None for an estimate never made."""
    whole = path.of(tracks.names)
    first, last = whole.times[[0, -1]]
    common = (tracks.times >= first) & (tracks.times <= last)
    if not common.any():
        raise InputError(
            f'tracks of {_span(tracks.times)} and a path of {_span(whole.times)} have no time in'
            ' common; check that they are of the same run'
        )
    truth = np.array([whole.at(time)[0] for time in tracks.times[common]])
    rows = []
    for k, name in enumerate(tracks.names):
        place = truth[:, k]
        status = tracks.column(name, 'status')[common]
        row: dict[str, Any] = {'name': name, 'rows': int(common.sum())}
        row |= {text.lower(): int((status == i).sum()) for i, text in enumerate(STATUSES)}
        row['motion'] = float(np.sqrt(place.var(axis=0).sum()))
        for kind in KINDS:
            row[kind] = _errors(tracks.positions(name, kind)[common] - place)
        rows.append(row)
    return rows


def _span(times: np.ndarray) -> str:
    return f'[{times[0]:g}, {times[-1]:g}] s' if times.size else 'no time'


def _errors(errors: np.ndarray) -> dict[str, Any] | None:
    """Return statistics of errors (K, 3); NaN rows are ignored."""
    known = errors[np.isfinite(errors).all(axis=1)]
    if not len(known):
        return None
    distances = np.linalg.norm(known, axis=1)
    mean = known.mean(axis=0)
    return {
        'count': len(known),
        'rms': float(np.sqrt(np.mean(distances**2))),
        'largest': float(distances.max()),
        'bias': float(np.linalg.norm(mean)),
        'scatter': float(np.sqrt(known.var(axis=0).sum())),
        'mean': mean.tolist(),
    }
