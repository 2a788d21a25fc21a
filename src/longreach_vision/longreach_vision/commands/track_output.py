"""Output of tracks: files (complete or absent), summary, errors, advice."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from longreach_dynamics.errors import InputError, LongreachError, check_among
from longreach_machine import Curve, Lane, Panel
from longreach_machine.runs import Column
from longreach_markers import (
    TRACKED,
    Agreement,
    ClockOffset,
    Followed,
    Follower,
    ImageSource,
    MarkerOnRig,
    Picture,
    Rig,
    Sightings,
    compare_clocks,
    compare_poses,
    follow,
    size_warning,
)
from longreach_tools.output import (
    check_output,
    check_places,
    making_directory,
    print_result,
    table,
    write_csv,
)
from longreach_vision.io.bag_files import BagImages, writing_tracks
from longreach_vision.io.picture_files import writing_overlay
from longreach_vision.io.track_table import KINDS, STATUSES, Tracks, cameras_of, compare, row_of
from longreach_vision.simulator.marker_path import MarkerPath

_MILLI = 1e3
# Largest number of reasons listed for each marker.
_REASONS = 5
# Sightings of a camera, as a share of the other's, or by two cameras, as a share of all, that are
# said to be few; share of those by two cameras that are tracked of a good rig.
_FEW, _HALF = 0.1, 0.5


class Targets:
    """Output files of tracks that are asked for, None for the others; nothing is written yet."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        names: Sequence[str],
        read: Iterable[str | Path | None],
    ) -> None:
        asked = vars(arguments)
        self.form: str = arguments.format
        self.namespace: str = asked.get('namespace', 'vision')
        self.out: Path | None = asked.get('out')
        self.csv: Path | None = arguments.csv
        # For compare, the bag is an input.
        self.bag: Path | None = asked.get('bag') if 'out' in asked else None
        if self.out is not None:
            self.csv, self.bag = (
                self.csv or self.out / 'tracks.csv',
                self.bag or self.out / 'tracks',
            )
        self.overlay: Path | None = asked.get('overlay')
        self.plot: Path | None = arguments.plot
        self.moving, self.movement = _movement(arguments.movement, names)
        places = ('out', 'csv', 'bag', 'overlay', 'plot', 'movement')
        check_places({f'--{place}': getattr(self, place) for place in places}, read)

    def check_files(self) -> None:
        """Raise InputError for a file that cannot be written, before the work starts."""
        check_output(self.csv, self.plot)
        check_output(plot=self.movement)


def _movement(asked: str | None, names: Sequence[str]) -> tuple[str, Path | None]:
    if asked is None:
        return '', None
    name, _, file = asked.partition('=')
    if not file:
        raise InputError(f'--movement {asked}, allowed: MARKER=FILE')
    check_among('marker of --movement', name, names)
    return name, Path(file)


# --- tracking --------------------------------------------------------------------------------


