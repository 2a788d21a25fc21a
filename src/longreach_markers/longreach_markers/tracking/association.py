"""
Assign ellipses to markers that can be confused with each other.

Neighbouring and lost markers are assigned jointly so that the sum of squared Mahalanobis distances
is least. The distances are those of positions from their predictions, and of relative positions of
neighbours, because neighbours move alike. Where two assignments are nearly equally likely, the
markers are UNCERTAIN and name each other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from longreach_markers.marker.detection import UNCERTAIN, Observation, lost
from longreach_markers.tracking.appearance import difference
from longreach_markers.tracking.image_motion import ImageMotion, Prediction, Track

# Time after which a marker that has only been UNCERTAIN is predicted independently again [s].
PATIENCE = 1.0
# Least difference in squared Mahalanobis distance between the best and the next assignment.
_DOUBT = 7.0
# Cost, as a squared distance, of assigning no ellipse to a marker, and the largest cost of an
# ellipse within its gate.
_NOT_SEEN, _FAR = 25.0, 24.0
# Number of nearest ellipses considered for each marker, and of assignments compared: enough for
# all assignments of four markers; with more markers, only the likeliest are compared.
_ELLIPSES, _ANSWERS = 4, 1000
ANOTHER = 'another one'
# Largest relative change of a marker's size since it was lost.
_SINCE_LOST = 0.3
# Relative speed of neighbours as a share of their speed, until it has been observed.
_ALIKE = 0.2


class Sighting(NamedTuple):
    """Result of the search for one marker."""

    observation: Observation
    taken: bool  # accepted as this marker
    distance: float = math.inf  # squared Mahalanobis distance
    doubt: str = ''  # name of another marker that it may be


@dataclasses.dataclass(frozen=True)
class Association:
    """Assignment of ellipses, each with a sighting, to markers in one image."""

    motion: ImageMotion
    tracks: Mapping[str, Track]
    predictions: Mapping[str, Prediction]
    sightings: Mapping[str, Sequence[Sighting]]
    time: float

    def solve(self, nearest: Mapping[str, Sighting]) -> dict[str, Sighting]:
        """Return a sighting of each marker; no ellipse is assigned to two of them."""
        allowed = {
            name: sorted(
                (k for k, one in enumerate(row) if one.taken), key=lambda k: row[k].distance
            )[:_ELLIPSES]
            for name, row in self.sightings.items()
        }
        chosen: dict[str, int] = {}
        rivals: dict[str, str] = {}
        for names in _together(allowed):
            answers, are_all = self._answers(names, [sorted(allowed[name]) for name in names])
            for row, (name, k) in enumerate(zip(names, answers[0], strict=True)):
                if k >= 0:
                    chosen[name] = k
                    rivals[name] = _rival(answers, row, names) if are_all else ANOTHER
        # Include markers whose gates are just missed by an ellipse that was found for another
        # marker.
        hidden = [name for name in self.predictions if name not in chosen]
        assigned = {name: self._elsewhere(name, nearest[name]) for name in hidden}
        for name, k in chosen.items():
            sighting = self.sightings[name][k]
            other = rivals[name] or self._stray(name, sighting.observation, hidden)
            # Once both are in sight, or after PATIENCE, further images do not resolve the
            # ambiguity.
            is_settled = other in chosen or self.time - self.tracks[name].trusted_time > PATIENCE
            if not other or is_settled:
                assigned[name] = sighting._replace(doubt=other)
            else:
                assigned[name] = Sighting(may_be(sighting.observation, other), taken=False)
        return assigned

    def _stray(self, name: str, seen: Observation, hidden: Sequence[str]) -> str:
        """Return a hidden marker that this sighting outside its window may be, or ''."""
        # By the likelihoods s^-2 exp(-d^2 / (2 s^2)).
        track = self.tracks[name]
        if not track.lost:
            return ''
        spread = self.motion.spread(track, self.time)
        own = math.dist(seen.center, self.predictions[name].center) ** 2 / spread**2
        camera = self.motion.camera
        farthest = 0.5 * math.hypot(camera.width, camera.height)
        for other in hidden:
            one = self.tracks[other]
            its = min(self.motion.spread(one, self.time), farthest)
            distance = math.dist(seen.center, self.predictions[other].center) ** 2 / its**2
            is_near = distance + 4.0 * math.log(its / spread) < own + _DOUBT
            if is_near and not difference(seen, one.reference, _SINCE_LOST):
                return other
        return ''

    def _answers(
        self, names: Sequence[str], ellipses: Sequence[Sequence[int]]
    ) -> tuple[list[tuple[int, ...]], bool]:
        """Return all assignments nearly as likely as the best, and whether these are all."""
        alone = [self._alone(name, own) for name, own in zip(names, ellipses, strict=True)]
        rest = sum(float(own.min()) for own in alone)
        least = math.inf  # cost of an assignment that is left out
        costs, columns = np.zeros(1), np.zeros((1, 0), dtype=np.intp)
        for row, own in enumerate(alone):
            total = costs[:, None] + own
            for before in range(row):
                total += self._pair(
                    (names[before], names[row]), (ellipses[before], ellipses[row])
                )[columns[:, before]]
            order = np.argsort(total, axis=None, kind='stable')
            order = order[: np.isfinite(total).sum()]
            rest -= float(own.min())
            if len(order) > _ANSWERS:
                least = min(least, float(total.flat[order[_ANSWERS]]) + rest)
                order = order[:_ANSWERS]
            answer, column = np.unravel_index(order, total.shape)
            costs, columns = total[answer, column], np.column_stack([columns[answer], column])
        near = columns[costs < costs[0] + _DOUBT].tolist()
        answers = [
            tuple((-1, *own)[k] for own, k in zip(ellipses, one, strict=True)) for one in near
        ]
        return answers, least >= costs[0] + _DOUBT

    def _alone(self, name: str, ellipses: Sequence[int]) -> np.ndarray:
        """Return squared distances (1 + ellipses,) of a marker: no ellipse first."""
        center = self.predictions[name].center
        spread = self.motion.spread(self.tracks[name], self.time)
        away = [
            math.dist(self.sightings[name][k].observation.center, center) / spread
            for k in ellipses
        ]  # fmt: skip
        return np.array([_NOT_SEEN, *(min(one * one, _FAR) for one in away)])

    def _pair(
        self, names: tuple[str, str], ellipses: tuple[Sequence[int], Sequence[int]]
    ) -> np.ndarray:
        """Return squared changes of the distance of a pair; first row, column: no ellipse."""
        motion = self.motion
        track, other = (self.tracks[name] for name in names)
        places = [
            np.array([self.sightings[name][k].observation.center for k in own]).reshape(-1, 2)
            for name, own in zip(names, ellipses, strict=True)
        ]
        apart = places[1] - places[0][:, None]
        between = _between(track, other)
        if between:
            wanted, spread = motion.drift(between, self.time, _ALIKE)
        else:
            first, second = (self.predictions[name].center for name in names)
            wanted = second - first
            since = [(min(track.time, other.time), 0.0, 0.0)]
            known = _ALIKE * (track.covariance[0, 0] + other.covariance[0, 0])
            spread = math.hypot(motion.drift(since, self.time, _ALIKE)[1], math.sqrt(known))
        costs = np.zeros((len(ellipses[0]) + 1, len(ellipses[1]) + 1))
        costs[1:, 1:] = ((apart - wanted) ** 2).sum(axis=2) / spread**2
        costs[1:, 1:][np.equal.outer(ellipses[0], ellipses[1])] = math.inf
        return costs

    def _elsewhere(self, name: str, sighting: Sighting) -> Sighting:
        seen = sighting.observation
        if sighting.taken:
            reason = 'the ellipse found here is another marker'
            seen = lost(
                reason, self.predictions[name].center, seen.radius, self.tracks[name].reference
            )
        return Sighting(seen, taken=False)


def may_be(seen: Observation, other: str) -> Observation:
    """Return an observation as UNCERTAIN because it may be another marker."""
    return dataclasses.replace(seen, status=UNCERTAIN, reason=f'may be {other}')


def _between(track: Track, other: Track) -> list[tuple[float, float, float]]:
    """Return the relative path of two markers at times when both were seen: t, u, v."""
    its = {at: (u, v) for at, u, v in other.path}
    return [(at, its[at][0] - u, its[at][1] - v) for at, u, v in track.path if at in its]


def _rival(answers: Sequence[tuple[int, ...]], row: int, names: Sequence[str]) -> str:
    """Return the other marker that an ellipse may be, or ``another one``; empty if unambiguous."""
    k = answers[0][row]
    for choice in answers[1:]:
        if choice[row] != k and k in choice:
            return names[choice.index(k)]
        if choice[row] not in (k, -1):
            return ANOTHER
    return ''


def _together(allowed: Mapping[str, Sequence[int]]) -> list[list[str]]:
    """Return groups of markers that share ellipses; markers without ellipses are left out."""
    groups: list[tuple[list[str], set[int]]] = []
    for name, ellipses in allowed.items():
        if not ellipses:
            continue
        names, places = [name], set(ellipses)
        for group in [group for group in groups if group[1] & places]:
            groups.remove(group)
            names = group[0] + names
            places |= group[1]
        groups.append((names, places))
    return [names for names, _ in groups]
