"""Command ``longreach identify``: parameters of a machine from recordings, and plans."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach_dynamics.errors import InputError, LongreachError
from longreach_identification.demo_commands import DEMO, run_demo
from longreach_tools.arguments import count, names, numbers, positive
from longreach_tools.options import add_demo, add_workers
from longreach_tools.output import (
    add_format,
    check_output,
    check_places,
    print_result,
    table,
    writing,
)

if TYPE_CHECKING:
    from longreach_identification.machine import Identifiable, Recording
    from longreach_identification.pipeline import Identified

_PAGES = 'longreach.identification'
_RECORDINGS = {
    '--static': 'poses at rest, each approached from both sides',
    '--release': 'motion with closed valves after the release of a load, or another experiment',
    '--validation': 'recordings of --release that are predicted, but not fitted',
}
_OF_RECORDINGS = {
    '--payload': (
        'RECORDING=MASS',
        'mass of the load [kg] in a recording without the topic load; may be repeated',
    ),
    '--event': (
        'RECORDING=TIME',
        'time at which the load was released [s], if the topic load does not say',
    ),
    '--column': (
        'SIGNAL=COLUMN[:UNIT]',
        'column of CSV files for a signal, with its unit, such as p_head_1=boom:barg',
    ),
}
_NAMES = {
    '--parameters': 'groups or names, such as masses,youngs_modulus,damping (default: for the boom'
    ' masses,gauges,youngs_modulus,damping; otherwise all)',
    '--signals': 'kinds of signals that are compared in motion, such as pressures,strain (default:'
    ' all)',
    '--profile': 'parameters of motion whose likelihood is computed over 3 standard errors to each'
    ' side, with all others estimated anew',
}
_FILES = {
    '--file': ('START.yaml', 'file of the machine to begin with'),
    '--out': ('FOUND.yaml', 'file of the machine with what was found'),
    '--report': ('REPORT.html', 'tables and figures in one file'),
    '--planted': (
        'TRUE.yaml',
        'file of the machine that was simulated, to be compared in the report',
    ),
}
SUMMARY = 'parameters of a machine from recordings (Henikl 2015, section 4.3)'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach identify``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    for name in sorted({point.name for point in entry_points(group=_PAGES)}):
        _add_machine(commands, name)
    _configure_plan(commands)
    add_demo(commands, DEMO, run_demo)


def _add_machine(commands: Any, name: str) -> None:
    """Add the subcommand of a machine."""
    parser = commands.add_parser(
        name,
        help=f'parameters of the {name}',
        description='A RECORDING is a bag, or a CSV file with a column time and columns named as'
        ' the signals; its name in other options is that of its file.',
    )
    for option, text in _RECORDINGS.items():
        parser.add_argument(
            option, metavar='RECORDING', nargs='+', type=Path, default=[], help=text
        )
    for option, (metavar, text) in _OF_RECORDINGS.items():
        parser.add_argument(option, metavar=metavar, action='append', default=[], help=text)
    for option, text in _NAMES.items():
        parser.add_argument(option, metavar='NAMES', type=names, help=text)
    for option, (metavar, text) in _FILES.items():
        parser.add_argument(option, metavar=metavar, type=Path, help=text)
    parser.add_argument('--namespace', help='namespace of the machine in bags (default: any)')
    parser.add_argument(
        '--shortest', type=positive, default=5.0, help='shortest stretch at rest [s] (default: 5)'
    )
    parser.add_argument(
        '--duration',
        type=positive,
        default=8.0,
        help='time after the release that is compared [s] (default: 8); the simulations take most'
        ' of the time',
    )
    parser.add_argument(
        '--robust', action='store_true', help='outliers of motion weigh less, after Huber'
    )
    add_workers(parser)
    add_format(parser)
    parser.set_defaults(run=_run, machine=name)


def _run(arguments: argparse.Namespace) -> None:
    """Run the identification of a machine."""
    # Slow to import, and not needed for --help.
    from longreach_identification.dynamics import Settings
    from longreach_identification.pipeline import identify_machine
    from longreach_identification.result_files import found_file, report_of, text_of

    files = [*arguments.static, *arguments.release]
    check_output(arguments.out)
    check_output(arguments.report)
    check_places(
        {'--out': arguments.out, '--report': arguments.report},
        [*files, arguments.file, arguments.planted],
    )
    motion_names = [path.name for path in arguments.release]
    validation = [path.name for path in arguments.validation]
    for name in validation:
        if name not in motion_names:
            raise InputError(
                f'--validation {name}, allowed: recordings of --release,'
                f' {", ".join(motion_names) or "none is given"}'
            )
    page: Identifiable = _page_of(arguments.machine)
    start = page.load(None if arguments.file is None else str(arguments.file))
    # What is asked for beside the estimation is checked before it, which takes minutes.
    planted = {}
    if arguments.planted is not None:
        planted = page.planted(start, page.load(str(arguments.planted)))
    _check_more(arguments, page, start)
    static, motion = _read(arguments, page, start)
    _check_kinds(page, start, arguments.signals, motion)
    settings = Settings(
        signals=_signal_patterns(page, start, arguments.signals),
        duration=arguments.duration,
        validation=validation,
        robust=arguments.robust,
    )
    found = identify_machine(
        page,
        start,
        static,
        motion,
        arguments.parameters or page.usual(start),
        settings,
        arguments.shortest,
        processes=arguments.processes,
        cluster=arguments.cluster,
    )
    more, failed = _profiles(arguments, found)
    if arguments.out is not None:
        with writing(arguments.out) as path:
            path.write_text(found_file(found, files), encoding='utf-8')
    if arguments.report is not None:
        with writing(arguments.report) as path:
            text = report_of(found, files, arguments, planted, more)
            path.write_text(text, encoding='utf-8')
    print_result({**found.to_dict(), **more}, text_of(found, more), arguments.format)
    notes = [f'note: {text}' for text in found.notes]
    for text in (*found.warnings, *failed, *notes):
        print(f'longreach identify: {text}', file=sys.stderr)


def _check_kinds(
    page: Identifiable, start: Any, kinds: Sequence[str] | None, motion: Sequence[Recording]
) -> None:
    """Raise InputError for kinds of signals that no recording of motion has."""
    recorded = {name for recording in motion for name in recording.signals}
    for kind in kinds or ():
        patterns = _signal_patterns(page, start, [kind])
        if not any(fnmatchcase(name, p) for name in recorded for p in patterns):
            raise InputError(
                f'--signals {kind}: no recording of --release has {" or ".join(patterns)}; it has'
                f' {", ".join(sorted(recorded))}'
            )


def _check_more(arguments: argparse.Namespace, page: Identifiable, start: Any) -> None:
    """Raise InputError for profiles that are not possible, and options without effect."""
    known = [entry.name for entry in page.free_parameters(start)]
    for name in arguments.profile or ():
        if name not in known:
            raise InputError(f'--profile {name}, allowed: {", ".join(known)}')
    for what in ('profile', 'signals', 'robust'):
        if getattr(arguments, what) and not arguments.release:
            raise InputError(f'--{what} is for recordings of motion; give --release')


def _profiles(
    arguments: argparse.Namespace, found: Identified
) -> tuple[dict[str, Any], list[str]]:
    """Return the profile likelihoods that are asked for, and why others are missing."""
    if not arguments.profile or found.dynamics is None:
        return {}, []
    from longreach_identification.estimation import profile

    profiles, failed = {}, []
    for name in arguments.profile:
        # What was identified before, in minutes, is not lost.
        try:
            values, increase = profile(
                found.dynamics.estimate.problem,
                found.dynamics.estimate,
                name,
                processes=arguments.processes,
                cluster=arguments.cluster,
            )
        except LongreachError as error:
            failed.append(f'no profile of {name}: {error}')
            continue
        except KeyboardInterrupt:
            failed.append(f'interrupted: no profile of {name} and those after it')
            break
        profiles[name] = {'values': values.tolist(), 'increase': increase.tolist()}
    return {'profiles': profiles}, failed


def _read(
    arguments: argparse.Namespace, page: Identifiable, start: Any
) -> tuple[list[Recording], list[Recording]]:
    """Read all recordings."""
    from longreach_identification.recordings import column_map, read_csv

    signals = page.signals(start)
    columns = column_map(arguments.column, signals)
    given = [path.name for path in (*arguments.static, *arguments.release)]
    payloads, events = (
        _by_recording(what, entries, given)
        for what, entries in (('--payload', arguments.payload), ('--event', arguments.event))
    )
    twice = sorted({name for name in given if given.count(name) > 1})
    if twice:
        raise InputError(f'recordings have the names {", ".join(twice)} twice; rename one')

    def one(path: Path) -> Recording:
        conditions = {'payload': payloads[path.name]} if path.name in payloads else {}
        at = [(events[path.name], 'release')] if path.name in events else []
        if path.suffix.lower() == '.csv':
            return read_csv(path, signals, columns, events=at, conditions=conditions)
        from longreach_identification.bag_files import read_recording

        return read_recording(path, signals, arguments.namespace, at, conditions)

    return [one(path) for path in arguments.static], [one(path) for path in arguments.release]


def _by_recording(what: str, entries: Sequence[str], known: Sequence[str]) -> dict[str, float]:
    """Parse RECORDING=NUMBER."""
    found: dict[str, float] = {}
    for entry in entries:
        name, _, number = entry.rpartition('=')
        try:
            value = float(number)
        except ValueError:
            name = ''
        if not name or not abs(value) < float('inf'):
            raise InputError(f'{what} {entry}, allowed: RECORDING=NUMBER')
        if Path(name).name not in known:
            raise InputError(f'{what} {entry}: allowed recordings: {", ".join(known)}')
        if found.setdefault(Path(name).name, value) != value:
            raise InputError(f'{what} gives {name} two values, allowed: one')
    return found


def _page_of(machine: str) -> Any:
    """Return the Identifiable of a machine; InputError for names that are not known."""
    points = {point.name: point for point in entry_points(group=_PAGES)}
    if machine not in points:
        raise InputError(f'machine {machine!r}, allowed: {", ".join(sorted(points))}')
    return points[machine].load()


def _signal_patterns(page: Any, start: Any, kinds: Sequence[str] | None) -> tuple[str, ...]:
    """Return patterns of signals for kinds of them."""
    if kinds is None:
        return tuple(page.compared)
    names = {signal.name: (signal.name,) for signal in page.signals(start)}
    known: Mapping[str, tuple[str, ...]] = page.signal_kinds or names
    for kind in kinds:
        if kind not in known:
            raise InputError(f'--signals {kind}, allowed: {", ".join(known)}')
    return tuple(pattern for kind in kinds for pattern in known[kind])


def _configure_plan(commands: Any) -> None:
    """Add the subcommand ``plan``."""
    parser = commands.add_parser(
        'plan', help='which releases and poses at rest pin the parameters down, as scenarios'
    )
    parser.add_argument('--machine', default='boom', help='(default: boom)')
    parser.add_argument('--file', metavar='START.yaml', type=Path, help='file of the machine')
    parser.add_argument(
        '--pose',
        metavar='DEGREES',
        type=numbers,
        action='append',
        default=[],
        help='joint angles of a possible pose; may be repeated (default: the poses of the'
        ' file, and some that are drawn)',
    )
    parser.add_argument(
        '--masses', metavar='KG', type=numbers, default=(5.0, 90.0), help='(default: 5,90)'
    )
    parser.add_argument(
        '--parameters',
        metavar='NAMES',
        type=names,
        help='groups or names to be found (default: those of identify)',
    )
    parser.add_argument(
        '--signals',
        metavar='NAMES',
        type=names,
        help='kinds of signals that will be recorded, such as pressures,strain (default: all, of'
        ' releases with markers seen by two cameras); of sensors with all readings of their rates',
    )
    parser.add_argument(
        '--count', type=count(100), default=3, help='number of experiments (default: 3)'
    )
    parser.add_argument('--repeats', action='store_true', help='an experiment may be chosen again')
    parser.add_argument('--processes', type=count(1000), help='parallel simulations')
    parser.add_argument(
        '--out', metavar='DIR', type=Path, help='folder for the chosen scenarios, as YAML files'
    )
    add_format(parser)
    parser.set_defaults(run=_run_plan)


def _run_plan(arguments: argparse.Namespace) -> None:
    """Run ``plan``."""
    import yaml

    from longreach_identification.dynamics import Settings
    from longreach_identification.planning import plan

    page = _page_of(arguments.machine)
    start = page.load(None if arguments.file is None else str(arguments.file))
    wanted = arguments.parameters or page.usual(start)
    settings = Settings(signals=_signal_patterns(page, start, arguments.signals))
    # A constant of each signal is unknown in each recording, in which a bias is included.
    sought = [n for n in page.chosen(start, wanted) if not n.startswith('gauge_bias')]
    if not sought:
        raise InputError(
            f'--parameters {",".join(wanted)}, allowed: at least one that is no bias of a gauge:'
            ' each recording has biases of its own'
        )
    left = sorted(arguments.out.glob('plan_*.yaml')) if arguments.out is not None else []
    if left:
        raise InputError(f'{left[0]} is of an earlier plan; give another --out, or remove it')
    possible = page.possible(start, arguments.pose, arguments.masses)
    scenarios = {name: [scenario] for name, (scenario, _) in possible.items()}
    at_rest = {}
    resting, recordings = page.possible_at_rest(start, max(arguments.masses))
    if resting:
        at_rest[recordings[-1].name] = recordings
        scenarios[recordings[-1].name] = resting
    found = plan(
        page,
        start,
        [recording for _, recording in possible.values()],
        sought,
        arguments.count,
        settings,
        at_rest=at_rest,
        repeats=arguments.repeats,
        processes=arguments.processes,
    )
    files = []
    for number, choice in enumerate(found.choices if arguments.out is not None else (), 1):
        several = scenarios[choice.name]
        for part, scenario in enumerate(several, 1):
            last = f'_{part}' if len(several) > 1 else ''
            file = arguments.out / f'plan_{number}{last}.yaml'
            with writing(file) as path:
                text = yaml.safe_dump(
                    scenario.as_mapping(), sort_keys=False, default_flow_style=None
                )
                path.write_text(f'# {choice.name}\n{text}', encoding='utf-8')
            files.append(str(file))
    head = ('choice', 'experiment', *found.choices[0].standard_errors)
    rows = [
        (str(number), choice.name, *(f'{e:.3g}' for e in choice.standard_errors.values()))
        for number, choice in enumerate(found.choices, 1)
    ]
    summary = 'standard errors after each choice, all together:\n' + table(head, rows)
    result = {
        'choices': [choice._asdict() for choice in found.choices],
        'alone': found.alone,
        'files': files,
    }
    print_result(result, '\n'.join([summary, *files]), arguments.format)