def track_markers(
    targets: Targets,
    rig: Rig,
    images: Iterable[Picture],
    total: int | None,
    path: MarkerPath | None,
    sources: Sequence[ImageSource | BagImages] = (),
    known: Iterable[str] = (),
) -> None:
    """Track markers, and write and print the results; ``known``: cameras of the rig's file."""
    rows: list[list[float]] = []
    bodies = tuple(body.name for body in rig.bodies)
    reasons: dict[str, list[str]] = {name: [] for name in (*rig.names, *bodies)}
    counts = dict.fromkeys(rig.cameras, 0)
    cameras = cameras_of(known or rig.cameras)
    follower, sightings = Follower(rig), Sightings(rig)
    problems: list[LongreachError | InputError] = []
    with contextlib.ExitStack() as stack:
        if targets.out is not None:
            stack.enter_context(making_directory(targets.out))
        targets.check_files()
        sinks: list[Callable[[Followed], None]] = []
        if targets.bag is not None:
            write = stack.enter_context(
                writing_tracks(targets.bag, targets.namespace, cameras=cameras, bodies=bodies)
            )
            sinks.append(lambda one: write(one.frame, one.images.stamps, one.images.late))
        if targets.overlay is not None:
            sinks.append(stack.enter_context(writing_overlay(targets.overlay, rig)))
        frames = _until_broken(follow(follower, images), problems)
        # None: tqdm shows progress only on a terminal.
        for one in tqdm(frames, total=total, disable=None, delay=1.0, unit='set', leave=False):
            for camera in one.images.images:
                counts[camera] += 1
            # Estimates are written in increasing order of time.
            if not one.images.late:
                rows.append(row_of(one.frame, rig.names, cameras, bodies))
                for name, found in {**one.frame.estimates, **one.frame.bodies}.items():
                    reasons[name].append(found.reason)
            sightings.add(one.frame)
            for sink in sinks:
                sink(one)
        if not rows:
            raise problems[0] if problems else InputError('there are no images to track')
        tracks = Tracks(rig.names, cameras, np.array(rows), reasons, bodies)
        if targets.csv is not None:
            write_csv(targets.csv, tracks.columns, tracks.table)
    advice = _advice(rig, tracks)
    failure: LongreachError | None = None
    for problem in problems:
        text = f'{problem}; the {len(rows)} images tracked before it are written'
        failure = type(problem)(text)
    if failure is None and not any(tracks.counts(name)[TRACKED] for name in rig.names):
        reason = follower.problem or '; '.join(
            f'{name}: {found[0][0]}' for name in rig.names if (found := tracks.why_not(name))
        )
        text = f'no marker was tracked in {len(rows)} images: {reason}'
        failure = LongreachError(f'{text}; {advice}' if advice else text)
    clocks = compare_clocks(sightings)
    notes = [advice, size_warning(sightings), *follower.notes]
    notes += [note for source in sources for note in source.notes]
    print_tracks(
        targets,
        rig,
        tracks,
        path,
        complete=not problems and not any(source.damaged for source in sources),
        notes=notes,
        failure=failure,
        offsets=clocks.of_each(),
        agreements=compare_poses(sightings, clocks),
        counts=counts,
    )


def _until_broken(
    frames: Iterator[Followed], problems: list[LongreachError | InputError]
) -> Iterator[Followed]:
    try:
        yield from frames
    except (InputError, LongreachError) as error:
        problems.append(error)


# --- advice ----------------------------------------------------------------------------------


def _advice(rig: Rig, tracks: Tracks) -> str:
    if len(rig.cameras) < 2:
        return ''
    tracked = {one['camera']: one['tracked'] for one in tracks.sightings()}
    least, *_, other = sorted(rig.cameras, key=lambda name: tracked[name])
    if tracked[least] < _FEW * tracked[other]:
        text = (
            f'{least} tracks markers in {tracked[least]} sightings, {other} in {tracked[other]}:'
            f' check that {least} has images, that they are its own, not upside down, covered, out'
            ' of focus or badly exposed, and its pose'
        )
        if len(rig.cameras) == 2:
            text += (
                f'; the positions are those of {other}, in the plane and without a second camera'
                ' that could contradict'
            )
        return text
    # Each camera for itself: a marker that may be another one is no matter of the cameras.
    statuses = [[tracks.column(n, f'{side}_status') for n in rig.names] for side in rig.cameras]
    by_two = np.sum(np.array(statuses) == 0.0, axis=0) > 1
    is_tracked = np.array([tracks.column(name, 'status') == 0.0 for name in rig.names])
    # Markers may be out of view most of the time.
    few = _FEW * np.mean(is_tracked)
    if np.mean(is_tracked & by_two) >= max(few, _HALF * np.mean(by_two)):
        return ''
    return (
        'two cameras hardly ever track a marker together: check that the images are given in the'
        f' order of the rig, {", ".join(rig.cameras)}, then the poses and the plane'
    )


# --- results ---------------------------------------------------------------------------------


