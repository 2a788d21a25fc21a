"""Compare controllers in benchmarks that are the same for everybody."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import runpy
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longreach_boom.parameters import load_boom
from longreach_control.benchmark import CONTROLLERS, Job, run_job
from longreach_control.cases import DISTURBANCES, POSTURES, SEED, Case, postures
from longreach_control.controller import DampingController
from longreach_control.plant import Situation
from longreach_control.results import (
    append,
    damping_by_posture,
    read_cases,
    settling_of,
    summarize,
)
from longreach_dynamics.errors import InputError, check_among
from longreach_dynamics.parallel import run_jobs
from longreach_tools.arguments import count, names
from longreach_tools.options import add_workers
from longreach_tools.output import (
    add_format,
    figure,
    legend,
    locked_directory,
    print_result,
    table,
    writing,
)

SUMMARY = 'controllers compared on a machine: damping of the boom'
# The controller that is a node.
_ROS = 'ros'
_COLOURS = ('black', 'tab:blue', 'tab:orange', 'tab:green', 'tab:red', 'tab:purple')


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach benchmark``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    damping = commands.add_parser(
        'damping',
        help='vibrations of the boom: postures, disturbances, controllers',
        description='The results are a table, a figure for each controller, and JSON, in a'
        ' directory. A benchmark that was stopped goes on where it was. See docs/damping.md.',
    )
    damping.add_argument('--file', help='boom (default: the installed boom.yaml)')
    number, text = count(10_000), 'how many of the drawn ones'
    add = damping.add_argument
    add('--postures', metavar='N', type=number, default=POSTURES, help=text)
    add('--disturbances', metavar='NAMES', type=names, default=DISTURBANCES, help='with commas')
    add(
        '--controllers',
        type=names,
        default=tuple(CONTROLLERS),
        metavar='NAMES',
        help=f'with commas, {", ".join(CONTROLLERS)}, yours as FILE.py:CLASS, or ros for a node'
        ' that answers on the topics of the namespace benchmark (default: all but this)',
    )
    add('--results', default=Path('out/damping'), help='directory of the results')
    add_workers(damping)
    add_format(damping)
    damping.set_defaults(run=_damping)


def _damping(arguments: argparse.Namespace) -> None:
    """Run ``damping``."""
    boom = load_boom(arguments.file) if arguments.file else load_boom()
    for name in arguments.disturbances:
        check_among('disturbance', name, DISTURBANCES)
    _check_neighbours(arguments.controllers)
    controllers = {name: controller_of(name) for name in arguments.controllers}
    if _ROS in controllers:
        if arguments.cluster or (arguments.processes or 1) > 1:
            raise InputError(f'controller {_ROS!r} is one node, allowed: --processes 1')
        arguments.processes = 1
    wanted = {
        (posture.number, name): Case(posture, name)
        for posture in postures(boom, arguments.postures)
        for name in arguments.disturbances
    }
    head = {
        'boom': boom.as_mapping(),
        'seed': SEED,
        'controllers': {name: _digest(one) for name, one in controllers.items()},
    }
    with locked_directory(arguments.results):
        done = {_key(case) for case in read_cases(arguments.results, head)}
        if done and _ROS in controllers:
            print(
                f'{len(done)} cases are of an earlier run of the node; give another --results if'
                ' it has changed',
                file=sys.stderr,
            )
        jobs = [Job(case, boom, controllers) for key, case in wanted.items() if key not in done]

        def finished(_: int, result: Mapping[str, Any]) -> None:
            append(arguments.results, result)

        run_jobs(run_job, jobs, arguments.processes, cluster=arguments.cluster, finished=finished)
        cases = [case for case in read_cases(arguments.results, head) if _key(case) in wanted]
    summary = summarize(cases)
    with writing(arguments.results / 'summary.json') as file:
        file.write_text(json.dumps(summary, indent=1) + '\n', encoding='utf-8')
    drawn: set[str] = set()
    for name in summary:
        stem = name.strip('/').replace('/', '_').replace(':', '_')
        while stem in drawn:
            stem += '_'
        drawn.add(stem)
        _draw(arguments.results / f'{stem}.png', name, cases)
    print_result(summary, summary_table(summary), arguments.format)
    for name in summary:
        errors = [e for case in cases if (e := case['measures'].get(name, {}).get('error'))]
        if errors:
            print(
                f'{name}: {len(errors)} runs failed, the first one: {errors[0]}', file=sys.stderr
            )
    print(f'{len(cases)} cases; figures and summary.json in {arguments.results}', file=sys.stderr)


def controller_of(name: str) -> Callable[[Situation], DampingController]:
    """Return a controller by name, or the class of ``FILE.py:CLASS``; InputError for others."""
    if name in CONTROLLERS:
        return CONTROLLERS[name]
    if name == _ROS:
        # Imported here: the others need no ROS.
        from longreach_control.remote import RosController

        return RosController
    file, colon, kind = name.rpartition(':')
    if not colon:
        known = ', '.join((*CONTROLLERS, _ROS))
        raise InputError(f'controller {name!r}, allowed: {known}, FILE.py:CLASS')
    if not Path(file).is_file():
        raise InputError(f'{file} does not exist; give FILE.py:CLASS')
    found = _User(str(Path(file).resolve()), kind)
    if not callable(getattr(found.made(), 'cycle', None)):
        raise InputError(
            f'{file} has no class {kind} with a method cycle(measured, wanted); derive it from'
            ' longreach_control.controller.DampingController'
        )
    return found


@dataclasses.dataclass(frozen=True)
class _User:
    """A user's class by its file, so that other processes find it."""

    file: str
    kind: str

    def made(self) -> Any:
        """Return the class, or None."""
        return _module_of(self.file).get(self.kind)

    def __call__(self, situation: Situation) -> DampingController:
        found: DampingController = self.made()(situation)
        return found


