"""
The command of a machine, made of its declaration.

Subcommands ``run``, ``sweep``, ``compare``, ``urdf`` and ``demo``, those that call running nodes,
and the machine's studies. Figures, recordings and ROS are imported when they are used.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import (
    Loader,
    Parameters,
    field_types,
    place_of,
    rule_of,
    value_at,
)
from longreach_machine import MachineSpec, check_curves
from longreach_machine.runs import Columns, Run
from longreach_tools.arguments import (
    add_common,
    finite,
    names,
    not_negative,
    numbers,
    positive,
    with_default,
)
from longreach_tools.comparison import report_comparison, report_run
from longreach_tools.demo import demonstrate
from longreach_tools.options import add_demo, add_node_options, add_results, radians_of
from longreach_tools.output import check_output, check_places, checked_ending, writing
from longreach_tools.run_figure import draw_run
from longreach_tools.sweeps import Measured, add_design, design_of, run_sweep

Spec = MachineSpec[Any, Any, Any]
P = TypeVar('P')
Options = TypeVar('Options', bound=Parameters)
# What begins the path of a value of the scenario.
_SCENARIO = 'scenario.'


class _Job(NamedTuple):
    """One run of a sweep."""

    spec: Spec
    machine: Any
    scenario: Any
    options: Parameters
    series: tuple[str, ...]

    def __repr__(self) -> str:
        """Return all that the run depends on, with its code and the files that it may read."""
        installed = self.spec.default_file().parent.glob('*.yaml') if self.spec.file else ()
        files = [*map(Path, _files(self.scenario, self.options)), *sorted(installed)]
        contents = [file.read_bytes() for file in files if file.is_file()]
        return f'{tuple(self)!r} {_code_of(self.spec)} {contents!r}'


def _code_of(spec: Spec) -> str:
    """Return a digest of the packages of a machine, its parameters and scenarios."""
    kinds = type(spec), spec.parameters, spec.scenarios, spec.run, MachineSpec, Run
    digest = hashlib.sha256()
    for name in sorted({kind.__module__.partition('.')[0] for kind in kinds}):
        module = vars(sys.modules[name])
        for root in map(Path, module.get('__path__') or [module['__file__']]):
            for file in sorted([root, *root.rglob('*.py')]):
                # Not code that is generated there for the parameters of a run.
                if file.is_file() and '__pycache__' not in file.parts:
                    digest.update(file.read_bytes())
    return digest.hexdigest()


def configure(spec: Spec, parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of a machine."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    if spec.studies:
        import_module(spec.studies).add_studies(commands)
    _add_run(spec, commands)
    if spec.results:
        _add_sweep(spec, commands)
    own = type(spec)
    if own.smooth is not MachineSpec.smooth or own.smooth_at is not MachineSpec.smooth_at:
        _add_linearize(spec, commands)
    if spec.valves:
        _add_fmu(spec, commands)
    _add_compare(spec, commands)
    if type(spec).describe is not MachineSpec.describe:
        _add_urdf(spec, commands)
    if spec.demo:
        text = f'{spec.scenario} over ROS: run, record, compare, draw'
        add_demo(commands, text, functools.partial(_demonstrate, spec))
    _add_services(spec, commands)


# --- arguments ------------------------------------------------------------------------------


def add_study(
    spec: Spec,
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], Any],
    text: str,
    without: Sequence[str] | None = None,
) -> argparse.ArgumentParser:
    """Add a subcommand with the options of :func:`add_machine`."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text)
    add_machine(spec, parser, without)
    parser.set_defaults(run=run)
    return parser


def add_machine(
    spec: Spec, parser: argparse.ArgumentParser, without: Sequence[str] | None = ()
) -> None:
    """Add ``--file``, ``--set`` and the options of runs, ``without`` some, or (None) all."""
    if spec.file:
        text = f'{spec.name} (default: the installed {spec.file})'
        add_common(parser, '--file', help=text)
        example = '' if spec.swept.startswith(_SCENARIO) else f'({spec.swept}=1.0) '
        text = f'{example}or, with scenario.PATH, than in that of the scenario; items'
        text += ' of lists by name, or number from 0; can be repeated'
        add_common(parser, '--set', [], action='append', help=text)
    if without is not None:
        add_options(parser, spec.options, without)