def print_tracks(
    targets: Targets,
    rig: Rig,
    tracks: Tracks,
    path: MarkerPath | None,
    *,
    complete: bool = True,
    notes: Sequence[str] = (),
    failure: LongreachError | None = None,
    offsets: Sequence[ClockOffset] = (),
    agreements: Sequence[Agreement] = (),
    counts: Mapping[str, int] | None = None,
) -> None:
    """Plot and print tracks, and their errors if the truth is known."""
    errors = None
    included: list[str] = []
    if path is not None:
        path, included = _centres(rig, path)
        try:
            errors = compare(tracks, path)
        except InputError as error:
            path, failure = None, failure or error
    for file, marker in ((targets.plot, ''), (targets.movement, targets.moving)):
        if file is not None:
            draw_tracks(file, tracks, path, marker)
    cameras = [
        one | {'images': None if counts is None else counts[one['camera']]}
        for one in tracks.sightings()
        if one['camera'] in (counts or tracks.cameras)
    ]
    advice = '\n\n'.join(filter(None, (*notes, *_warnings(offsets, agreements))))
    result = {
        'images': len(tracks.times),
        'span': tracks.times[[0, -1]].tolist(),
        'complete': complete,
        'markers': tracks.summary(),
        'bodies': tracks.body_summary(),
        'cameras': cameras,
        'errors': errors,
        'clock_offset': _one_or_all([one.fields() for one in offsets]),
        'agreement': _one_or_all([one.fields() for one in agreements]),
        'advice': advice,
    }
    parts = list(_summary(result))
    if errors is not None and included:
        parts[-1] += f'\ntruth of {", ".join(included)}: includes the offset from the plane'
    if agreements:
        parts.append('\n'.join([*map(str, offsets), agreement_text(agreements)]))
    print_result(result, '\n\n'.join(filter(None, (*parts, advice))), targets.form)
    if failure is not None:
        raise failure


def agreement_text(agreements: Sequence[Agreement]) -> str:
    """Return the agreement of two cameras, or of several pairs the least and the largest."""
    known = [one for one in agreements if math.isfinite(one.chi_square)]
    if len(known) < 2:
        return str((known or agreements)[0])
    least, *_, most = sorted(known, key=lambda one: one.chi_square)
    return (
        f'agreement of each two cameras: chi-square {least.chi_square:.3g} to'
        f' {most.chi_square:.3g} ({" and ".join(most.cameras)}), expected 1'
    )


def _one_or_all(values: list[dict[str, Any]]) -> Any:
    """Return None for one camera, the object for two, and a list of objects for more."""
    return values if len(values) > 1 else next(iter(values), None)


def _warnings(offsets: Sequence[ClockOffset], agreements: Sequence[Agreement]) -> list[str]:
    warnings = [one.warning for one in offsets]
    # Wrong clocks make cameras disagree, too.
    known = {one.cameras[1] for one in offsets if one.warning}
    for one in agreements:
        if not known & {*one.cameras, one.wrong}:
            warnings.append(one.warning)
            known |= {one.wrong} - {''}
    return warnings


def _centres(rig: Rig, path: MarkerPath) -> tuple[MarkerPath, list[str]]:
    included = []
    for marker in rig.markers:
        if _is_centre(rig, marker, path):
            included.append(marker.name)
        elif marker.offset and marker.name in path.names:
            path = path.moved(marker.name, marker.offset * rig.plane.normal)
    return path, included


def in_plane(rig: Rig, path: MarkerPath) -> MarkerPath:
    """Return the path of the markers in the plane, from which the simulator draws the centres."""
    for marker in rig.markers:
        if _is_centre(rig, marker, path):
            path = path.moved(marker.name, -marker.offset * rig.plane.normal)
    return path


def _is_centre(rig: Rig, marker: MarkerOnRig, path: MarkerPath) -> bool:
    along = marker.offset
    if not along or marker.name not in path.names:
        return False
    k = path.names.index(marker.name)
    away = rig.plane.distance(np.array([path.at(time)[0][k] for time in path.times]))
    return abs(float(np.median(away)) - along) < 0.5 * abs(along)


