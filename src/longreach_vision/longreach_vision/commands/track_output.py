"""Output of tracks: files (complete or absent), summary, errors, advice."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from tqdm import tqdm

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.io.image_sources import ImageSource
from longreach_markers.io.pictures import Picture
from longreach_markers.marker.detection import TRACKED
from longreach_markers.rig import Rig
from longreach_markers.tracking.clock_offset import ClockOffset, compare_clocks
from longreach_markers.tracking.follower import Followed, Follower, follow
from longreach_markers.tracking.image_sets import ImageSet
from longreach_markers.tracking.pose_agreement import (
    Agreement,
    agreement_text,
    compare_poses,
)
from longreach_markers.tracking.rig_tracker import RigFrame
from longreach_markers.tracking.sightings import Sightings
from longreach_tools.output import (
    check_output,
    check_places,
    making_directory,
    print_result,
    table,
    write_csv,
)
from longreach_vision.io.bag_files import BagImages, TrackWriter
from longreach_vision.io.overlay_files import writing_overlay
from longreach_vision.io.track_table import (
    CAMERAS,
    KINDS,
    Tracks,
    cameras_of,
    compare,
    row_of,
)
from longreach_vision.simulator.marker_path import MarkerPath

_MILLI = 1e3
# Largest number of reasons listed for each marker.
_REASONS = 5
# Sightings of a camera, as a share of the other's, below which it is said to contribute nothing.
_SILENT = 0.1


class Targets(NamedTuple):
    """Output files of tracks; None for those not requested."""

    form: str  # format of the printed output: table or json
    namespace: str  # namespace of the topics of the bag
    out: Path | None  # directory for outputs without a file of their own
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
        """Return the requested outputs; nothing is written yet."""
        asked = vars(arguments)
        out, csv = asked.get('out'), arguments.csv
        # For compare, the bag is an input.
        bag = asked.get('bag') if 'out' in asked else None
        if out is not None:
            csv, bag = csv or out / 'tracks.csv', bag or out / 'tracks'
        movement = _movement(arguments.movement, names)
        files = {'out': out, 'csv': csv, 'bag': bag, 'overlay': asked.get('overlay')}
        files['plot'] = arguments.plot
        places = {f'--{key}': file for key, file in files.items()}
        check_places(places | {'--movement': movement and movement[1]}, read)
        namespace = asked.get('namespace', 'vision')
        return cls(arguments.format, namespace, **files, movement=movement)

    def check_files(self) -> None:
        """Raise InputError for a file that cannot be written, before the work starts."""
        check_output(self.csv, self.plot)
        check_output(plot=self.movement and self.movement[1])


def _movement(asked: str | None, names: Sequence[str]) -> tuple[str, Path] | None:
    """Parse marker and file of ``--movement``."""
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
    sources: Sequence[ImageSource | BagImages] = (),
) -> None:
    """Track markers, and write and print the results."""
    with contextlib.ExitStack() as stack:
        if targets.out is not None:
            stack.enter_context(making_directory(targets.out))
        targets.check_files()
        _track(targets, rig, images, total, path, sources)


def _track(
    targets: Targets,
    rig: Rig,
    images: Iterable[Picture],
    total: int | None,
    path: MarkerPath | None,
    sources: Sequence[ImageSource | BagImages],
) -> None:
    """Track markers after checking all outputs."""
    rows: list[list[float]] = []
    bodies = tuple(body.name for body in rig.bodies)
    reasons: dict[str, list[str]] = {name: [] for name in (*rig.names, *bodies)}
    first: ImageSet[np.ndarray] | None = None
    counts = dict.fromkeys(rig.cameras, 0)
    cameras = cameras_of(rig.cameras)
    with contextlib.ExitStack() as stack:
        sinks: list[Callable[[Followed], None]] = []
        if targets.bag is not None:
            writer = stack.enter_context(
                TrackWriter(targets.bag, targets.namespace, cameras=cameras, bodies=bodies)
            )
            sinks.append(lambda one: writer.write(one.frame, one.images.stamps, one.images.late))
        if targets.overlay is not None:
            sinks.append(stack.enter_context(writing_overlay(targets.overlay, rig)))
        follower = Follower(rig)
        sightings = Sightings(rig)
        frames = _UntilBroken(follow(follower, images))
        # None: tqdm shows progress only on a terminal.
        for one in tqdm(frames, total=total, disable=None, delay=1.0, unit='pair', leave=False):
            for camera in one.images.images:
                counts[camera] += 1
            if first is None and 1 < len(one.images.images) == len(rig.cameras):
                first = one.images
            # Estimates are written in increasing order of time.
            if not one.images.late:
                rows.append(row_of(one.frame, rig.names, cameras, bodies))
                for name, found in {**one.frame.estimates, **one.frame.bodies}.items():
                    reasons[name].append(found.reason)
            sightings.add(one.frame)
            for sink in sinks:
                sink(one)
        if not rows:
            raise frames.problem or InputError('there are no images to track')
        tracks = Tracks(rig.names, cameras, np.array(rows), reasons, bodies)
        if targets.csv is not None:
            write_csv(targets.csv, tracks.columns, tracks.table)
    advice = _advice(rig, tracks, first) or _silent(rig, tracks, counts, first)
    failure: LongreachError | None = None
    if frames.problem is not None:
        kind = type(frames.problem)
        failure = kind(f'{frames.problem}; the {len(rows)} images tracked before it are written')
    elif not any(tracks.counts(name)[TRACKED] for name in rig.names):
        told = follower.problem or '; '.join(
            f'{name}: {found[0][0]}' for name in rig.names if (found := tracks.why_not(name))
        )
        text = f'no marker was tracked in {len(rows)} images: {told}'
        failure = LongreachError(f'{text}; {advice}' if advice else text)
    clocks = compare_clocks(sightings)
    complete = frames.problem is None and not any(source.damaged for source in sources)
    hand_out(
        targets,
        rig,
        tracks,
        path,
        complete=complete,
        advice='\n\n'.join(
            [*filter(None, [advice]), *follower.notes, *(n for one in sources for n in one.notes)]
        ),
        failure=failure,
        offsets=clocks.of_each(),
        agreements=compare_poses(sightings, clocks),
        counts=counts,
    )


class _UntilBroken:
    """Iterator that stops at an error and keeps it in ``problem``."""

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
    """Return advice if hardly any marker is tracked by both cameras; empty otherwise."""
    if first is None or tuple(rig.cameras) != CAMERAS:
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
        # Given pixels were read in the pictures named left and right.
        turned = max(turned, _in_both(pixels, _exchanged(first)))
    # Hardly anything but an exchange makes most markers fit exchanged, and few as given.
    if 2 * turned <= len(rig.names) or 2 * given > turned:
        return ''
    return (
        f'left and right may be exchanged: both cameras track {turned} of {len(rig.names)} markers'
        f' of the first pair if exchanged, {given} as given; check which images belong to which'
        ' camera, then the poses and the plane of the rig'
    )


def _silent(
    rig: Rig, tracks: Tracks, counts: Mapping[str, int], first: ImageSet[np.ndarray] | None
) -> str:
    """Return which camera contributes hardly anything although another one tracks markers."""
    tracked = {one['camera']: one['tracked'] for one in tracks.sightings()}
    if len(rig.cameras) < 2:
        return ''
    (least, few), *_, (other, many) = sorted(
        ((name, tracked[name]) for name in rig.cameras), key=lambda one: one[1]
    )
    if not few < _SILENT * many:
        return ''
    cause = 'check that it is not covered, out of focus or badly exposed, and its pose'
    if not counts[least]:
        cause = 'it has no images'
    elif first is not None:
        image = first.images[least]
        upright = _in_sight(rig, least, image)
        turned = _in_sight(rig, least, np.ascontiguousarray(image[::-1, ::-1]))
        if turned > max(upright, len(rig.names) // 2):
            cause = (
                f'its images seem to be upside down: turned by 180 degrees, {turned} of'
                f' {len(rig.names)} markers are tracked in the first one; turn the images, or'
                ' measure its pose with them'
            )
    share = 'nothing' if not few else 'hardly anything'
    text = f'{least} contributes {share}: it tracks markers in {few} sightings, {other} in {many}'
    if len(rig.cameras) == 2:
        text += (
            f'; the positions are those of {other} {"alone" if not few else "mostly"}, in the'
            ' plane and without a second camera that could contradict'
        )
    return f'{text}; {cause}'


def _in_sight(rig: Rig, camera: str, image: np.ndarray) -> int:
    """Return the number of markers tracked by one camera in an image."""
    alone = dataclasses.replace(rig, cameras={camera: rig.cameras[camera]})
    frame = Follower(alone).update(ImageSet({camera: 0}, {camera: image}, False))
    return sum(one.status == TRACKED for one in frame.estimates.values())


def _exchanged(images: ImageSet[np.ndarray]) -> ImageSet[np.ndarray]:
    """Return a pair with images of left and right exchanged."""
    left, right = (images.images[name] for name in CAMERAS)
    return images.with_images({'left': right, 'right': left})


def _in_both(rig: Rig, images: ImageSet[np.ndarray]) -> int:
    """Return the number of markers tracked by both cameras in a first image pair."""
    # With equal times: at different times, positions are not compared without a known velocity.
    images = images._replace(stamps=dict.fromkeys(images.stamps, images.stamp))
    try:
        frame: RigFrame = Follower(rig).update(images)
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
    offsets: Sequence[ClockOffset] = (),
    agreements: Sequence[Agreement] = (),
    counts: Mapping[str, int] | None = None,
) -> None:
    """Plot and print tracks, and their errors if the truth is known."""
    along, included = _offsets(rig, path)
    errors = None
    if path is not None:
        try:
            errors = compare(tracks, path, along)
        except InputError as error:
            path, failure = None, failure or error
    if targets.plot is not None or targets.movement is not None:
        from longreach_vision.commands.track_figures import draw_movement, draw_tracks

        if targets.plot is not None:
            draw_tracks(targets.plot, tracks, path, along)
        if targets.movement is not None:
            name, file = targets.movement
            draw_movement(file, tracks, name, path, along)
    rows = tracks.summary()
    cameras = [
        one | {'images': None if counts is None else counts[one['camera']]}
        for one in tracks.sightings()
        if one['camera'] in (counts or tracks.cameras)
    ]
    bodies = tracks.body_summary()
    text = _summary_text(tracks, rows, cameras)
    if bodies:
        text += '\n\n' + _bodies_text(bodies)
    if errors is not None:
        text += '\n\n' + _errors_text(errors)
        if included:
            text += f'\ntruth of {", ".join(included)}: includes the offset from the plane'
    if agreements:
        text += '\n\n' + '\n'.join([*map(str, offsets), agreement_text(agreements)])
    advice = '\n\n'.join(filter(None, (advice, *_warnings(offsets, agreements))))
    span = tracks.times[[0, -1]].tolist()
    print_result(
        {
            'images': len(tracks.times),
            'span': span,
            'complete': complete,
            'markers': rows,
            'bodies': bodies,
            'cameras': cameras,
            'errors': errors,
            'clock_offset': _one_or_all([one.fields() for one in offsets]),
            'agreement': _one_or_all([one.fields() for one in agreements]),
            'advice': advice,
        },
        f'{text}\n\n{advice}' if advice else text,
        targets.form,
    )
    if failure is not None:
        raise failure


def _one_or_all(values: list[dict[str, Any]]) -> Any:
    """Return None for one camera, the object for two, and a list of objects for more."""
    return values if len(values) > 1 else next(iter(values), None)


def _warnings(offsets: Sequence[ClockOffset], agreements: Sequence[Agreement]) -> list[str]:
    """Return the warnings about clocks and poses, of a wrong camera the first one."""
    told = [one.warning for one in offsets]
    # Wrong clocks make cameras disagree, too.
    known = {one.cameras[1] for one in offsets if one.warning}
    for one in agreements:
        if not known & {*one.cameras, one.wrong}:
            told.append(one.warning)
            known |= {one.wrong} - {''}
    return told


def _offsets(rig: Rig, path: MarkerPath | None) -> tuple[dict[str, np.ndarray], list[str]]:
    """
    Return offsets (3,) [m] by marker from the positions of a path to the centres of the markers.

    A path has the positions in the plane or the centres themselves, as its distance from the plane
    shows; markers of the second kind are returned, too.
    """
    found, included = {}, []
    for marker in rig.markers:
        along = marker.offset
        if path is not None and along and marker.name in path.names:
            k = path.names.index(marker.name)
            away = rig.plane.distance(np.array([path.at(time)[0][k] for time in path.times]))
            if abs(float(np.median(away)) - along) < 0.5 * abs(along):
                along = 0.0
                included.append(marker.name)
        found[marker.name] = along * rig.plane.normal
    return found, included


def _summary_text(
    tracks: Tracks, rows: Sequence[dict[str, Any]], cameras: Sequence[dict[str, Any]]
) -> str:
    """Return the summary as text."""
    head = ['marker', 'tracked', 'uncertain', 'lost', 'first x, y, z [m]', 'last x, y, z [m]']
    lines = [
        (
            *(row[what] for what in ('name', 'tracked', 'uncertain', 'lost')),
            *(_three(row[what]) for what in ('first', 'last')),
            _three(row['noise'], _MILLI, '.3f'),
        )
        for row in rows
    ]
    first, last = tracks.times[[0, -1]]
    text = f'{len(tracks.times)} images, {first:.3f} to {last:.3f} s\n\n'
    text += table([*head, 'noise x, y, z [mm]'], lines)
    seen = [
        (
            one['camera'],
            '' if one['images'] is None else one['images'],
            *(one['tracked'], one['uncertain']),
            one['sightings'] - one['tracked'] - one['uncertain'],
        )
        for one in cameras
    ]
    text += '\n\n' + table(('camera', 'images', 'tracked', 'uncertain', 'lost'), seen)
    return _with_reasons(text, 'not tracked', rows)


def _with_reasons(text: str, what: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return a text, and below it the reasons of its rows if there are any."""
    reasons = [line for row in rows for line in _reason_lines(row['name'], row['reasons'])]
    return '\n'.join([text, '', f'{what}, by reason:', *reasons]) if reasons else text


