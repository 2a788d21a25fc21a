"""
Identify the parameters of a machine from recordings, with standard errors.

Poses at rest give masses and gauges, motion after the release of a load gives stiffness and
damping (Henikl 2015, section 4.3). The result is a file of the machine.
"""

from __future__ import annotations

import argparse
import datetime
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import data_directory
from longreach_tools.arguments import count, names, numbers, positive
from longreach_tools.demo import call_in_sight, prepare, remove_old_bag
from longreach_tools.options import add_demo
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

__all__ = ['GROUP', 'SUMMARY', 'configure', 'found_file']

SUMMARY = 'parameters of a machine from recordings (Henikl 2015, section 4.3)'

GROUP = 'longreach.identification'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach identify``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    for name in sorted({point.name for point in entry_points(group=GROUP)}):
        _add_machine(commands, name)
    _add_plan(commands)
    add_demo(
        commands, 'a boom with planted parameters: simulate, record, identify, compare', _run_demo
    )


def _add_machine(commands: Any, name: str) -> None:
    """Add the subcommand of a machine."""
    parser = commands.add_parser(
        name,
        help=f'parameters of the {name}',
        description='A RECORDING is a bag, or a CSV file with a column time and columns named as'
        ' the signals; its name in other options is that of its file.',
    )
    parser.add_argument(
        '--static',
        metavar='RECORDING',
        nargs='+',
        type=Path,
        default=[],
        help='poses at rest, each approached from both sides',
    )
    parser.add_argument(
        '--release',
        metavar='RECORDING',
        nargs='+',
        type=Path,
        default=[],
        help='motion with closed valves after the release of a load, or another experiment',
    )
    parser.add_argument(
        '--file', metavar='START.yaml', type=Path, help='file of the machine to begin with'
    )
    parser.add_argument(
        '--parameters',
        metavar='NAMES',
        type=names,
        help='groups or names, such as masses,youngs_modulus,damping (default: for the'
        ' boom masses,gauges,youngs_modulus,damping; otherwise all)',
    )
    parser.add_argument(
        '--signals',
        metavar='NAMES',
        type=names,
        help='kinds of signals that are compared in motion, such as pressures,strain (default:'
        ' all)',
    )
    parser.add_argument(
        '--payload',
        metavar='RECORDING=MASS',
        action='append',
        default=[],
        help='mass of the load [kg] in a recording without the topic load; may be repeated',
    )
    parser.add_argument(
        '--event',
        metavar='RECORDING=TIME',
        action='append',
        default=[],
        help='time at which the load was released [s], if the topic load does not say',
    )
    parser.add_argument(
        '--column',
        metavar='SIGNAL=COLUMN[:UNIT]',
        action='append',
        default=[],
        help='column of CSV files for a signal, with its unit, such as p_head_1=boom:barg',
    )
    parser.add_argument(
        '--namespace', help='namespace of the machine in bags (default: any)', default=None
    )
    parser.add_argument(
        '--validation',
        metavar='RECORDING',
        nargs='+',
        default=[],
        help='recordings of --release that are predicted, but not fitted',
    )
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
        '--processes', type=count(1000), help='parallel simulations (default: one for each core)'
    )
    parser.add_argument(
        '--cluster', metavar='ADDRESS', help='a Dask cluster instead: tcp://HOST:PORT, local:COUNT'
    )
    parser.add_argument(
        '--out', metavar='FOUND.yaml', type=Path, help='file of the machine with what was found'
    )
    parser.add_argument(
        '--report', metavar='REPORT.html', type=Path, help='tables and figures in one file'
    )
    parser.add_argument(
        '--profile',
        metavar='NAMES',
        type=names,
        default=(),
        help='parameters of motion whose likelihood is computed over 3 standard errors to each'
        ' side, with all others estimated anew',
    )
    parser.add_argument(
        '--models',
        metavar='FILE',
        nargs='+',
        type=Path,
        default=[],
        help='other files of the machine, such as with another basis or damping law: the same'
        ' parameters are found from the motion with each, and compared',
    )
    parser.add_argument(
        '--planted',
        metavar='TRUE.yaml',
        type=Path,
        help='file of the machine that was simulated, to be compared in the report',
    )
    add_format(parser)
    parser.set_defaults(run=_run, machine=name)