def add_options(
    parser: argparse.ArgumentParser, options: type[Parameters], without: Sequence[str] = ()
) -> None:
    """Add an option for each field of a class; what is not given is None."""
    types = field_types(options)
    for field in dataclasses.fields(options):
        if field.name in without:
            continue
        rule, kind = rule_of(field), types[field.name]
        words: dict[str, Any] = {}
        unit = f' [{rule.unit}]' if rule.unit not in ('', '1') else ''
        if kind is bool and not field.default:
            words = {'action': 'store_const', 'const': True}
        elif kind is bool:
            words = {'choices': ('on', 'off')}
        elif rule.choices:
            words = {'choices': rule.choices}
        elif kind is not str:
            words = {'type': int if kind is int else finite}
        usual = 'on' if field.default is True else field.default
        text = with_default(f'{rule.description}{unit}', usual)
        add_common(parser, '--' + field.name.replace('_', '-'), help=text, **words)


def options_of(arguments: argparse.Namespace, options: type[Options], **otherwise: Any) -> Options:
    """Return the object of the options that were given, or else of ``otherwise``."""
    types = field_types(options)
    given = {name: getattr(arguments, name, None) for name in types}
    values = otherwise | {name: value for name, value in given.items() if value is not None}
    for name, value in values.items():
        if types[name] is bool and isinstance(value, str):
            values[name] = value == 'on'
    return options(**values)


def machine_of(
    spec: MachineSpec[P, Any, Any],
    arguments: argparse.Namespace,
    options: Parameters | None = None,
    *,
    has_scenario: bool = False,
) -> P:
    """
    Return the machine of ``--file`` and ``--set``, with ``options`` or those of the arguments.

    InputError for values of a scenario where the command has none, and for files that cannot be
    written, see :func:`check_files`.
    """
    check_files(arguments)
    changes = _changes(arguments)
    for path, _ in changes:
        if path.startswith(_SCENARIO) and not has_scenario:
            raise InputError(
                f'--set {path}, allowed here: values of the machine, as this command has no'
                ' scenario; take its options, or run with a scenario'
            )
    options = options or options_of(arguments, spec.options)
    file = getattr(arguments, 'file', None)
    machine = spec.load(file, options)
    # As options may change values of the file.
    usual = spec.load(file, spec.options()) if changes else machine
    for path, _ in changes:
        if not path.startswith(_SCENARIO) and value_at(machine, path) != value_at(usual, path):
            raise InputError(f'--set {path}, allowed: without the option that gives it, too')
    changed: P = _changed(machine, changes, of_scenario=False)
    return changed


def case_of(
    spec: MachineSpec[P, Any, Any], arguments: argparse.Namespace, **given: Any
) -> tuple[P, Any, Any]:
    """Return machine, scenario and options; ``given`` as in :func:`scenario_with`."""
    options = options_of(arguments, spec.options)
    machine = machine_of(spec, arguments, options, has_scenario=True)
    scenario = spec.load_scenario(_file_of(spec, arguments), machine, options)
    return machine, scenario_with(spec, arguments, machine, scenario, **given), options


def scenario_with(
    spec: Spec, arguments: argparse.Namespace, machine: Any, scenario: Any, **given: Any
) -> Any:
    """
    Return a scenario with ``--set`` and ``--duration``; print which ones it leaves unused.

    ``given`` are values of options, or None, by the fields of the scenario that they set.
    InputError where ``--set`` changes these, too.
    """
    changes = _changes(arguments)
    given['duration'] = getattr(arguments, 'duration', None)
    for path, _ in changes:
        field = path.removeprefix(_SCENARIO).partition('.')[0]
        if path.startswith(_SCENARIO) and given.get(field) is not None:
            raise InputError(
                f'--set {path}, allowed: without an option that gives {field}, here'
                f' {given[field]}; give one of them'
            )
    if given['duration'] is not None:
        changes.append(('scenario.duration', given['duration']))
    scenario = _changed(scenario, changes, of_scenario=True)
    say_unused(spec, arguments, machine, scenario)
    return scenario


