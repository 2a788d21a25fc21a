"""Entries of rig files that commands write; the rest of an existing file stays, with comments."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from longreach_dynamics.errors import InputError, named
from longreach_dynamics.parameters import from_mapping, load_yaml
from longreach_markers import CameraEntry, Localisation, Pose, Reference, Rig
from longreach_tools.output import writing

# Markers of a file that has none: an example.
_EXAMPLE = [{'name': 'marker_1', 'radius': 0.15}]
# Entries of a rig file, and those of a camera that a new pose replaces.
_ENTRIES = [field.name for field in dataclasses.fields(Rig)]
_POSED = ('calibration', 'position', 'orientation', 'covariance')
_UNITS = 'positions [m], orientations x y z w; covariances by rows, rotations [rad] first'


def on_old_side(out: Path, found: Localisation) -> tuple[Localisation, list[str]]:
    """Return poses and a plane whose normal is on the side of that in a file, and notes."""
    # Offsets of the file's markers are along the normal.
    old = entries_of(out).get('plane')
    if not isinstance(old, dict):
        return found, []
    if found.plane is None:
        note = (
            f'the plane of {out} is unchanged: no points have in_plane; if the new poses are in'
            ' another world, mark three or more with in_plane: true'
        )
        return found, [note]
    # What is wrong with the old plane does not matter.
    with contextlib.suppress(KeyError, TypeError, ValueError):
        if np.array(old['normal'], dtype=np.float64) @ found.plane.plane.normal < 0.0:
            return dataclasses.replace(found, plane=found.plane.turned()), []
    return found, []


def write_localisation(
    out: Path,
    found: Localisation,
    reference: Reference,
    file: Path,
    markers: Sequence[tuple[str, float]],
) -> bool:
    """
    Write cameras, plane and markers (name, radius [m]) into a new or an existing rig file.

    Markers of the file stay unless others are given; True: there were none, an example is written.
    """
    calibrations = {
        side: _beside(getattr(reference.cameras, side).calibration, file, out)
        for side in reference.sides
    }
    cameras, old = _cameras(found.poses, calibrations), entries_of(out)
    known = old.get('cameras')
    others = sorted(set(known).difference(cameras)) if isinstance(known, dict) else []
    if others:
        raise InputError(
            f'{out} also has the camera {", ".join(others)}, which {file} has not, and which would'
            ' be lost; measure all cameras, or give a new name'
        )
    entries: dict[str, Any] = {'cameras': cameras}
    if found.plane is not None:
        plane = found.plane.plane
        assert plane.covariance is not None
        entries['plane'] = {
            'normal': plane.normal.tolist(),
            'offset': float(plane.offset),
            'centroid': plane.centroid.tolist(),
            'covariance': plane.covariance.ravel().tolist(),
        }
    is_example = not markers and 'markers' not in old
    if markers or is_example:
        named = [{'name': name, 'radius': radius} for name, radius in markers]
        entries['markers'] = named or _EXAMPLE
    _write(out, entries, out)
    return is_example


def write_poses(rig: Path, out: Path, poses: Mapping[str, Pose]) -> None:
    """Write the poses of all cameras of a rig file into it or into a copy of it."""
    cameras = entries_of(rig)['cameras']
    calibrations = {side: _beside(cameras[side]['calibration'], rig, out) for side in poses}
    _write(out, {'cameras': _cameras(poses, calibrations)}, rig)


def _beside(named: str, file: Path, out: Path) -> str:
    """Return a name relative to one file as a name relative to another; absolute ones stay."""
    if Path(named).is_absolute():
        return named
    return os.path.relpath(file.parent.resolve() / named, out.parent.resolve())


def entries_of(file: Path) -> dict[str, Any]:
    """Return what a rig file holds; InputError for what would be lost if it were written."""
    found = load_yaml(file) or {} if file.is_file() and file.stat().st_size else {}
    if foreign := sorted(set(found).difference(_ENTRIES)):
        raise InputError(
            f'{file}: {foreign[0]} is unknown where a rig is written, allowed:'
            f' {", ".join(_ENTRIES)}; give a rig file with all of its cameras, or a new name'
        )
    return found


def _cameras(poses: Mapping[str, Pose], calibrations: Mapping[str, str]) -> dict[str, Any]:
    cameras: dict[str, Any] = {}
    for side, pose in poses.items():
        cameras[side] = {
            'calibration': calibrations[side],
            'position': pose.translation.tolist(),
            'orientation': pose.quaternion.tolist(),
        }
        if pose.covariance is not None:
            cameras[side]['covariance'] = pose.covariance.ravel().tolist()
    return cameras


def _write(out: Path, entries: dict[str, Any], source: Path) -> None:
    old = entries_of(source)
    known = old.get('cameras')
    for side, camera in entries['cameras'].items():
        before = known.get(side) if isinstance(known, dict) else None
        if isinstance(before, dict):
            camera |= {key: value for key, value in before.items() if key not in _POSED}
    blocks = {
        key: yaml.safe_dump({key: value}, default_flow_style=None, sort_keys=False, width=95)
        for key, value in entries.items()
    }
    blocks['cameras'] = blocks['cameras'].replace('\n', f'  # {_UNITS}\n', 1)
    text = source.read_text(encoding='utf-8') if old else ''
    _write_text(
        out,
        _replaced(text, (), blocks),
        old | entries,
        f'{source}: the layout of this file does not allow cameras and plane to be replaced,'
        ' allowed: each entry starts a line with its name, no braces around all, no end mark, no'
        ' references; give a new file, and copy the rest to it',
    )


def write_time(path: str | Path, camera: str, name: str, value: float, comment: str) -> None:
    """Write a camera's delay or line_time [s] into a rig file; the rest of the file is kept."""
    file = Path(path)
    expected = entries_of(file)
    expected['cameras'][camera][name] = value
    with named(f'{file}: cameras.{camera}.'):
        from_mapping(CameraEntry, expected['cameras'][camera])
    line = f'{name}: {value!r}  # [s], {comment}\n'
    _write_text(
        file,
        _replaced(file.read_text(encoding='utf-8'), ('cameras', camera), {name: line}),
        expected,
        f'{file}: the layout of this file does not allow {name} to be written, allowed: each entry'
        f' of a camera on a line of its own; write cameras.{camera}.{name}: {value!r} yourself',
    )