def _run(arguments: argparse.Namespace) -> None:
    """Run the identification of a machine."""
    from longreach_identification.pipeline import identify_machine

    files = [*arguments.static, *arguments.release]
    check_output(arguments.out)
    check_output(arguments.report)
    check_places(
        {'--out': arguments.out, '--report': arguments.report},
        [*files, arguments.file, arguments.planted],
    )
    page: Identifiable = _page(arguments.machine)
    start = page.load(_text(arguments.file))
    # What is asked for beside the estimation is checked before it, which takes minutes.
    others = {path.stem: page.load(str(path)) for path in arguments.models}
    planted = _planted(page, start, arguments.planted)
    _check_more(arguments, page, start)
    static, motion = _read(arguments, page, start)
    wanted = arguments.parameters or _usual(page, start)
    found = identify_machine(
        page,
        start,
        static,
        motion,
        wanted,
        signals=_patterns(page, start, arguments.signals),
        shortest=arguments.shortest,
        duration=arguments.duration,
        validation=arguments.validation,
        processes=arguments.processes,
        cluster=arguments.cluster,
    )
    more = _profiles(arguments, found) | _models(arguments, found, others, motion, wanted)
    if arguments.out is not None:
        with writing(arguments.out) as path:
            path.write_text(found_file(found, files), encoding='utf-8')
    if arguments.report is not None:
        from longreach_identification.report_files import write_report

        write_report(arguments.report, _report(found, files, arguments, planted, more))
    print_result({**found.to_dict(), **more}, _table(found, more), arguments.format)
    for text in found.warnings:
        print(f'longreach identify: {text}', file=sys.stderr)


def _page(name: str) -> Any:
    """Return what a machine offers."""
    (point, *_) = entry_points(group=GROUP, name=name)
    return point.load()


def _text(file: Path | None) -> str | None:
    """Return a path as text."""
    return None if file is None else str(file)


def _usual(page: Identifiable, start: Any) -> tuple[str, ...]:
    """Return the groups of parameters that are found by default."""
    groups = dict.fromkeys(entry.group for entry in page.free_parameters(start))
    return tuple(getattr(page, 'usual_groups', groups))


def _patterns(page: Identifiable, start: Any, kinds: Sequence[str] | None) -> tuple[str, ...]:
    """Return patterns of signals for kinds of them."""
    if kinds is None:
        return tuple(getattr(page, 'compared', ('*',)))
    names = {signal.name: (signal.name,) for signal in page.signals(start)}
    known: Mapping[str, tuple[str, ...]] = getattr(page, 'signal_kinds', names)
    for kind in kinds:
        if kind not in known:
            raise InputError(f'--signals {kind}, allowed: {", ".join(known)}')
    return tuple(pattern for kind in kinds for pattern in known[kind])


def _planted(page: Any, start: Any, file: Path | None) -> dict[str, float]:
    """Return the parameters of the machine that was simulated, empty without its file."""
    if file is None:
        return {}
    if not hasattr(page, 'planted'):
        raise InputError(f'--planted: not offered by the {page.name}; leave it out')
    values: dict[str, float] = page.planted(start, page.load(str(file)))
    return values


def _check_more(arguments: argparse.Namespace, page: Identifiable, start: Any) -> None:
    """Raise InputError for profiles and models that are not possible."""
    known = [entry.name for entry in page.free_parameters(start)]
    for name in arguments.profile:
        if name not in known:
            raise InputError(f'--profile {name}, allowed: {", ".join(known)}')
    for what, asked in (('--profile', arguments.profile), ('--models', arguments.models)):
        if asked and not arguments.release:
            raise InputError(f'{what} needs a recording of motion: give --release')