def say_unused(spec: Spec, arguments: argparse.Namespace, machine: Any, scenario: Any) -> None:
    """Print which values of ``--set`` have no effect, as the scenario sets others."""
    used = spec.with_scenario(machine, scenario)
    for path, value in _changes(arguments):
        if path.startswith(_SCENARIO):
            continue
        # Not where a later --set has changed it again.
        has = [one.with_value(path, value) == one for one in (machine, used)]
        if has == [True, False]:
            print(
                f'longreach {spec.name}: --set {path} has no effect: the scenario sets it',
                file=sys.stderr,
            )


def _changed(values: Any, changes: Iterable[tuple[str, Any]], *, of_scenario: bool) -> Any:
    """Return parameters, or a scenario, with those changes by path that are for them."""
    own: dict[str, Any] = {}
    for path, value in changes:
        if path.startswith(_SCENARIO) is of_scenario:
            # The last one counts, also where a whole stands between two of its parts.
            own.pop(path.removeprefix(_SCENARIO), None)
            own[path.removeprefix(_SCENARIO)] = value
    return values.with_values(own)


def _changes(arguments: argparse.Namespace) -> list[tuple[str, Any]]:
    """Return paths and values of ``--set``."""
    found = []
    for text in getattr(arguments, 'set', ()):
        path, equals, value = text.partition('=')
        if not equals:
            raise InputError(f'--set {text}, allowed: PATH=VALUE, such as mass=1.0')
        try:
            found.append((path, yaml.load(value, Loader=Loader)))
        except yaml.YAMLError as error:
            raise InputError(f'--set {text}: the value is no YAML') from error
    return found


def _file_of(spec: Spec, arguments: argparse.Namespace) -> Path:
    """Return the file of ``SCENARIO`` or ``--scenario``, or of the default one."""
    return spec.find_scenario(arguments.scenario) if spec.scenario else Path()


def _scenario_of(
    spec: Spec, file: Path, machine: Any, options: Parameters, changes: Iterable[tuple[str, Any]]
) -> Any:
    """Return the scenario of a file with changes by path."""
    return _changed(spec.load_scenario(file, machine, options), changes, of_scenario=True)


def check_files(arguments: argparse.Namespace, *inputs: str | Path) -> None:
    """
    Raise InputError for output files that cannot be written, or are also input files.

    Of the arguments ``csv``, ``plot``, ``out`` and ``results`` are outputs, other paths are input
    files, as ``inputs``.
    """
    outputs = ('csv', 'plot', 'out', 'results')
    results = {name: getattr(arguments, name, None) for name in outputs}
    check_output(results['csv'], results['plot'])
    check_output(results['out'])
    given = vars(arguments).items()
    read = [file for name, file in given if isinstance(file, Path) and name not in results]
    check_places({f'--{name}': file for name, file in results.items()}, [*read, *inputs])


# --- runs -----------------------------------------------------------------------------------


def _add_run(spec: Spec, commands: Any) -> None:
    """Add the subcommand ``run``."""
    run = functools.partial(_run, spec)
    parser = add_study(spec, commands, 'run', run, 'run a scenario file', ())
    if spec.scenario:
        parser.add_argument('scenario', nargs='?', default=Path(spec.scenario))
    add_common(parser, '--duration', help='of the run (default: of the scenario)')
    add_results(parser, f'a table, one row for each {spec.rows}', spec.figure())


def add_scenario(spec: Spec, parser: argparse.ArgumentParser) -> None:
    """Add ``--scenario``, if the machine has several."""
    if spec.scenario:
        add_common(parser, '--scenario', Path(spec.scenario))


def _run(spec: Spec, arguments: argparse.Namespace) -> int:
    """Run ``run``."""
    machine, scenario, options = case_of(spec, arguments)
    title = {'scenario': str(arguments.scenario)} if spec.scenario else None
    return run_scenario(spec, arguments, machine, scenario, options, title)


