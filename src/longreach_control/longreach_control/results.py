"""Results of the benchmark of damping: a file that grows case by case, and its summary."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_control.benchmark import ALONE, DURATION
from longreach_control.cases import ENDS
from longreach_dynamics.errors import InputError
from longreach_dynamics.tables import for_json

FILE = 'cases.jsonl'
# Goal: damping ratio of the first mode, and how much faster than without control it settles.
GOAL_RATIO, GOAL_FASTER = 0.15, 10.0
# Shortest sum of times of settling that is distinguished [s].
_SHORTEST = 0.1
_KEYS = {'posture', 'disturbance', 'settled', 'measures'}
# Disturbances after which the boom swings freely, from which its damping is measured.
IMPULSES = ('release', 'pick_up')


def read_cases(directory: Path, head: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the cases of a directory, or begin its file; InputError for another ``head``."""
    file = directory / FILE
    if not file.exists():
        directory.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(head) + '\n', encoding='utf-8')
        return []
    try:
        lines = file.read_text(encoding='utf-8').splitlines(keepends=True)
        whole = [line for line in lines if line.endswith('\n')]
        if not lines or (len(whole) == len(lines) == 1 and 'seed' in json.loads(lines[0])):
            # No case yet: begun anew, also after a controller was mended.
            file.write_text(json.dumps(head) + '\n', encoding='utf-8')
            return []
        known, *cases = (json.loads(line) for line in whole)
        if not all(case.keys() >= _KEYS for case in cases):
            raise ValueError('a line is no case')
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f'{file} is no result of this benchmark; give another --results'
        ) from error
    if known != json.loads(json.dumps(head)):
        raise InputError(
            f'{file} was begun with another boom or other controllers, or their code has changed;'
            ' give the same, or another --results'
        )
    if len(whole) < len(lines):
        file.write_text(''.join(whole), encoding='utf-8')
    return cases


def append(directory: Path, case: Mapping[str, Any]) -> None:
    """Add a case; what is not finite is null."""
    with (directory / FILE).open('a', encoding='utf-8') as stream:
        stream.write(json.dumps(for_json(case)) + '\n')


def summarize(cases: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what controllers reached, by name: columns of docs/damping.md in SI units."""
    names = list(dict.fromkeys(name for case in cases for name in case['measures']))
    return {name: _summary(name, cases) for name in names}


def _summary(name: str, cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the summary of one controller."""
    own = [case for case in cases if name in case['measures']]
    measures = [case['measures'][name] for case in own]
    reached = damping_by_posture(own, name)
    faster = _faster(own, name)
    rms: dict[str, list[float]] = {}
    for case, one in zip(own, measures, strict=True):
        if one['tip_rms'] is not None:  # of a run that ended early
            rms.setdefault(case['disturbance'], []).append(one['tip_rms'])
    return {
        'damping': _median(reached),
        'damped': _share(value >= GOAL_RATIO for value in reached),
        'faster': _median(faster),
        'fast': _share(value >= GOAL_FASTER for value in faster),
        'tip_rms': {what: float(np.sqrt(np.mean(np.square(v)))) for what, v in rms.items()},
        'pressure': max(one['pressure'] for one in measures),
        'valve_travel': float(np.mean([one['valve_travel'] for one in measures])),
        'astray': float(np.mean([one['astray'] for one in measures])),
        'violations': sum(one['violations'] > 0 for one in measures),
        'failed': sum(bool(one['error']) for one in measures),
        'cases': len(own),
    }


def _faster(cases: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """Return how many times faster than without control each posture settles, in all its cases."""
    times: dict[int, list[tuple[float, float]]] = {}
    for case in cases:
        alone, own = _settling(case, 'none'), _settling(case, name)
        if case['measures'][name]['settling'] is None:
            # Not settled within its shorter run: not faster than without control.
            own = max(alone, own)
        pair = alone, own
        times.setdefault(case['posture'], []).append(pair)
    sums = [np.sum(pairs, axis=0) for pairs in times.values()]
    return [float(alone / max(own, _SHORTEST)) for alone, own in sums if math.isfinite(alone)]


def _settling(case: Mapping[str, Any], name: str) -> float:
    """Return the time of settling [s]; within no run: at least so long; failed: infinite."""
    found = case['measures'][name]
    if found['error']:
        return math.inf
    length = ALONE if name == 'none' else DURATION
    time: float | None = found['settling']
    return length - ENDS[case['disturbance']] if time is None else time


def _median(values: Sequence[float] | np.ndarray) -> float | None:
    """Return the median; None of nothing."""
    return float(np.median(values)) if len(values) else None


def _share(hits: Iterable[bool]) -> float | None:
    """Return the share that is true; None of nothing."""
    found = list(hits)
    return sum(found) / len(found) if found else None


def damping_by_posture(cases: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    """Return the mean damping ratios of postures that an impulse excites, sorted."""
    found: dict[int, list[float]] = {}
    for case in cases:
        one = case['measures'].get(name, {})
        ratio = 0.0 if one.get('error') else one.get('damping')
        if case['disturbance'] in IMPULSES and ratio is not None:
            found.setdefault(case['posture'], []).append(ratio)
    return np.sort([float(np.mean(values)) for values in found.values()])


def settling_of(cases: Sequence[Mapping[str, Any]], name: str, disturbance: str) -> np.ndarray:
    """Return the times of settling [s] of a disturbance, sorted; infinite: not within the run."""
    times = [
        case['measures'][name]['settling']
        for case in cases
        if case['disturbance'] == disturbance and name in case['measures']
    ]
    return np.sort([math.inf if time is None else time for time in times])