def _profiles(arguments: argparse.Namespace, found: Identified) -> dict[str, Any]:
    """Return the profile likelihoods that are asked for."""
    if not arguments.profile or found.dynamics is None:
        return {}
    from longreach_identification.estimation import profile

    profiles = {}
    for name in arguments.profile:
        one = profile(
            found.dynamics.problem,
            found.dynamics.estimate,
            name,
            processes=arguments.processes,
            cluster=arguments.cluster,
        )
        profiles[name] = {'values': one.values.tolist(), 'increase': one.increase.tolist()}
    return {'profiles': profiles}


def _models(
    arguments: argparse.Namespace,
    found: Identified,
    others: Mapping[str, Any],
    motion: Sequence[Recording],
    wanted: Sequence[str],
) -> dict[str, Any]:
    """Return the comparison of several models on the recordings of motion."""
    if not others:
        return {}
    from longreach_identification.dynamics import compare, comparison
    from longreach_identification.pipeline import STATIC_GROUPS

    page = found.page
    machines = {'start': found.start, **others}
    results = compare(
        page,
        machines,
        motion,
        [name for name in wanted if name not in STATIC_GROUPS] or list(wanted),
        signals=_patterns(page, found.start, arguments.signals),
        duration=arguments.duration,
        processes=arguments.processes,
        cluster=arguments.cluster,
    )
    return {'models': [{k: _finite(v) for k, v in row.items()} for row in comparison(results)]}


# --- plan ------------------------------------------------------------------------------------


def _add_plan(commands: Any) -> None:
    """Add the subcommand ``plan``."""
    parser = commands.add_parser(
        'plan', help='which releases of a load would pin the parameters down, as scenarios'
    )
    parser.add_argument('--machine', default='boom', help='(default: boom)')
    parser.add_argument('--file', metavar='START.yaml', type=Path, help='file of the machine')
    parser.add_argument(
        '--pose',
        metavar='DEGREES',
        type=numbers,
        action='append',
        default=[],
        help='joint angles of a possible pose; may be repeated (default: the poses of the file)',
    )
    parser.add_argument(
        '--masses', metavar='KG', type=numbers, default=(5.0, 90.0), help='(default: 5,90)'
    )
    parser.add_argument(
        '--parameters',
        metavar='NAMES',
        type=names,
        default=('youngs_modulus', 'damping'),
        help='groups or names to be found (default: youngs_modulus,damping)',
    )
    parser.add_argument(
        '--count', type=count(100), default=3, help='number of experiments (default: 3)'
    )
    parser.add_argument('--criterion', choices=('D', 'A'), default='D', help='(default: D)')
    parser.add_argument('--processes', type=count(1000), help='parallel simulations')
    parser.add_argument(
        '--out', metavar='DIR', type=Path, help='folder for the chosen scenarios, as YAML files'
    )
    add_format(parser)
    parser.set_defaults(run=_run_plan)


def _run_plan(arguments: argparse.Namespace) -> None:
    """Run ``plan``."""
    import yaml

    from longreach_identification.planning import plan

    known = sorted({point.name for point in entry_points(group=GROUP)})
    if arguments.machine not in known:
        raise InputError(f'--machine {arguments.machine}, allowed: {", ".join(known)}')
    page = _page(arguments.machine)
    if not hasattr(page, 'possible'):
        raise InputError(f'--machine {arguments.machine} has no plan, allowed: boom')
    start = page.load(_text(arguments.file))
    possible = page.possible(start, arguments.pose, arguments.masses)
    found = plan(
        page,
        start,
        [recording for _, recording in possible.values()],
        arguments.parameters,
        arguments.count,
        criterion=arguments.criterion,
        processes=arguments.processes,
    )
    files = []
    if arguments.out is not None:
        for number, choice in enumerate(found.choices, 1):
            file = arguments.out / f'plan_{number}.yaml'
            values = possible[choice.name][0].as_mapping()
            with writing(file) as path:
                text = yaml.safe_dump(values, sort_keys=False, default_flow_style=None)
                path.write_text(f'# {choice.name}\n{text}', encoding='utf-8')
            files.append(str(file))
    head = ('choice', 'experiment', *found.choices[0].standard_errors)
    rows = [
        (str(number), choice.name, *(f'{e:.3g}' for e in choice.standard_errors.values()))
        for number, choice in enumerate(found.choices, 1)
    ]
    told = 'standard errors after each choice, all together:\n' + table(head, rows)
    result = {
        'choices': [choice._asdict() for choice in found.choices],
        'alone': found.alone,
        'files': files,
    }
    print_result(result, '\n'.join([told, *files]), arguments.format)