def run_scenario(
    spec: Spec,
    arguments: argparse.Namespace,
    machine: Any,
    scenario: Any,
    options: Parameters,
    title: dict[str, Any] | None = None,
) -> int:
    """Simulate a scenario, print and write the results, and return the exit code."""
    check_files(arguments, *_files(scenario, options))
    spec.check(scenario, options)
    run = spec.simulate(machine, scenario, options)
    check_curves(spec.panels, run.columns)
    return report_run(arguments, spec.name, run, functools.partial(draw_run, spec), title)


def _files(*read: Any) -> list[str]:
    """Return the files that scenario and options name."""
    return [
        text
        for one in read
        for name in ('forces', 'sensors', 'arm')
        if isinstance(text := getattr(one, name, None), str) and text
    ]


def _add_sweep(spec: Spec, commands: Any) -> None:
    """Add the subcommand ``sweep``."""
    run, text = functools.partial(_sweep, spec), 'many runs, over values of one or more parameters'
    parser = add_study(spec, commands, 'sweep', run, text, ())
    add_design(parser, spec.swept)
    add_scenario(spec, parser)


def _sweep(spec: Spec, arguments: argparse.Namespace) -> int:
    """Run ``sweep``."""
    options = options_of(arguments, spec.options)
    machine = machine_of(spec, arguments, has_scenario=True)

    arguments.series = (
        tuple(dict.fromkeys(('time', *arguments.series))) if arguments.series else ()
    )
    columns = spec.columns(machine) if arguments.series else Columns()
    series = {name: columns.unit(name) for name in arguments.series}
    file, changes = _file_of(spec, arguments), _changes(arguments)

    def place(path: str) -> object:
        if not path.startswith(_SCENARIO):
            return place_of(machine, path)
        scenario = _scenario_of(spec, file, machine, options, changes)
        return _SCENARIO, place_of(scenario, path.removeprefix(_SCENARIO))

    swept, design = design_of(arguments, place)
    # What depends on the values is made for each run.
    varies = type(spec).load_scenario is not MachineSpec.load_scenario
    varies |= any(path.startswith(_SCENARIO) for path in swept)
    scenario = None if varies else _scenario_of(spec, file, machine, options, changes)
    job = _Job(spec, machine, scenario, options, arguments.series)
    job_of = functools.partial(_job_of, job, file, changes)
    if changes:
        first = job_of(dict(zip(swept, design.min(0).tolist(), strict=True)))
        say_unused(spec, arguments, first.machine, first.scenario)
    return run_sweep(spec.name, arguments, swept, design, spec.results, job_of, _measure, series)


def _job_of(
    job: _Job, file: Path, changes: Sequence[tuple[str, Any]], values: Mapping[str, float]
) -> _Job:
    """Return a job with other values by path, and with the scenario of a file if it has none."""
    machine = _changed(job.machine, values.items(), of_scenario=False)
    scenario = job.scenario
    if scenario is None:
        given = [*changes, *values.items()]
        scenario = _scenario_of(job.spec, file, machine, job.options, given)
    job.spec.check(scenario, job.options)
    return job._replace(machine=machine, scenario=scenario)


def _measure(job: _Job) -> Measured:
    """Run one job of a sweep."""
    spec = job.spec
    run = spec.simulate(job.machine, job.scenario, job.options)
    missing = (math.nan,) * len(spec.results)
    if not len(run.table):
        return Measured(missing, run.message)
    # What is measured up to a failure is no result of the whole run.
    numbers = missing if run.message else tuple(map(float, spec.measure(run)))
    series = tuple(run.column(name) for name in job.series)
    return Measured(numbers, run.message, tuple(run.warnings()), series=series)


# --- recordings -----------------------------------------------------------------------------


def _add_compare(spec: Spec, commands: Any) -> None:
    """Add the subcommand ``compare``."""
    run, text = functools.partial(_compare, spec), 'compare a recorded run with the library'
    parser = add_study(spec, commands, 'compare', run, text, spec.of_recording)
    parser.add_argument('bag')
    add_scenario(spec, parser)
    add_common(parser, '--namespace', spec.name, help=f'the {spec.name}')
    add_results(parser, 'write the recorded run, row by row', spec.figure())


