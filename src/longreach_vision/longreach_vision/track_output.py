"""Tracks as users want them: files that are complete or not there, a summary, errors, advice."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from tqdm import tqdm

from longreach_dynamics.errors import InputError, LongreachError
from longreach_tools.output import (
    check_output,
    check_places,
    making_directory,
    print_result,
    table,
    write_csv,
)
from longreach_vision.detection import TRACKED
from longreach_vision.following import Follower
from longreach_vision.overlay_files import writing_overlay
from longreach_vision.recording import TrackWriter
from longreach_vision.rig import Rig
from longreach_vision.scene import MarkerPath
from longreach_vision.stereo import StereoFrame
from longreach_vision.stereo_pairing import ImageSet
from longreach_vision.streams import Followed, Picture, follow
from longreach_vision.tracks import CAMERAS, KINDS, Tracks, compare, row_of

__all__ = ['Targets', 'hand_out', 'track_markers']

_MILLI = 1e3
# Reasons that are listed for each marker, at most.
_REASONS = 5


class Targets(NamedTuple):
    """Where tracks go; None where nobody asked for it."""

    form: str  # of what is printed: table or json
    namespace: str  # of the topics of the bag
    out: Path | None  # directory that is made for what has no other place
    csv: Path | None
    bag: Path | None
    overlay: Path | None
    plot: Path | None
    movement: tuple[str, Path] | None  # marker, picture

    @classmethod
    def of(
        cls,
        arguments: argparse.Namespace,
        names: Sequence[str],
        read: Iterable[str | Path | None],
    ) -> Self:
        """
        Return what was asked for; nothing is written yet.

        Parameters
        ----------
        arguments : Namespace
            With ``format``, ``csv``, ``plot``, ``movement`` and perhaps others.
        names : sequence of str
            Of the markers.
        read : iterable of path
            What is read, and must stay.

        Raises
        ------
        InputError
            For an output that cannot be, or would take the place of another one or of an input.
        """
        asked = vars(arguments)
        out, csv = asked.get('out'), arguments.csv
        # Of compare, the bag is what is read.
        bag = asked.get('bag') if 'out' in asked else None
        if out is not None:
            csv, bag = csv or out / 'tracks.csv', bag or out / 'tracks'
        movement = _movement(arguments.movement, names)
        targets = cls(
            arguments.format,
            asked.get('namespace', 'vision'),
            out,
            csv,
            bag,
            asked.get('overlay'),
            arguments.plot,
            movement,
        )
        places = {f'--{key}': getattr(targets, key) for key in ('out', 'csv', 'bag')}
        places |= {'--overlay': targets.overlay, '--plot': targets.plot}
        places['--movement'] = None if movement is None else movement[1]
        check_places(places, read)
        return targets

    def check_files(self) -> None:
        """Raise InputError for a table or picture that cannot be written, before all work."""
        check_output(self.csv, self.plot)
        check_output(plot=None if self.movement is None else self.movement[1])


def _movement(asked: str | None, names: Sequence[str]) -> tuple[str, Path] | None:
    """Return marker and file of ``--movement``."""
    if asked is None:
        return None
    name, _, file = asked.partition('=')
    if not file:
        raise InputError(f'--movement {asked}, allowed: MARKER=FILE')
    if name not in names:
        raise InputError(f'--movement {name}, allowed markers: {", ".join(names)}')
    return name, Path(file)


# --- tracking --------------------------------------------------------------------------------


def track_markers(
    targets: Targets,
    rig: Rig,
    images: Iterable[Picture],
    total: int | None,
    path: MarkerPath | None,
) -> None:
    """
    Track markers, and hand out what came of it.

    Parameters
    ----------
    targets : Targets
    rig : Rig
        With the cameras that have images.
    images : iterable of Picture
    total : int, optional
        How many there are of each camera, about; for the bar of progress.
    path : MarkerPath, optional
        Where the markers truly were.

    Raises
    ------
    InputError
        As the images do, once what is before is written; where there is none; and for a path of
        another time, once all is printed.
    LongreachError
        When no marker was tracked, with reasons.
    """
    with contextlib.ExitStack() as stack:
        if targets.out is not None:
            stack.enter_context(making_directory(targets.out))
        targets.check_files()
        _track(targets, rig, images, total, path)


def _track(
    targets: Targets,
    rig: Rig,
    images: Iterable[Picture],
    total: int | None,
    path: MarkerPath | None,
) -> None:
    """Track markers where all places are there."""
    rows: list[list[float]] = []
    reasons: dict[str, list[str]] = {name: [] for name in rig.names}
    first: ImageSet[np.ndarray] | None = None
    with contextlib.ExitStack() as stack:
        sinks: list[Callable[[Followed], None]] = []
        if targets.bag is not None:
            writer = stack.enter_context(TrackWriter(targets.bag, targets.namespace))
            sinks.append(lambda one: writer.write(one.frame, one.images.stamps, one.images.late))
        if targets.overlay is not None:
            sinks.append(stack.enter_context(writing_overlay(targets.overlay, rig)))
        follower = Follower(rig)
        frames = _UntilBroken(follow(follower, images))
        # tqdm's None means: only on a terminal.
        for one in tqdm(frames, total=total, disable=None, delay=1.0, unit='pair', leave=False):
            if first is None and len(one.images.images) == 2:
                first = one.images
            # Time in space does not go back.
            if not one.images.late:
                rows.append(row_of(one.frame, rig.names))
                for name, known in reasons.items():
                    known.append(one.frame.estimates[name].reason)
            for sink in sinks:
                sink(one)
        if not rows:
            raise frames.problem or InputError('there is no image; nothing to track')
        tracks = Tracks(rig.names, CAMERAS, np.array(rows), reasons)
        if targets.csv is not None:
            write_csv(targets.csv, tracks.columns, tracks.table)
    advice = _advice(rig, tracks, first)
    failure: LongreachError | None = None
    if frames.problem is not None:
        kind = type(frames.problem)
        failure = kind(
            f'{frames.problem}; what was tracked before it, {len(rows)} images, is written'
        )
    elif not any(tracks.counts(name)[TRACKED] for name in rig.names):
        told = follower.problem or '; '.join(
            f'{name}: {found[0][0]}' for name in rig.names if (found := tracks.why_not(name))
        )
        text = f'no marker was tracked in {len(rows)} images: {told}'
        failure = LongreachError(f'{text}; {advice}' if advice else text)
    complete = frames.problem is None
    hand_out(targets, rig, tracks, path, complete=complete, advice=advice, failure=failure)


class _UntilBroken:
    """What comes until an error, which is kept in ``problem``."""

    def __init__(self, frames: Iterator[Followed]) -> None:
        self._frames = frames
        self.problem: InputError | LongreachError | None = None

    def __iter__(self) -> Iterator[Followed]:
        try:
            yield from self._frames
        except (InputError, LongreachError) as error:
            self.problem = error


# --- advice ----------------------------------------------------------------------------------


def _advice(rig: Rig, tracks: Tracks, first: ImageSet[np.ndarray] | None) -> str:
    """Return what to look at where markers are hardly tracked by both cameras; empty: nothing."""
    if first is None:
        return ''
    both = [
        (tracks.column(name, 'status') == 0.0) & (tracks.column(name, 'cameras') == 3.0)
        for name in rig.names
    ]
    if np.mean(both) > 0.5:
        return ''
    given, turned = _in_both(rig, first), _in_both(rig, _exchanged(first))
    pixels = dataclasses.replace(
        rig, markers=tuple(one.replace(left=one.right, right=one.left) for one in rig.markers)
    )
    if pixels.markers != rig.markers:
        # They were read in the pictures that were called left and right.
        turned = max(turned, _in_both(pixels, _exchanged(first)))
    # Nothing else makes most of them fit the other way round, and few this way.
    if 2 * turned <= len(rig.names) or 2 * given > turned:
        return ''
    return (
        f'left and right may be exchanged: both cameras track {turned} of {len(rig.names)} markers'
        f' of the first pair the other way round, {given} as it is; check which images are of'
        ' which camera, and if that is right, poses and plane of the rig'
    )


def _exchanged(images: ImageSet[np.ndarray]) -> ImageSet[np.ndarray]:
    """Return a pair in which each image counts for the other camera."""
    left, right = (images.images[name] for name in CAMERAS)
    return images.with_images({'left': right, 'right': left})


def _in_both(rig: Rig, images: ImageSet[np.ndarray]) -> int:
    """Return how many markers are tracked by both cameras in a first pair of images."""
    # Of one time: without a known speed, what is seen at two times is not compared.
    images = images._replace(stamps=dict.fromkeys(images.stamps, images.stamp))
    try:
        frame: StereoFrame = Follower(rig).update(images)
    except InputError:
        # Cameras of different sizes.
        return 0
    return sum(one.status == TRACKED and len(one.cameras) == 2 for one in frame.estimates.values())


# --- results ---------------------------------------------------------------------------------


def hand_out(
    targets: Targets,
    rig: Rig,
    tracks: Tracks,
    path: MarkerPath | None,
    *,
    complete: bool = True,
    advice: str = '',
    failure: LongreachError | None = None,
) -> None:
    """
    Draw and print tracks, and how far they are from the truth if that is known.

    Parameters
    ----------
    targets : Targets
    rig : Rig
    tracks : Tracks
    path : MarkerPath, optional
        The truth.
    complete : bool
        Whether all images were read.
    advice : str
        What to look at; empty for nothing.
    failure : LongreachError, optional
        Raised when all is printed.

    Raises
    ------
    InputError
        For a path of another time, when all else is drawn and printed.
    """
    offsets = _offsets(rig)
    errors = None
    if path is not None:
        try:
            errors = compare(tracks, path, offsets)
        except InputError as error:
            path, failure = None, failure or error
    if targets.plot is not None or targets.movement is not None:
        from longreach_vision.figures import draw_movement, draw_tracks

        if targets.plot is not None:
            draw_tracks(targets.plot, tracks, path, offsets)
        if targets.movement is not None:
            name, file = targets.movement
            draw_movement(file, tracks, name, path, offsets)
    rows = tracks.summary()
    text = _summary_text(tracks, rows)
    if errors is not None:
        text += '\n\n' + _errors_text(errors)
    span = tracks.times[[0, -1]].tolist()
    print_result(
        {
            'images': len(tracks.times),
            'span': span,
            'complete': complete,
            'markers': rows,
            'errors': errors,
            'advice': advice,
        },
        f'{text}\n\n{advice}' if advice else text,
        targets.form,
    )
    if failure is not None:
        raise failure


def _offsets(rig: Rig) -> dict[str, np.ndarray]:
    """Return the way from the positions of a path to the centres of the markers [m]."""
    return {marker.name: marker.offset * rig.plane.normal for marker in rig.markers}


def _summary_text(tracks: Tracks, rows: Sequence[dict[str, Any]]) -> str:
    """Return what was tracked for people."""
    head = (
        'marker',
        'tracked',
        'uncertain',
        'lost',
        'first x, y, z [m]',
        'last x, y, z [m]',
        'noise x, y, z [mm]',
    )
    lines = [
        (
            row['name'],
            row['tracked'],
            row['uncertain'],
            row['lost'],
            _three(row['first'], 1.0, '.4f'),
            _three(row['last'], 1.0, '.4f'),
            _three(row['noise'], _MILLI, '.3f'),
        )
        for row in rows
    ]
    first, last = tracks.times[[0, -1]]
    text = f'{len(tracks.times)} images, {first:.3f} to {last:.3f} s\n\n' + table(head, lines)
    reasons = [line for row in rows for line in _reason_lines(row['name'], row['reasons'])]
    return '\n'.join([text, '', 'not tracked, by reason:', *reasons]) if reasons else text


def _reason_lines(name: str, reasons: Sequence[dict[str, Any]]) -> list[str]:
    """Return why a marker was not tracked for people."""
    listed = [(one['images'], one['reason']) for one in reasons[:_REASONS]]
    rest = sum(one['images'] for one in reasons[_REASONS:])
    if rest:
        listed.append((rest, 'other reasons: --format json has them'))
    return [f'  {name}, {count} images: {reason}' for count, reason in listed]


def _three(values: Sequence[float] | None, factor: float, form: str) -> str:
    """Return a vector for people."""
    return '' if values is None else ', '.join(f'{factor * value:{form}}' for value in values)


def _errors_text(errors: Sequence[dict[str, Any]]) -> str:
    """Return how far tracks are from the truth for people."""
    head = ['distance from the truth [mm]', 'tracked', 'motion']
    for kind in ('in plane', 'triangulated'):
        head += [f'{kind}: RMS', 'largest', 'bias', 'scatter']
    lines = []
    for row in errors:
        line = [
            row['name'],
            f'{100.0 * row["tracked"] / row["rows"]:.1f} %',
            f'{_MILLI * row["motion"]:.2f}',
        ]
        for kind in KINDS:
            found = row[kind]
            line += [
                '' if found is None else f'{_MILLI * found[what]:.3f}'
                for what in ('rms', 'largest', 'bias', 'scatter')
            ]
        lines.append(line)
    return (
        table(head, lines) + '\n\nmotion: standard deviation of the truth; bias: distance of the'
        ' means; scatter: RMS without the bias'
    )