# --- demonstration ---------------------------------------------------------------------------

_PLANTED = ('longreach_boom', 'boom_planted.yaml')
_POSES = {'static_poses': '0', 'static_poses_loaded': '90'}  # scenarios and their loads [kg]
_NEXT = """
{report} is a page for a browser; it has planted values beside those that were found.
{found} is a boom file: longreach boom release --file {found}"""


def _run_demo(arguments: argparse.Namespace) -> int:
    """Run ``demo``."""
    out = prepare(arguments.out)
    package, name = _PLANTED
    planted = data_directory(package) / 'config' / name
    bag = out / 'identify_release'
    found, report = out / 'identify_found.yaml', out / 'identify_report.html'
    remove_old_bag(bag)
    tables = [out / f'identify_{scenario}.csv' for scenario in _POSES]
    calls: list[list[object]] = [
        ['boom', 'measure', scenario, '--file', planted, '--seed', seed, '--csv', table]
        for seed, (scenario, table) in enumerate(zip(_POSES, tables, strict=True))
    ]
    calls.append(
        [
            *('launch', 'vision', 'boom:=true', f'boom_file:={planted}', 'sensors:=typical'),
            *('scenario:=release_light', 'duration:=15.0', 'real_time_factor:=0.0', 'scale:=0.5'),
            *(f'record:={bag}', 'rviz:=false'),
        ]
    )
    payloads = [
        word
        for table, mass in zip(tables, _POSES.values(), strict=True)
        for word in ('--payload', f'{table.name}={mass}')
    ]
    calls.append(
        [
            *('identify', 'boom', '--static', *tables, *payloads, '--release', bag),
            *('--out', found, '--report', report, '--planted', planted),
        ]
    )
    for words in calls:
        print()
        code = call_in_sight(['longreach', *map(str, words)])
        if code:
            return code
    print(_NEXT.format(found=found, report=report))
    return 0


# --- recordings ------------------------------------------------------------------------------


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
        told = {'payload': payloads[path.name]} if path.name in payloads else {}
        at = [(events[path.name], 'release')] if path.name in events else []
        if path.suffix == '.csv':
            return read_csv(path, signals, columns, events=at, conditions=told)
        from longreach_identification.bag_files import read_recording

        namespaces = () if arguments.namespace is None else (arguments.namespace,)
        return read_recording(path, signals, namespaces, at, told)

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
        found[Path(name).name] = value
    return found


# --- results ---------------------------------------------------------------------------------


def found_file(found: Identified, files: Sequence[Path]) -> str:
    """
    Return a machine file with what was found, and comments that say from what.

    Parameters
    ----------
    found : Identified
    files : sequence of path
        Of the recordings.
    """
    import yaml

    now = datetime.datetime.now(datetime.UTC).strftime('%Y-%m-%d %H:%M UTC')
    lines = [
        f'Identified by longreach identify {found.page.name} on {now}',
        f'from {", ".join(path.name for path in files)}.',
        '',
    ]
    for name, entry in found.parameters.items():
        value, error, start = (entry[key] for key in ('value', 'standard_error', 'start'))
        told = f'{name} = {_number(value)} +- {_number(error)}'
        lines.append(told if start is None else f'{told}, before {_number(start)}')
    lines += [f'Warning: {text}' for text in found.warnings]
    text = yaml.safe_dump(
        found.machine.as_mapping(), sort_keys=False, default_flow_style=None, width=99
    )
    return ''.join(f'# {line}'.rstrip() + '\n' for line in lines) + '\n' + text