def _compare(spec: Spec, arguments: argparse.Namespace) -> int:
    """Run ``compare``."""
    from longreach_tools.signals import read_run

    machine, scenario, options = case_of(spec, arguments)
    columns = spec.run_columns(machine, options)
    recorded = read_run(spec, arguments.bag, arguments.namespace, machine, columns)
    if 'sample_time' in spec.of_recording and hasattr(options, 'sample_time'):
        # The step is not recorded, the interval of rows is.
        interval = recorded.sample_time(options.step or options.sample_time)
        options = options.replace(sample_time=interval)
    expected = spec.simulate(machine, scenario, options)
    flags = ', '.join(
        f'--{name.replace("_", "-")}'
        for name in ('scenario', 'file', 'set', *field_types(spec.options))
        if hasattr(arguments, name)
    )
    begin = f'Name what was run with {flags}; c' if flags else 'C'
    advice = f'{begin}ommands by hand and nodes in real time differ, too'
    return report_comparison(
        arguments,
        spec.name,
        recorded,
        expected,
        advice,
        functools.partial(draw_run, spec, library=expected),
        spec.rows,
    )


def _add_linearize(spec: Spec, commands: Any) -> None:
    """Add the subcommand ``linearize``."""
    from longreach_tools.linearize import add_linearize, run_linearize

    def run(arguments: argparse.Namespace) -> None:
        run_linearize(arguments, spec, *case_of(spec, arguments))

    text = 'linear model at a time of a run: poles, Bode figure, .mat and .json'
    parser = add_study(spec, commands, 'linearize', run, text, ())
    add_scenario(spec, parser)
    add_linearize(parser)


def _add_fmu(spec: Spec, commands: Any) -> None:
    """Add the subcommand ``fmu``."""

    def run(arguments: argparse.Namespace) -> None:
        checked_ending(arguments.out, ['fmu'])
        case = case_of(spec, arguments)
        from longreach_machine.cosimulation import write_fmu

        with writing(arguments.out) as file:
            write_fmu(file, spec, *case)
        print(
            f'{arguments.out}: its inputs command it; of the scenario it has the start, loads and'
            ' disturbances',
            file=sys.stderr,
        )

    text = 'write an FMU 2.0 for co-simulation, which calls Longreach where it runs'
    parser = add_study(spec, commands, 'fmu', run, text, ())
    add_scenario(spec, parser)
    parser.add_argument('--out', metavar='FILE.fmu', required=True, help='the FMU')


# --- description, demonstration -------------------------------------------------------------


def _add_urdf(spec: Spec, commands: Any) -> None:
    """Add the subcommand ``urdf``."""

    def run(arguments: argparse.Namespace) -> None:
        print(spec.describe(machine_of(spec, arguments), arguments.prefix), end='')

    article = 'an' if spec.name[0] in 'aeiou' else 'a'
    text = f'print the robot description of {article} {spec.name}'
    parser = add_study(spec, commands, 'urdf', run, text)
    text = 'of the frame names, such as north/'
    parser.add_argument('--prefix', metavar='TEXT', default='', help=text)


def _demonstrate(spec: Spec, arguments: argparse.Namespace) -> int:
    """Run ``demo``: a recorded launch, its comparison with the library, a figure."""
    scenario = spec.find_scenario(spec.scenario)
    compare = (spec.name, 'compare', '{bag}', '--scenario', '{scenario}', '--plot', '{picture}')
    return demonstrate(
        arguments.out,
        scenario.stem,
        (spec.name, f'scenario:={spec.scenario}', *spec.demo),
        [compare],
        spec.next_steps(),
        file=spec.default_file(),
        scenario=scenario,
    )


# --- plants that run as nodes ---------------------------------------------------------------