def _reason_lines(name: str, reasons: Sequence[dict[str, Any]]) -> list[str]:
    """Return the reasons why a marker was not tracked, as text lines."""
    listed = [(one['images'], one['reason']) for one in reasons[:_REASONS]]
    rest = sum(one['images'] for one in reasons[_REASONS:])
    if rest:
        listed.append((rest, 'other reasons: see --format json'))
    return [f'  {name}, {count} images: {reason}' for count, reason in listed]


def _bodies_text(bodies: Sequence[dict[str, Any]]) -> str:
    """Return the summary of rigid bodies as text."""
    head = ('body', 'poses', 'none', 'first x, y, z [m]', 'last x, y, z [m]', 'chi-square')
    lines = [
        (
            *(one['name'], one['poses'], one['images'] - one['poses']),
            *(_three(one[what]) for what in ('first', 'last')),
            '' if one['chi_square'] is None else f'{one["chi_square"]:.2f}',
        )
        for one in bodies
    ]
    text = table(head, lines) + '\n\nchi-square: median of those with a pose'
    return _with_reasons(text, 'no pose', bodies)


def _three(values: Sequence[float] | None, factor: float = 1.0, form: str = '.4f') -> str:
    """Return a vector as text."""
    return '' if values is None else ', '.join(f'{factor * value:{form}}' for value in values)


def _errors_text(errors: Sequence[dict[str, Any]]) -> str:
    """Return the errors of tracks as text."""
    head = ['distance from the truth [mm]', 'tracked', 'motion']
    for kind in ('in plane', 'triangulated'):
        head += [f'{kind}: RMS', 'largest', 'bias', 'scatter']
    lines = []
    for row in errors:
        share = 100.0 * row['tracked'] / row['rows']
        line = [row['name'], f'{share:.1f} %', f'{_MILLI * row["motion"]:.2f}']
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
