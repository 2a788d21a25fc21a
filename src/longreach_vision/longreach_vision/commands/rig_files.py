"""Text of rig files, and entries that are written into existing ones, whose rest stays."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml
from longreach_markers.camera.geometry import Pose
from longreach_markers.rig import LONGEST_DELAY, LONGEST_LINE, Rig
from longreach_markers.setup.localisation import Localisation
from longreach_markers.setup.reference_points import Reference
from longreach_tools.output import writing

# Example marker for a rig file without markers: name and radius [m].
_EXAMPLE = ('marker_1', 0.15)
# Entries of a rig file, and of a camera in it that a new pose replaces.
_ENTRIES = [field.name for field in dataclasses.fields(Rig)]
_POSED = ('calibration', 'position', 'orientation', 'covariance')


def markers_text(markers: Sequence[tuple[str, float]], out: Path) -> str:
    """Return the markers for a rig file; empty if none are given and the file has some."""
    if not markers and out.is_file() and out.stat().st_size and 'markers' in load_yaml(out):
        return ''
    lines = ['markers:']
    if not markers:
        lines.append(
            '  # An example; replace it by your markers: name and radius of the outer edge [m].'
        )
        markers = [_EXAMPLE]
    lines += [f"  - {{name: '{name}', radius: {radius!r}}}" for name, radius in markers]
    return '\n'.join([*lines, ''])


def calibrations_beside(reference: Reference, file: Path, out: Path) -> dict[str, str]:
    """Return the calibration files by camera, relative to the rig file."""
    return {
        side: _beside(getattr(reference.cameras, side).calibration, file, out)
        for side in reference.sides
    }


def _beside(named: str, file: Path, out: Path) -> str:
    """Return a name relative to one file as a name relative to another; absolute ones stay."""
    if Path(named).is_absolute():
        return named
    return os.path.relpath(file.parent.resolve() / named, out.parent.resolve())


def kept_entries(out: Path) -> dict[str, dict[str, Any]]:
    """Return entries of cameras in an existing rig file that a new pose does not change."""
    if not (out.is_file() and out.stat().st_size):
        return {}
    cameras = load_yaml(out).get('cameras')
    if not isinstance(cameras, dict):
        return {}
    return {
        side: {key: value for key, value in entry.items() if key not in _POSED}
        for side, entry in cameras.items()
        if isinstance(entry, dict)
    }


def rig_text(
    found: Localisation,
    calibrations: dict[str, str],
    kept: dict[str, dict[str, Any]] | None = None,
) -> str:
    """Return the cameras and the plane of a rig file."""
    rig: dict[str, Any] = {'cameras': _cameras(found.poses, calibrations, kept or {})}
    if found.plane is not None:
        plane = found.plane.plane
        assert plane.covariance is not None
        rig['plane'] = {
            'normal': plane.normal.tolist(),
            'offset': float(plane.offset),
            'centroid': plane.centroid.tolist(),
            'covariance': plane.covariance.ravel().tolist(),
        }
    return _text(rig)


def _cameras(
    poses: Mapping[str, Pose], calibrations: dict[str, str], kept: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the cameras of a rig file; the arguments are those of :func:`rig_text`."""
    cameras: dict[str, Any] = {}
    for side, pose in poses.items():
        cameras[side] = {
            'calibration': calibrations[side],
            'position': pose.translation.tolist(),
            'orientation': pose.quaternion.tolist(),
        }
        if pose.covariance is not None:
            cameras[side]['covariance'] = pose.covariance.ravel().tolist()
        cameras[side] |= kept.get(side, {})
    return cameras


def _text(rig: dict[str, Any]) -> str:
    """Return entries of a rig file as YAML."""
    text = yaml.safe_dump(rig, default_flow_style=None, sort_keys=False, width=95)
    units = 'positions [m], orientations x y z w; covariances by rows, rotations [rad] first'
    return text.replace('cameras:\n', f'cameras:  # {units}\n', 1)


def write_poses(rig: Path, out: Path, poses: Mapping[str, Pose]) -> None:
    """Write the poses of all cameras of a rig file into it or into a copy of it."""
    entries = load_yaml(rig)['cameras']
    calibrations = {side: _beside(entries[side]['calibration'], rig, out) for side in poses}
    text = _text({'cameras': _cameras(poses, calibrations, kept_entries(rig))})
    write_rig(out, text, rig)


