"""
Which marker is which ellipse, for markers that may be mixed up.

Markers near each other or lost are assigned together, so that the sum of squared distances is
least, each over what its prediction may be wrong by, as the marker moved of late: of places, and
of how neighbours lie to each other, because these move alike. Where two answers are nearly as
likely, markers are UNCERTAIN, with each other's names.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from longreach_vision.appearance import difference
from longreach_vision.detection import UNCERTAIN, Observation, lost
from longreach_vision.image_motion import ImageMotion, Prediction, Track

__all__ = ['PATIENCE', 'Association', 'Sighting', 'may_be']

# A marker that was no more than UNCERTAIN for so long is predicted by itself again [s].
PATIENCE = 1.0
# Squared Mahalanobis distance by which one answer must be better than another.
_DOUBT = 7.0
# Cost, as a squared distance, of a marker that is none of the ellipses, and the most that one in
# its gate may have.
_NOT_SEEN, _FAR = 25.0, 24.0
# Ellipses that a marker may be, the nearest ones, and answers that are compared: all those of
# four markers, and of more, whose number has no bound, the likeliest ones.
_ELLIPSES, _ANSWERS = 4, 1000
_ANOTHER = 'another one'
# By how much the size of a marker may have changed since it was lost, as a share.
_SINCE_LOST = 0.3
# Speed of neighbours against each other, over that of each, before more is known.
_ALIKE = 0.2


class Sighting(NamedTuple):
    """What became of looking for a marker."""

    observation: Observation
    taken: bool  # for this marker
    distance: float = math.inf  # squared, of Mahalanobis
    doubt: str = ''  # another marker that it may be


@dataclasses.dataclass(frozen=True)
class Association:
    """
    Markers, and the ellipses that they may be.

    Parameters
    ----------
    motion : ImageMotion
    tracks : mapping of Track
        By name, of all markers.
    predictions : mapping of Prediction
        By name, of those that are assigned.
    sightings : mapping of sequences of Sighting
        By the same names: what each marker would say of each ellipse.
    time : float
        Of the image [s].
    """

    motion: ImageMotion
    tracks: Mapping[str, Track]
    predictions: Mapping[str, Prediction]
    sightings: Mapping[str, Sequence[Sighting]]
    time: float

    def solve(self, nearest: Mapping[str, Sighting]) -> dict[str, Sighting]:
        """
        Return which markers the ellipses are.

        Parameters
        ----------
        nearest : mapping of Sighting
            What was seen where each marker was expected.

        Returns
        -------
        dict of Sighting
            By name; no two are taken for one ellipse.
        """
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
                    rivals[name] = _rival(answers, row, names) if are_all else _ANOTHER
        # Also those with an ellipse that is just outside of their gates where others found it.
        assigned = {
            name: self._elsewhere(name, nearest[name])
            for name in self.predictions
            if name not in chosen
        }
        hidden = [name for name in self.predictions if name not in chosen]
        for name, k in chosen.items():
            sighting = self.sightings[name][k]
            other = rivals[name] or self._stray(name, sighting.observation, hidden)
            # When both are in sight, or after some time, nothing more is to be learnt.
            is_settled = other in chosen or self.time - self.tracks[name].trusted_time > PATIENCE
            if not other or is_settled:
                assigned[name] = sighting._replace(doubt=other)
            else:
                assigned[name] = Sighting(may_be(sighting.observation, other), taken=False)
        return assigned

    def _stray(self, name: str, seen: Observation, hidden: Sequence[str]) -> str:
        """
        Return which hidden marker this may be though its own window ends before; empty for none.

        By both likelihoods, s^-2 exp(-d^2 / (2 s^2)); what was lost long ago may be anywhere.
        """
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
        """
        Return which ellipse each marker may be, -1 for none: the likeliest answer first.

        All that are nearly as likely follow, no ellipse twice in any. Neighbours move alike while
        they are hidden: how they lie to each other counts besides.

        Returns
        -------
        answers : list of tuple of int
        are_all : bool
            Whether none is missing, for there are too many that have to be compared.
        """
        alone = [self._alone(name, own) for name, own in zip(names, ellipses, strict=True)]
        rest = sum(float(own.min()) for own in alone)
        least = math.inf  # that an answer costs which is left out
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
        """Return squared distances of a marker from none, first, and from ellipses."""
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
        """
        Return squared distances of two markers from how they lay to each other.

        Rows and columns are none, first, and the ellipses of one and of the other.
        """
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
        """Return the sighting of a marker that is none of the candidates."""
        seen = sighting.observation
        if sighting.taken:
            reason = 'what is seen here is another marker'
            seen = lost(
                reason,
                self.predictions[name].center,
                seen.radius,
                self.tracks[name].reference,
            )
        return Sighting(seen, taken=False)


def may_be(seen: Observation, other: str) -> Observation:
    """Return the observation of an ellipse that may be another marker."""
    return dataclasses.replace(seen, status=UNCERTAIN, reason=f'may be {other}')


def _between(track: Track, other: Track) -> list[tuple[float, float, float]]:
    """Return the path of a marker against another one: times when both were seen, u and v."""
    its = {at: (u, v) for at, u, v in other.path}
    return [(at, its[at][0] - u, its[at][1] - v) for at, u, v in track.path if at in its]


def _rival(answers: Sequence[tuple[int, ...]], row: int, names: Sequence[str]) -> str:
    """
    Return which other marker an ellipse may be, by answers nearly as likely as the first one.

    ``another one`` where it is the marker that may be another ellipse; empty for neither.
    """
    k = answers[0][row]
    for choice in answers[1:]:
        if choice[row] != k and k in choice:
            return names[choice.index(k)]
        if choice[row] not in (k, -1):
            return _ANOTHER
    return ''


def _together(allowed: Mapping[str, Sequence[int]]) -> list[list[str]]:
    """Return groups of markers that share ellipses, those without any left out."""
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