@functools.cache
def _module_of(file: str) -> dict[str, Any]:
    """Return what a user's file defines."""
    directory = str(Path(file).parent)
    if directory not in sys.path:
        # As when Python runs the file: it may import its neighbours.
        sys.path.insert(0, directory)
    try:
        # What it prints is no part of the results.
        with contextlib.redirect_stdout(sys.stderr):
            return runpy.run_path(file)
    except (Exception, SystemExit) as error:
        raise InputError(f'{file} cannot be loaded: {type(error).__name__}: {error}') from error


def _check_neighbours(names: Iterable[str]) -> None:
    """Raise InputError for modules of one name beside users' files: Python imports one only."""
    files = {Path(name.rpartition(':')[0]).resolve() for name in names if ':' in name}
    known: dict[str, Path] = {}
    for directory in {file.parent for file in files}:
        for one in {
            *directory.glob('*.py'),
            *(p.parent for p in directory.glob('*/*.py')),
        } - files:
            other = known.setdefault(one.stem, one)
            if other.parent != directory:
                raise InputError(
                    f'{other} and {one} have one name, and only one is imported; rename one'
                )


def _digest(controller: Any) -> str:
    """Return a digest of a user's file and what it imports beside it, or of this package."""
    files = sorted(Path(__file__).parent.glob('*.py'))
    if isinstance(controller, _User):
        directory = Path(controller.file).parent
        loaded = (getattr(module, '__file__', None) for module in [*sys.modules.values()])
        beside = {
            Path(name)
            for name in loaded
            if name and Path(name).is_relative_to(directory) and 'site-packages' not in name
        }
        files = sorted({Path(controller.file), *beside})
    return hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()


def _key(case: Mapping[str, Any]) -> tuple[int, str]:
    """Return posture and disturbance of a result."""
    return case['posture'], case['disturbance']


def summary_table(summary: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the summary for people."""
    rows = []
    for name, one in summary.items():
        rms = ' '.join(f'{what} {1e3 * value:.0f}' for what, value in one['tip_rms'].items())
        rows.append(
            (
                name,
                _shown(one['damping'], '.3f'),
                _shown(one['damped'], '.0%'),
                _shown(one['faster'], '.1f'),
                _shown(one['fast'], '.0%'),
                rms,
                f'{one["pressure"] / 1e5:.0f}',
                f'{one["valve_travel"]:.0f}',
                f'{math.degrees(one["astray"]):.2f}',
                one['violations'],
                one['failed'],
            )
        )
    head = (
        *('controller', 'damping', '>= 0.15', 'faster', '>= 10', 'tip rms [mm]'),
        *('pressure [bar]', 'travel', 'astray [deg]', 'violations', 'failed'),
    )
    return table(head, rows, left=1)


def _shown(value: float | None, form: str) -> str:
    """Return a number, or a dash for none."""
    return '-' if value is None else format(value, form)


def _draw(file: Path, name: str, cases: list[dict[str, Any]]) -> None:
    """Draw damping ratios of postures and times of settling, beside those without control."""
    disturbances = list(dict.fromkeys(case['disturbance'] for case in cases))
    with figure(file, (8.0, 6.5), above=1.0) as (above, below):
        for label, colour in (('none', '0.6'), (name, 'tab:blue')):
            ratios = damping_by_posture(cases, label)
            if ratios.size:
                share = 100.0 * (np.arange(ratios.size) + 0.5) / ratios.size
                above.plot(share, ratios, '.-', color=colour, label=label)
        above.axhline(0.15, color='0.3', linestyle=':', linewidth=1.0)
        above.set_xlabel('share of postures [%]')
        above.set_ylabel('damping ratio of\nthe first mode')
        above.set_title(f'{name}: above after releases and pick-ups, below all disturbances')
        if len(above.lines) > 1:
            above.legend(frameon=False)
        for disturbance, colour in zip(disturbances, _COLOURS, strict=False):
            for label, style in (('none', ':'), (name, '-')):
                times = settling_of(cases, label, disturbance)
                share = 100.0 * (np.arange(times.size) + 0.5) / max(times.size, 1)
                within = np.isfinite(times)
                below.plot(
                    times[within],
                    share[within],
                    style,
                    color=colour,
                    label=disturbance if label == name else None,
                )
        below.set_xscale('symlog', linthresh=1.0)
        below.set_xlabel('settled after [s] (dotted: without control)')
        below.set_ylabel('share of cases [%]')
        legend(below, 3)