def write_rig(out: Path, text: str, source: Path | None = None) -> None:
    """Write a rig file; other entries of an existing file, or of a source, are kept."""
    source = source or out
    if source.is_file() and (foreign := sorted(set(load_yaml(source) or {}).difference(_ENTRIES))):
        raise InputError(
            f'{source}: {foreign[0]} is unknown, allowed in a rig file: {", ".join(_ENTRIES)};'
            ' give a rig file, or a new name'
        )
    if not (source.is_file() and source.stat().st_size):
        with writing(out) as path:
            path.write_text(text, encoding='utf-8')
        return
    with writing(out) as path:
        path.write_text(text, encoding='utf-8')
        expected = load_yaml(source) | load_yaml(path)
        if not _means(path, _merged(source.read_text(encoding='utf-8'), text), expected):
            raise InputError(
                f'{source}: the layout of this file does not allow cameras and plane to be'
                ' replaced, allowed: each entry starts a line with its name, no braces around all,'
                ' no end mark, no references; give a new file, and copy the rest to it'
            )


def _means(file: Path, text: str, expected: dict[str, Any]) -> bool:
    """Write a text to a file, and return whether it has the expected entries."""
    file.write_text(text, encoding='utf-8')
    try:
        return load_yaml(file) == expected
    except InputError:
        return False


def _merged(old: str, new: str) -> str:
    """Return a YAML file whose top-level entries are replaced by those of a new text."""

    def blocks(text: str) -> list[str]:
        """Split a text before each top-level key."""
        root = yaml.compose(text)
        assert isinstance(root, yaml.MappingNode)
        starts = [0, *(key.start_mark.index for key, _ in root.value), len(text)]
        return [text[k:m] for k, m in itertools.pairwise(starts)]

    fresh = {block.partition(':')[0]: block for block in blocks(new) if block}
    first, *entries = blocks(old)
    kept = [first]
    for block in entries:
        key = block.partition(':')[0].strip('\'" ')
        if key not in fresh:
            kept.append(block)
            continue
        kept.append(fresh.pop(key))
        # Comments before the next key belong to that key.
        tail = re.search(r'(?:^[ \t]*(?:#[^\n]*)?\n)+\Z', block, flags=re.MULTILINE)
        if tail and block is not entries[-1]:
            kept.append(tail[0])
    text = ''.join(kept)
    if fresh and text and not text.endswith('\n'):
        text += '\n'
    return text + ''.join(fresh.values())


def write_delay(path: str | Path, camera: str, delay: float, comment: str) -> None:
    """Write the delay of a camera into a rig file; the rest of the file is kept."""
    if not abs(delay) <= LONGEST_DELAY:
        raise InputError(f'delay = {delay:g} s, allowed: at most {LONGEST_DELAY:g} s')
    _write_entry(Path(path), camera, 'delay', delay, comment)


def write_line_time(path: str | Path, camera: str, line_time: float, comment: str) -> None:
    """Write the line time [s] of a camera into a rig file, as :func:`write_delay`."""
    if not abs(line_time) <= LONGEST_LINE:
        raise InputError(f'line_time = {line_time:g} s, allowed: at most {LONGEST_LINE:g} s')
    _write_entry(Path(path), camera, 'line_time', line_time, comment)


def _write_entry(file: Path, camera: str, name: str, number: float, comment: str) -> None:
    """Write a number in seconds into the entry of a camera of a rig file."""
    expected = load_yaml(file)
    expected['cameras'][camera][name] = number
    text = file.read_text(encoding='utf-8')
    entries = _entry_of(_entry_of(yaml.compose(text), 'cameras'), camera)
    line = f'{name}: {number!r}  # [s], {comment}'
    first = entries.value[0][0].start_mark
    known = [(key, value) for key, value in entries.value if key.value == name]
    if known:
        start, stop = known[0][0].start_mark.index, known[0][1].end_mark.index
        # With the comment behind it.
        stop += len(re.match(r'[ \t]*(#[^\n]*)?', text[stop:])[0])  # type: ignore[index]
        text = text[:start] + line + text[stop:]
    else:
        text = f'{text[: first.index]}{line}\n{" " * first.column}{text[first.index :]}'
    with writing(file) as unfinished:
        if not _means(unfinished, text, expected):
            raise InputError(
                f'{file}: the layout of this file does not allow {name} to be written, allowed:'
                f' each entry of a camera on a line of its own; write cameras.{camera}.{name}:'
                f' {number!r} yourself'
            )


def _entry_of(node: yaml.Node | None, key: str) -> yaml.MappingNode:
    """Return the mapping with a key of another mapping."""
    assert isinstance(node, yaml.MappingNode)
    found = next(value for name, value in node.value if name.value == key)
    assert isinstance(found, yaml.MappingNode)
    return found
