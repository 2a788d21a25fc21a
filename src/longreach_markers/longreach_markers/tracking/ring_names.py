"""Assignment of names to the rings found in whole images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers.marker.detection import Observation
from longreach_markers.rig import MarkerOnRig
from longreach_markers.tracking.appearance import RADIUS_BY_RIG, Appearance, difference, mismatch

Kind = tuple[float, ...]

# Least distance along the plane's first axis by which markers are named, in radii.
_IN_ORDER = 0.5


class Named(NamedTuple):
    """Observations by marker and camera; reasons of the missing ones, and all as a text."""

    views: dict[str, dict[str, Observation]]
    missing: dict[str, str]
    problem: str


def name_markers(
    appearances: Mapping[str, Appearance],
    found: Mapping[str, Sequence[Observation]],
    markers: Sequence[MarkerOnRig],
    together: float,
) -> Named:
    """Assign names to the rings found in whole images."""
    # Rings that look like a marker are located in its plane; those of two cameras together [m] are
    # one. Markers of equal appearance - radius, inner edge, polarity, offset - are named in the
    # order of the rig along the plane's first axis. If there are too many, only those seen by both
    # cameras count. If the number still differs, or this axis does not order them, none of these
    # is named.
    kinds = kinds_of(markers)
    rings: dict[Kind, dict[str, list[Observation]]] = {
        kind: {side: [] for side in found} for kind in kinds
    }
    for side, observations in found.items():
        for seen in observations:
            kind = _kind_of(appearances[side], seen, kinds)
            if kind is not None:
                rings[kind][side].append(seen)
    named: dict[str, dict[str, Observation]] = {}
    missing: dict[str, str] = {}
    problems: list[str] = []
    for kind, wanted in kinds.items():
        groups = _groups(appearances, rings[kind], wanted[0], together)
        if len(groups) > len(wanted):
            groups = [group for group in groups if len(group[1]) == len(found)]
        groups.sort(key=lambda group: group[0])
        if len(groups) != len(wanted):
            unnamed = _wrong_number(wanted, len(groups))
        else:
            unnamed = _wrong_order(wanted, [place[0] for place, _ in groups])
        if unnamed:
            missing.update(dict.fromkeys((marker.name for marker in wanted), unnamed))
            problems.append(unnamed)
            continue
        named.update(
            {marker.name: views for marker, (_, views) in zip(wanted, groups, strict=True)}
        )
    problem = f'{"; ".join(problems)}. {_rings(found)}' if problems else ''
    return Named(named, missing, problem)


def kinds_of(markers: Sequence[MarkerOnRig]) -> dict[Kind, list[MarkerOnRig]]:
    """Return markers grouped by their appearance: radius, inner edge, polarity, offset."""
    kinds: dict[Kind, list[MarkerOnRig]] = {}
    for marker in markers:
        own = (marker.radius, marker.inner, float(marker.bright), marker.offset)
        kinds.setdefault(own, []).append(marker)
    return kinds


def _kind_of(
    appearance: Appearance, seen: Observation, kinds: Mapping[Kind, list[MarkerOnRig]]
) -> Kind | None:
    """Return the kind of marker that an observation resembles most, None for none."""
    best, least = None, math.inf
    for kind, (marker, *_) in kinds.items():
        try:
            appearance.in_plane(seen.center, marker)
        except InputError:
            # Its ray does not intersect the plane.
            continue
        wanted = appearance.by_rig(marker, seen.center)
        change = mismatch(seen, wanted)
        if not difference(seen, wanted, RADIUS_BY_RIG) and change < least:
            best, least = kind, change
    return best


def _groups(
    appearances: Mapping[str, Appearance],
    seen: Mapping[str, Sequence[Observation]],
    marker: MarkerOnRig,
    together: float,
) -> list[tuple[tuple[float, float], dict[str, Observation]]]:
    """Return positions in the plane of markers of one kind, with their observations."""
    places = {
        side: np.array([appearances[side].in_plane(one.center, marker) for one in observations])
        for side, observations in seen.items()
    }
    groups: list[tuple[np.ndarray, dict[str, Observation]]] = []
    for side in seen:
        apart = np.array(
            [[math.dist(place, own) for own in places[side]] for place, _ in groups]
        ).reshape(len(groups), len(seen[side]))
        chosen = set()
        for k, (_, views) in enumerate(groups):
            near = int(np.argmin(apart[k])) if apart[k].size else 0
            # Mutual nearest neighbours.
            if apart[k].size and apart[k, near] < together and k == np.argmin(apart[:, near]):
                views[side] = seen[side][near]
                chosen.add(near)
        new = (k for k in range(len(seen[side])) if k not in chosen)
        groups += [(places[side][k], {side: seen[side][k]}) for k in new]
    return [((float(place[0]), float(place[1])), views) for place, views in groups]


def _wrong_number(wanted: Sequence[MarkerOnRig], count: int) -> str:
    discs = ' (discs are not found in this way)' if wanted[0].inner == 0.0 else ''
    names = ', '.join(one.name for one in wanted)
    return f'{count} markers found instead of {len(wanted)}: {names}{discs}'


def _wrong_order(wanted: Sequence[MarkerOnRig], along: Sequence[float]) -> str:
    for pair, (a, b) in zip(pairwise(wanted), pairwise(along), strict=True):
        if b - a < _IN_ORDER * wanted[0].radius:
            names = ' and '.join(marker.name for marker in pair)
            return (
                f'{names} would be {1e3 * (b - a):.2g} mm apart along the first axis of the plane,'
                f' allowed: {1e3 * _IN_ORDER * wanted[0].radius:.2g} mm or more for names by order'
            )
    return ''


def _rings(found: Mapping[str, Sequence[Observation]]) -> str:
    lists = []
    for side, observations in found.items():
        rings = [
            f'({one.center[0]:.0f}, {one.center[1]:.0f}) of {one.radius:.0f} px'
            for one in observations
        ]
        lists.append(f'{side}: {", ".join(rings) or "none"}')
    return (
        f'Rings in the images: {"; ".join(lists)}. Give each marker a position, or a pixel and'
        ' radius, in the rig file'
    )
