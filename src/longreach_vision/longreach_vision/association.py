"""
Which marker is which ellipse, for markers that may be mixed up.

Markers near each other or lost are assigned together, so that the sum of squared distances is
least, each over what its prediction may be wrong by, as the marker moved of late: of places, and
of how neighbours lie to each other, because these move alike. Where two answers are nearly as
likely, markers are UNCERTAIN, with each other's names.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from longreach_vision.appearance import difference
from longreach_vision.detection import UNCERTAIN, Observation, lost
from longreach_vision.image_motion import ImageMotion, Prediction, Track

__all__ = ['PATIENCE', 'Association', 'Sighting', 'may_be']

# A marker that was no more than UNCERTAIN for so long is predicted by itself again [s].
PATIENCE = 1.0
# Squared Mahalanobis distance by which one answer must be better than another.
_DOUBT = 7.0
# Cost, as a squared distance, of a marker that is none of the ellipses, and the most that one in
# its gate may have; markers that are assigned together at most.
_NOT_SEEN, _FAR = 25.0, 24.0
_MOST_TOGETHER = 4
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
            By name, of all markers that have an ellipse in their gates.
        """
        allowed = {
            name: sorted(
                (k for k, one in enumerate(row) if one.taken), key=lambda k: row[k].distance
            )[:_MOST_TOGETHER]
            for name, row in self.sightings.items()
        }
        assigned: dict[str, Sighting] = {}
        chosen: dict[str, int] = {}
        rivals: dict[str, str] = {}
        for names in _together(allowed):
            hypotheses = sorted(
                (self._cost(names, choice), choice)
                for choice in _choices([allowed[name] for name in names])
            )
            for row, (name, k) in enumerate(zip(names, hypotheses[0][1], strict=True)):
                if k < 0:
                    assigned[name] = self._elsewhere(name, nearest[name])
                else:
                    chosen[name] = k
                    rivals[name] = _rival(hypotheses, row, names)
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

    def _cost(self, names: Sequence[str], choice: Sequence[int]) -> float:
        """
        Return how unlikely it is that markers are these ellipses, as a squared distance.

        Neighbours move alike while they are hidden: how they lie to each other counts besides.
        """
        motion, total = self.motion, 0.0
        seen = []
        for name, k in zip(names, choice, strict=True):
            if k < 0:
                total += _NOT_SEEN
                continue
            track, center = self.tracks[name], self.sightings[name][k].observation.center
            away = math.dist(center, self.predictions[name].center)
            total += min((away / motion.spread(track, self.time)) ** 2, _FAR)
            seen.append((track, center - self.predictions[name].center, center))
        for (track, shift, center), (other, its, place) in itertools.combinations(seen, 2):
            between = _between(track, other)
            if between:
                wanted, spread = motion.drift(between, self.time, _ALIKE)
                error = math.dist(place - center, wanted)
            else:
                _, spread = motion.drift(
                    [(min(track.time, other.time), 0.0, 0.0)], self.time, _ALIKE
                )
                known = _ALIKE * (track.covariance[0, 0] + other.covariance[0, 0])
                error, spread = math.dist(shift, its), math.hypot(spread, math.sqrt(known))
            total += (error / spread) ** 2
        return total

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


def _rival(
    hypotheses: Sequence[tuple[float, tuple[int, ...]]], row: int, names: Sequence[str]
) -> str:
    """
    Return which other marker an ellipse may be, by answers nearly as likely as the best one.

    ``another one`` where it is the marker that may be another ellipse; empty for neither.
    """
    best, chosen = hypotheses[0]
    k = chosen[row]
    for cost, choice in hypotheses[1:]:
        if not cost < best + _DOUBT:
            break
        if choice[row] != k and k in choice:
            return names[choice.index(k)]
        if choice[row] not in (k, -1):
            return 'another one'
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
    # What is left of more has to wait for the next image.
    return [names[:_MOST_TOGETHER] for names, _ in groups]


def _choices(allowed: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield all ways to give each row one of its columns or none, -1, and no column twice."""
    for choice in itertools.product(*([-1, *columns] for columns in allowed)):
        given = [k for k in choice if k >= 0]
        if len(set(given)) == len(given):
            yield choice