def _replaced(text: str, within: Sequence[str], blocks: Mapping[str, str]) -> str:
    """Return YAML with other lines for entries of a mapping, or these added to it."""
    node = yaml.compose(text)
    for name in within:
        node = next(value for key, value in node.value if key.value == name)  # type: ignore[union-attr]
    keys = [key for key, _ in node.value] if node else []
    lines = [f'{line}\n' for line in text.splitlines()]
    end = node.end_mark.line if within and node else len(lines)
    starts = [key.start_mark.line for key in keys] or [end]
    indent = ' ' * keys[0].start_mark.column if keys else ''
    fresh = {name: textwrap.indent(block, indent) for name, block in blocks.items()}
    added = [fresh[name] for name in fresh if name not in [key.value for key in keys]]
    parts = [*lines[: starts[0]], *(added if within else ())]
    for key, first, last in zip(keys, starts, [*starts[1:], end], strict=False):
        old = lines[first:last]
        if key.value in fresh:
            # Comments before the next key belong to that key.
            kept = itertools.takewhile(lambda line: line.lstrip()[:1] in '#', reversed(old))
            old = [fresh[key.value], *reversed(list(kept))]
        parts += old
    return ''.join([*parts, *lines[end:], *(() if within else added)])


def _write_text(out: Path, text: str, expected: dict[str, Any], refusal: str) -> None:
    """Write a rig file unless it would not mean what is expected."""
    with writing(out) as path:
        path.write_text(text, encoding='utf-8')
        try:
            found = load_yaml(path)
        except InputError:
            found = {}
        if found != expected:
            raise InputError(refusal)