def _number(value: float | None) -> str:
    """Return a number with five digits, - for none."""
    return '-' if value is None else f'{value:.5g}'


def _table(found: Identified, more: Mapping[str, Any]) -> str:
    """Return the parameters, profiles and models as text."""
    rows = [
        (name, *(_number(entry[key]) for key in ('start', 'value', 'standard_error')))
        for name, entry in found.parameters.items()
    ]
    parts = [table(('parameter', 'start', 'found', 'standard error'), rows)]
    for name, one in more.get('profiles', {}).items():
        curve = list(zip(one['values'], one['increase'], strict=True))
        parts.append(table((name, 'increase of chi-square'), curve))
    if 'models' in more:
        parts.append(table(*_compared(more['models'])))
    return '\n\n'.join(parts)


def _finite(value: Any) -> Any:
    """Return a cell of a comparison for JSON: pairs become value and standard error."""
    if isinstance(value, tuple):
        return dict(zip(('value', 'standard_error'), map(_finite, value), strict=True))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _compared(models: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a comparison of models."""
    head = list(dict.fromkeys(key for row in models for key in row))

    def cell(value: Any) -> str:
        if isinstance(value, Mapping):
            return f'{_number(value["value"])} +- {_number(value["standard_error"])}'
        return _number(value) if isinstance(value, float) else str(value or '-')

    return head, [[cell(row.get(key)) for key in head] for row in models]


def _report(
    found: Identified,
    files: Sequence[Path],
    arguments: argparse.Namespace,
    planted: dict[str, float],
    more: Mapping[str, Any],
) -> str:
    """Return the report as HTML."""
    from longreach_identification import report_files as report

    page = found.page
    units = {entry.name: entry.unit for entry in page.free_parameters(found.start)}
    units |= {signal.name: signal.unit for signal in page.signals(found.start)}
    if found.statics is not None:
        units |= {name: 'N' for name in found.statics.predicted if name.startswith('force_')}
    if planted and found.dynamics is not None:
        experiment = found.dynamics.problem.predict.experiments[0]  # type: ignore[attr-defined]
        planted = planted | page.derived(page.load(str(arguments.planted)), experiment)
    now = datetime.datetime.now(datetime.UTC).strftime('%Y-%m-%d %H:%M UTC')
    facts = [
        ('recordings', ', '.join(path.name for path in files)),
        ('begun with', str(arguments.file or 'the installed file')),
        ('written to', str(arguments.out or '-')),
        ('command', shlex.join(['longreach', *sys.argv[1:]])),
        ('time', now),
    ]
    head = ['parameter', 'unit', 'start', 'found', 'standard error', 'change']
    head += ['planted'] if planted else []
    rows = []
    for name, entry in found.parameters.items():
        value, start = entry['value'], entry['start']
        change = '' if not start or value is None else f'{value / start - 1.0:+.2%}'
        told = [_number(entry[key]) for key in ('start', 'value', 'standard_error')]
        known = [_number(planted.get(name))] if planted else []
        rows.append((name, units.get(name, ''), *told, change, *known))
    tables = [('Parameters', report.table(head, rows))]
    for name, one in more.get('profiles', {}).items():
        curve = zip(one['values'], one['increase'], strict=True)
        text = report.table((name, 'increase of chi-square (95 %: 3.84)'), curve)
        tables.append((f'Profile likelihood of {name}', text))
    if 'models' in more:
        tables.append(('Models on the same recordings', report.table(*_compared(more['models']))))
    return report.report(
        f'Identification of the {page.name}',
        found.stages(),
        facts=facts,
        warnings=found.warnings,
        units=units,
        tables=tables,
    )