def _add_services(spec: Spec, commands: Any) -> None:
    """Add the subcommands that call running nodes."""

    def call(name: str, arguments: argparse.Namespace) -> None:
        from longreach_node.remote import call_plant

        service = name.replace('-', '_')
        print(call_plant(service, arguments.namespace, arguments.timeout, spec.launch))

    services = {
        **spec.services,
        'pause': f'pause the simulation of a running {spec.name}',
        'resume': 'resume it',
        'step': 'advance a paused simulation by one sample',
        'reset': 'reset it to the initial state at time 0',
    }
    for name, text in services.items():
        _add_remote(spec, commands, name, functools.partial(call, name), text)
    if spec.loads:
        _add_attach(spec, commands)
    if spec.valves:
        _add_valves(spec, commands)
    if spec.moves:
        _add_move(spec, commands)


def _add_remote(
    spec: Spec, commands: Any, name: str, run: Callable[[argparse.Namespace], None], text: str
) -> argparse.ArgumentParser:
    """Add a subcommand that calls running nodes."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text)
    add_node_options(parser, spec.name)
    parser.set_defaults(run=run)
    return parser


def _add_attach(spec: Spec, commands: Any) -> None:
    """Add the subcommand ``attach``, which attaches a load to a running plant."""

    def run(arguments: argparse.Namespace) -> None:
        from longreach_node.remote import attach_load

        fields = {
            name: value
            for name in ('mass', 'beam', 'position')
            if (value := getattr(arguments, name, None)) is not None
        }
        print(attach_load(fields, arguments.namespace, arguments.timeout, spec.launch))

    text = f'attach {spec.loads} to a running {spec.name}'
    parser = _add_remote(spec, commands, 'attach', run, text)
    parser.add_argument('mass', metavar='MASS', type=positive, help='mass [kg]')
    if spec.load_places:
        parser.add_argument('--beam', metavar='NAME', default='', help='(default: the last)')
        parser.add_argument(
            '--position', type=not_negative, help='position along it [m] (default: its tip)'
        )


def _add_valves(spec: Spec, commands: Any) -> None:
    """Add the subcommand ``valves``, which commands the valves of a running plant."""

    def bounded(text: str) -> tuple[float, ...]:
        values = numbers(text)
        for value in values:
            if abs(value) > 1.0:
                raise argparse.ArgumentTypeError(f'{value:g}, allowed: [-1, 1]')
        return values

    def run(arguments: argparse.Namespace) -> None:
        from longreach_node.remote import command_valves

        given = (arguments.values, arguments.duration)
        where = command_valves(spec, *given, arguments.namespace, arguments.timeout)
        values = ', '.join(f'{value:g}' for value in arguments.values)
        print(f'valves at {values} for {arguments.duration:g} s over {where}, then closed')

    text = 'command the valves, when no other node commands them'
    parser = _add_remote(spec, commands, 'valves', run, text)
    parser.add_argument(
        'values',
        metavar='V1,V2,..',
        type=bounded,
        help='spool positions, -1 to 1, for all cylinders; positive extends the cylinder',
    )
    text = 'of real time, after which they are closed'
    parser.add_argument('--duration', default=1.0, help=text)


def _add_move(spec: Spec, commands: Any) -> None:
    """Add the subcommand ``move``, which sends a trajectory."""

    def run(arguments: argparse.Namespace) -> None:
        from longreach_node.remote import send_trajectory

        topic = send_trajectory(
            tuple(radians_of(arguments.angles, arguments.degrees, 'angles').tolist()),
            arguments.time,
            arguments.joints,
            arguments.namespace,
            arguments.timeout,
            spec.launch,
        )
        print(f'the controller accepted a trajectory of {arguments.time:g} s on {topic}')

    text = f'send a trajectory to the controller of a running {spec.name}'
    parser = _add_remote(spec, commands, 'move', run, text)
    parser.add_argument('angles', metavar='A1,A2,..', type=numbers, help='joint angles [rad]')
    add_common(parser, '--degrees', False)
    add, text = parser.add_argument, 'of the motion in simulation time'
    add('--duration', '--time', dest='time', required=True, help=text)
    text = f'{spec.moves} to move; the others hold their positions (default: all {spec.moves})'
    add('--joints', metavar='NAME,NAME,..', type=names, default=(), help=text)