def _summary(result: dict[str, Any]) -> Iterator[str]:
    first, last = result['span']
    yield f'{result["images"]} images, {first:.3f} to {last:.3f} s'
    head = ['marker', 'tracked', 'uncertain', 'lost', 'first x, y, z [m]', 'last x, y, z [m]']
    markers = [
        (
            *(row[what] for what in ('name', 'tracked', 'uncertain', 'lost')),
            *(_three(row[what]) for what in ('first', 'last')),
            _three(row['noise'], _MILLI, '.3f'),
        )
        for row in result['markers']
    ]
    yield table([*head, 'noise x, y, z [mm]'], markers)
    cameras = [
        (
            one['camera'],
            '' if one['images'] is None else one['images'],
            *(one['tracked'], one['uncertain'], one['lost']),
        )
        for one in result['cameras']
    ]
    if any(one['sightings'] for one in result['cameras']):
        yield table(('camera', 'images', 'tracked', 'uncertain', 'lost'), cameras)
    else:
        yield 'observations were not recorded: what each camera saw is not known'
    yield _reasons('not tracked', result['markers'])
    if result['bodies']:
        bodies = [
            (
                *(one['name'], one['poses'], one['images'] - one['poses']),
                *(_three(one[what]) for what in ('first', 'last')),
                '' if one['chi_square'] is None else f'{one["chi_square"]:.2f}',
            )
            for one in result['bodies']
        ]
        yield table(('body', 'poses', 'none', *head[4:], 'chi-square'), bodies)
        yield 'chi-square: median of those with a pose'
        yield _reasons('no pose', result['bodies'])
    if result['errors'] is None:
        return
    head = ['distance from the truth [mm]', 'tracked', 'motion']
    for kind in ('in plane', 'triangulated'):
        head += [f'{kind}: RMS', 'largest', 'bias', 'scatter']
    errors = []
    for row in result['errors']:
        share = 100.0 * row['tracked'] / row['rows']
        line = [row['name'], f'{share:.1f} %', f'{_MILLI * row["motion"]:.2f}']
        for found in (row[kind] for kind in KINDS):
            line += [
                '' if found is None else f'{_MILLI * found[what]:.3f}'
                for what in ('rms', 'largest', 'bias', 'scatter')
            ]
        errors.append(line)
    yield table(head, errors)
    yield (
        'motion: standard deviation of the truth; bias: distance of the means; scatter: RMS'
        ' without the bias'
    )


def _reasons(what: str, rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        listed = [(one['images'], one['reason']) for one in row['reasons'][:_REASONS]]
        if rest := sum(one['images'] for one in row['reasons'][_REASONS:]):
            listed.append((rest, 'other reasons: see --format json'))
        lines += [f'  {row["name"]}, {count} images: {reason}' for count, reason in listed]
    return '\n'.join([f'{what}, by reason:', *lines]) if lines else ''


def _three(values: Sequence[float] | None, factor: float = 1.0, form: str = '.4f') -> str:
    return '' if values is None else ', '.join(f'{factor * value:{form}}' for value in values)


# --- figures ---------------------------------------------------------------------------------


def draw_tracks(
    file: Path, tracks: Tracks, path: MarkerPath | None = None, marker: str = ''
) -> None:
    """Draw the motion of all markers, figure 14, or the vertical one of a marker, figure 15."""
    # It loads what other output does not need.
    from longreach_tools.run_figure import draw_columns

    names, axes = ((marker,), 'z') if marker else (tracks.names, 'xz')
    sides = {side: {'time': tracks.times} for side in ('tracked', 'truth')[: 1 + bool(path)]}
    for name in names:
        found = tracks.positions(name, tracks.best_kind(name))
        places = [found] if path is None else [found, _truth(path, name, tracks.times)]
        known = places[-1][np.isfinite(places[-1][:, 0])]
        for own, moved in zip(sides.values(), places, strict=True):
            for axis in axes:
                k = 'xyz'.index(axis)
                # Of both from the truth, as the noise of one image would shift the error.
                own[f'{name}_{axis}'] = moved[:, k] - (known[0, k] if len(known) else 0.0)
        lost = tracks.column(name, 'status') != STATUSES.index(TRACKED)
        sides['tracked'][f'{name}_lost'] = lost.astype(float)
    panels = []
    for axis in axes:
        curves = [Curve(f'{name}_{axis}', name) for name in names]
        panels.append(Panel(f'{axis} from its start', curves, 'mm'))
    draw_columns(
        file,
        panels,
        [Column(f'{name}_{axis}', 'm') for name in names for axis in axes],
        {side: own.__getitem__ for side, own in sides.items()},
        [Lane(f'{name}_lost', f'{name} not tracked') for name in names],
        differences=path is not None,
    )


def _truth(path: MarkerPath, name: str, times: np.ndarray) -> np.ndarray:
    """Return the true positions of a marker, shape (K, 3) [m], NaN outside the path's time."""
    own = path.of([name])
    first, last = own.times[[0, -1]]
    nowhere = np.full(3, np.nan)
    return np.array([own.at(time)[0][0] if first <= time <= last else nowhere for time in times])
