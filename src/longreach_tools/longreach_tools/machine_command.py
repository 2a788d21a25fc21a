"""
Common parts of the commands of machines.

Subcommands ``run``, ``sweep``, ``compare``, ``urdf`` and ``demo``, subcommands that call a running
plant node, and the output of a run. Figures, recordings and ROS are imported when they are used.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.runs import Run
from longreach_tools.arguments import allow_lists, names, numbers, positive
from longreach_tools.comparison import hand_out, report_comparison
from longreach_tools.demo import demonstrate
from longreach_tools.options import add_demo, add_results, add_whom
from longreach_tools.output import add_format, check_output, check_places
from longreach_tools.scenarios import find_scenario
from longreach_tools.sweeps import Measured, add_design, run_sweep

__all__ = ['MachineCommand', 'check_files', 'lazily']

Machine = TypeVar('Machine')
Scenario = TypeVar('Scenario')


# Begins the name of a parameter of the scenario.
_SCENARIO = 'scenario.'
_Job = tuple[str, Any, Any, argparse.Namespace]
# Arguments of a sweep that its runs do not depend on.
_OF_SWEEP = (
    'cluster', 'csv', 'format', 'plot', 'processes', 'ranges', 'results', 'run', 'samples', 'seed',
)  # fmt: skip


def _measure(job: _Job) -> Measured:
    """Run one job of a sweep: place of the MachineCommand, machine, scenario, arguments."""
    place, machine, scenario, arguments = job
    module, name = place.split(':')
    command: MachineCommand[Any, Any] = getattr(import_module(module), name)
    assert command.measure is not None
    nothing = (math.nan,) * len(command.swept)
    try:
        run = command.simulate(machine, scenario, arguments)
        numbers = tuple(map(float, command.measure(run))) if len(run.table) else nothing
        return Measured(numbers, run.message, tuple(run.warnings()) if len(run.table) else ())
    except LongreachError as error:
        return Measured(nothing, str(error))


def lazily(name: str) -> Callable[..., Any]:
    """Return a function that imports ``module:function`` at its first call and calls it."""
    module, function = name.split(':')
    return lambda *words: getattr(import_module(module), function)(*words)


def check_files(arguments: argparse.Namespace, *inputs: str | Path) -> None:
    """
    Refuse output files that cannot be written, or that are also input files.

    Parameters
    ----------
    arguments : Namespace
        Of any command: ``csv`` and ``plot`` are output files, other paths input files.
    *inputs : path
        Further input files.

    Raises
    ------
    InputError
        With the name of the file.
    """
    results = {name: getattr(arguments, name, None) for name in ('csv', 'plot')}
    check_output(**results)
    given = vars(arguments).items()
    read = [file for name, file in given if isinstance(file, Path) and name not in results]
    check_places({f'--{name}': file for name, file in results.items()}, [*read, *inputs])


@dataclasses.dataclass(frozen=True)
class MachineCommand(Generic[Machine, Scenario]):
    """
    The command of a machine.

    Attributes
    ----------
    name : str
        Name of the command and of the launch file, and default namespace.
    load : callable
        Takes the arguments; returns the machine.
    simulate : callable
        Takes machine, scenario and arguments; returns the run.
    draw_run : callable
        Takes file and run; draws the figure.
    read_run : callable
        Takes bag, namespace and machine; returns the recorded run.
    load_scenario : callable, optional
        Takes a file, the machine and the arguments; returns the scenario. Without it ``usual`` is
        the only scenario.
    default_file : callable, optional
        Returns the path of the machine's installed file.
    describe : callable, optional
        Takes machine and prefix; returns the URDF.
    add_file : callable, optional
        Adds ``--file`` to a parser.
    scenarios : str
        Prefix of the names of the machine's scenario files.
    usual : (str, callable), optional
        Name of the default scenario of ``compare``, and the function that returns it.
    title : callable, optional
        Takes the arguments; returns the JSON entries before the summary of a run.
    text : callable, optional
        Takes a run; returns its summary as text.
    swept : mapping
        Units of the results of a run in a sweep, by name.
    measure : callable, optional
        Takes a run with rows; returns the results of a sweep, NaN where it has none.
    """

    name: str
    load: Callable[[argparse.Namespace], Machine]
    simulate: Callable[[Machine, Scenario, argparse.Namespace], Run[Any]]
    draw_run: Callable[[Path, Run[Any]], None]
    read_run: Callable[[Path, str, Machine], Run[Any]]
    load_scenario: Callable[[Path, Machine, argparse.Namespace], Scenario] | None = None
    default_file: Callable[[], Path] | None = None
    describe: Callable[[Machine, str], str] | None = None
    add_file: Callable[[argparse.ArgumentParser], None] | None = None
    scenarios: str = ''
    usual: tuple[str, Callable[[], Scenario]] | None = None
    title: Callable[[argparse.Namespace], dict[str, str]] = lambda _: {}
    text: Callable[[Any], str] | None = None
    swept: Mapping[str, str] = dataclasses.field(default_factory=dict)
    measure: Callable[[Any], Sequence[float]] | None = None

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add ``run``, ``compare`` and the services of a plant: sufficient for a small machine."""
        commands = parser.add_subparsers(required=True, metavar='COMMAND')
        add_results(self.add_run(commands), 'a table of all rows', 'a picture')
        self.add_compare(commands, 'It may be a run of another machine file or scenario')
        self.add_services(commands)

    # --- runs --------------------------------------------------------------------------------

    def add_run(self, commands: Any) -> argparse.ArgumentParser:
        """Add the subcommand ``run`` with SCENARIO; the caller adds its options."""
        parser: argparse.ArgumentParser = commands.add_parser('run', help='run a scenario file')
        if self.load_scenario is not None:
            parser.add_argument('scenario', metavar='SCENARIO', type=Path, help='a file or a name')
        parser.set_defaults(run=self._run_scenario)
        return parser

    def _run_scenario(self, arguments: argparse.Namespace) -> int:
        """Run ``run``."""
        machine = self.load(arguments)
        return self.run(arguments, machine, self.scenario_of(arguments, machine))

    def run(self, arguments: argparse.Namespace, machine: Machine, scenario: Scenario) -> int:
        """Simulate a scenario, print and write the results, and return the exit code."""
        check_files(arguments)
        run = self.simulate(machine, scenario, arguments)
        text = None if self.text is None else self.text(run)
        return hand_out(arguments, self.name, run, self.draw_run, self.title(arguments), text)

    def scenario_of(self, arguments: argparse.Namespace, machine: Machine) -> Scenario:
        """Return the scenario of ``SCENARIO`` or ``--scenario``."""
        if self.load_scenario is None or arguments.scenario is None:
            assert self.usual is not None
            return self.usual[1]()
        file = find_scenario(arguments.scenario, self.scenarios, self.name)
        return self.load_scenario(file, machine, arguments)

    def add_sweep(
        self,
        commands: Any,
        place: str,
        example: str,
        scenario: str = '',
        scenario_of: Callable[[argparse.Namespace, Machine], Scenario] | None = None,
    ) -> argparse.ArgumentParser:
        """
        Add the subcommand ``sweep``; the caller adds the options of its runs.

        Parameters
        ----------
        commands : subparsers
            Of the machine's command.
        place : str
            Where processes find this command, such as ``longreach_boom.commands:BOOM``.
        example : str
            Of parameters.
        scenario : str
            Default scenario.
        scenario_of : callable, optional
            Returns the scenario of a machine when none is given.
        """
        parser: argparse.ArgumentParser = commands.add_parser(
            'sweep', help='many runs, over values of one or more parameters'
        )
        add_design(parser, example)
        parser.add_argument(
            '--scenario',
            metavar='SCENARIO',
            type=Path,
            default=Path(scenario) if scenario else None,
            help='a file or a name' + (f' (default: {scenario})' if scenario else ''),
        )
        parser.set_defaults(run=functools.partial(self._sweep, place, scenario_of))
        return parser

    def _sweep(
        self,
        place: str,
        scenario_of: Callable[[argparse.Namespace, Machine], Scenario] | None,
        arguments: argparse.Namespace,
    ) -> int:
        """Run ``sweep``."""
        check_files(arguments)
        check_places({f'--{n}': getattr(arguments, n) for n in ('csv', 'plot', 'results')})
        machine: Any = self.load(arguments)
        # What a run depends on: neither where its results go nor which other runs there are.
        options = {name: value for name, value in vars(arguments).items() if name not in _OF_SWEEP}
        chosen = argparse.Namespace(**options, progress=False, csv=None, plot=None)

        def jobs_of(values: Sequence[dict[str, float]]) -> list[_Job]:
            """Return the jobs; all values are checked before the first run."""
            jobs = []
            for changes in values:
                one = machine
                for name, value in changes.items():
                    if not name.startswith(_SCENARIO):
                        one = one.with_value(name, value)
                if scenario_of is None or arguments.scenario is not None:
                    scenario: Any = self.scenario_of(arguments, one)
                else:
                    scenario = scenario_of(arguments, one)
                for name, value in changes.items():
                    if name.startswith(_SCENARIO):
                        scenario = scenario.with_value(name.removeprefix(_SCENARIO), value)
                jobs.append((place, one, scenario, chosen))
            return jobs

        return run_sweep(self.name, arguments, self.swept, _measure, jobs_of)

    # --- recordings --------------------------------------------------------------------------

    def add_compare(
        self, commands: Any, advice: str, step: float | None = None, what: str = 'sample'
    ) -> argparse.ArgumentParser:
        """
        Add the subcommand ``compare`` with BAG, ``--scenario``, ``--namespace`` and results.

        Parameters
        ----------
        commands : subparsers
            Of the machine's command.
        advice : str
            Printed when the runs differ: which options to give, and which runs always differ.
        step : float, optional
            Adds ``--step`` with this default, the step of the plant [s], which is not recorded.
            The sample time is that of the recording.
        what : str
            Term for a row.

        Returns
        -------
        ArgumentParser
            For further options. If ``--plot`` is added, the recorded run is drawn and its summary
            printed.
        """
        parser: argparse.ArgumentParser = commands.add_parser(
            'compare', help='compare a recorded run with the library'
        )
        parser.add_argument('bag', metavar='BAG', type=Path)
        if self.load_scenario is not None:
            usual = f' (default: {self.usual[0]})' if self.usual else ''
            parser.add_argument(
                '--scenario',
                metavar='SCENARIO.yaml',
                type=Path,
                required=self.usual is None,
                help=f'scenario of the recorded run{usual}',
            )
        parser.add_argument(
            '--namespace', default=self.name, help='namespace of the recorded topics'
        )
        if step is not None:
            parser.add_argument(
                '--step',
                type=positive,
                default=step,
                help=f'step of the plant [s] (default: {step:g})',
            )
        add_format(parser)
        parser.add_argument(
            '--csv', metavar='FILE', type=Path, help='write the recorded run, row by row'
        )
        parser.set_defaults(run=functools.partial(self._compare, advice, what))
        return parser

    def _compare(self, advice: str, what: str, arguments: argparse.Namespace) -> int:
        """Run ``compare``."""
        check_files(arguments)
        machine = self.load(arguments)
        scenario = self.scenario_of(arguments, machine)
        recorded = self.read_run(arguments.bag, arguments.namespace, machine)
        if 'step' in arguments:
            arguments.sample_time = recorded.sample_time(arguments.step)
        expected = self.simulate(machine, scenario, arguments)
        draw, text = None, ''
        if 'plot' in arguments:
            draw, text = self.draw_run, self.text(recorded) if self.text else ''
        return report_comparison(
            arguments, self.name, recorded, expected, advice, draw, text, what
        )

    # --- description, demonstration ----------------------------------------------------------

    def add_urdf(self, commands: Any) -> None:
        """Add the subcommand ``urdf``."""
        article = 'an' if self.name[0] in 'aeiou' else 'a'
        parser = commands.add_parser(
            'urdf', help=f'print the robot description of {article} {self.name}'
        )
        assert self.add_file is not None
        self.add_file(parser)
        parser.add_argument(
            '--prefix', default='', help='prefix of the frame names, such as north/'
        )
        parser.set_defaults(run=self._print_urdf)

    def _print_urdf(self, arguments: argparse.Namespace) -> None:
        """Run ``urdf``."""
        assert self.describe is not None
        print(self.describe(self.load(arguments), arguments.prefix), end='')

    def add_demo(
        self,
        commands: Any,
        text: str,
        scenario: str,
        launch: Sequence[str],
        advice: str,
        calls: Sequence[Sequence[str]] = (
            ('compare', '{bag}', '--scenario', '{scenario}'),
            ('run', '{scenario}', '--plot', '{picture}'),
        ),
    ) -> None:
        """
        Add the subcommand ``demo``: a recorded launch, then other commands.

        The parameters are those of :func:`longreach_tools.demo.demonstrate`; ``text`` is the help
        text, ``calls`` are subcommands of this command.
        """

        def run(arguments: argparse.Namespace) -> int:
            return demonstrate(
                arguments.out,
                scenario,
                (self.name, f'scenario:={scenario}', *launch),
                [(self.name, *words) for words in calls],
                advice,
                file=self.default_file() if self.default_file else Path(),
                scenario=find_scenario(Path(scenario), self.scenarios, self.name),
            )

        add_demo(commands, text, run)

    # --- plants that run as nodes ------------------------------------------------------------

    def add_services(self, commands: Any, own: Mapping[str, str] | None = None) -> None:
        """
        Add subcommands that call services without arguments of a running plant node.

        Parameters
        ----------
        commands : subparsers
            Of the machine's command.
        own : mapping, optional
            Names and help texts for services of this machine only; ``release-load`` calls
            ``release_load``.
        """
        services = {
            **(own or {}),
            'pause': f'pause the simulation of a running {self.name}',
            'resume': 'resume it',
            'step': 'advance a paused simulation by one sample',
            'reset': 'reset it to the initial state at time 0',
        }
        for name, text in services.items():
            parser = commands.add_parser(name, help=text)
            add_whom(parser, self.name)
            parser.set_defaults(run=self._call_plant, service=name.replace('-', '_'))

    def add_attach(self, commands: Any, text: str) -> argparse.ArgumentParser:
        """Add the subcommand ``attach``, which attaches a load to a running plant; return it."""

        def run(arguments: argparse.Namespace) -> None:
            from longreach_node.remote import attach_load

            fields = {
                name: value
                for name in ('mass', 'beam', 'position')
                if (value := getattr(arguments, name, None)) is not None
            }
            start = f'longreach launch {self.name}'
            print(attach_load(fields, arguments.namespace, arguments.timeout, start))

        attach = commands.add_parser('attach', help=text)
        attach.add_argument('mass', metavar='MASS', type=positive, help='mass [kg]')
        add_whom(attach, self.name)
        attach.set_defaults(run=run)
        parser: argparse.ArgumentParser = attach
        return parser

    def _call_plant(self, arguments: argparse.Namespace) -> None:
        """Run a subcommand that calls a service of the plant."""
        from longreach_node.remote import call_plant

        start = f'longreach launch {self.name}'
        print(call_plant(arguments.service, arguments.namespace, arguments.timeout, start))

    def add_valves(self, commands: Any, topic: str, others: str, stands_still: str) -> None:
        """
        Add the subcommand ``valves``, which commands the valves of a running plant node.

        The parameters are those of :func:`longreach_node.remote_valves.command_valves`.
        """

        def bounded(text: str) -> tuple[float, ...]:
            values = numbers(text)
            for value in values:
                if abs(value) > 1.0:
                    raise argparse.ArgumentTypeError(f'{value:g}, allowed: [-1, 1]')
            return values

        def run(arguments: argparse.Namespace) -> None:
            from longreach_node.remote_valves import command_valves

            where = command_valves(
                arguments.values,
                arguments.duration,
                arguments.namespace,
                arguments.timeout,
                topic=topic,
                machine=self.name,
                others=others,
                stands_still=stands_still,
            )
            told = ', '.join(f'{value:g}' for value in arguments.values)
            print(f'valves at {told} for {arguments.duration:g} s over {where}, then closed')

        parser = commands.add_parser(
            'valves', help='command the valves, when no other node commands them'
        )
        allow_lists(parser)
        parser.add_argument(
            'values',
            metavar='V1,V2,..',
            type=bounded,
            help='spool positions, -1 to 1, for all cylinders; positive extends the cylinder',
        )
        parser.add_argument(
            '--duration',
            type=positive,
            default=1.0,
            help='real time after which they are closed [s] (default: 1)',
        )
        add_whom(parser, self.name)
        parser.set_defaults(run=run)

    def add_move(self, commands: Any, joints: str) -> None:
        """Add the subcommand ``move``; ``joints`` is the term for joints in its help."""
        parser = commands.add_parser(
            'move', help=f'send a trajectory to the controller of a running {self.name}'
        )
        allow_lists(parser)
        parser.add_argument('angles', metavar='A1,A2,..', type=numbers, help='joint angles [rad]')
        parser.add_argument('--degrees', action='store_true', help='angles are in degrees')
        parser.add_argument(
            '--time', type=positive, required=True, help='duration [s of simulation time]'
        )
        parser.add_argument(
            '--joints',
            metavar='NAME,NAME,..',
            type=names,
            default=(),
            help=f'{joints} to move; the others hold their positions (default: all {joints})',
        )
        add_whom(parser, self.name)
        parser.set_defaults(run=self._move)

    def _move(self, arguments: argparse.Namespace) -> None:
        """Run ``move``."""
        from longreach_node.remote_trajectory import send_trajectory

        angles = arguments.angles
        if arguments.degrees:
            angles = tuple(math.radians(angle) for angle in angles)
        elif max(map(abs, angles)) > 2.0 * math.pi:
            raise InputError(
                f'angles up to {max(angles, key=abs):g} rad, allowed: [-2 pi, 2 pi]; add --degrees'
                ' for angles in degrees'
            )
        topic = send_trajectory(
            angles,
            arguments.time,
            arguments.joints,
            arguments.namespace,
            arguments.timeout,
            f'longreach launch {self.name}',
        )
        print(f'the controller accepted a trajectory of {arguments.time:g} s on {topic}')
