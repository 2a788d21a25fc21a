"""
Common parts of the commands of machines.

Subcommands ``run``, ``compare``, ``urdf`` and ``demo``, those that call a plant that runs as a
node, and what becomes of a run. Figures, recordings and ROS are imported when they are used.
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

from longreach_dynamics.errors import InputError
from longreach_dynamics.runs import Run
from longreach_tools.arguments import allow_lists, names, numbers, positive
from longreach_tools.comparison import hand_out, report_comparison
from longreach_tools.demo import demonstrate
from longreach_tools.options import add_demo, add_results, add_whom
from longreach_tools.output import add_format, check_output, check_places
from longreach_tools.scenarios import find_scenario

__all__ = ['MachineCommand', 'check_files', 'lazily']

Machine = TypeVar('Machine')
Scenario = TypeVar('Scenario')


def lazily(name: str) -> Callable[..., Any]:
    """Return a function that imports ``module:function`` when it is called, and calls that."""
    module, function = name.split(':')
    return lambda *words: getattr(import_module(module), function)(*words)


def check_files(arguments: argparse.Namespace, *inputs: str | Path) -> None:
    """
    Refuse results that cannot be written, or would take the place of what is read.

    Parameters
    ----------
    arguments : Namespace
        Of any command: ``csv`` and ``plot`` are written, other paths are read.
    *inputs : path
        What is read besides.

    Raises
    ------
    InputError
        With the file.
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
        Of the command and the launch file, and the usual namespace.
    load : callable
        Takes the arguments; returns the machine.
    simulate : callable
        Takes machine, scenario and arguments; returns the run.
    draw_run : callable
        Takes file and run.
    read_run : callable
        Takes bag, namespace and machine; returns the recorded run.
    load_scenario : callable, optional
        Takes a file, the machine and the arguments. Without it ``usual`` is the only scenario.
    default_file : callable, optional
        Returns the machine's installed file.
    describe : callable, optional
        Takes machine and prefix; returns the URDF.
    add_file : callable, optional
        Adds ``--file`` to a parser.
    scenarios : str
        Prefix of the names of its scenario files.
    usual : (str, callable), optional
        Name of the scenario that ``compare`` takes without ``--scenario``, and what returns it.
    title : callable, optional
        Takes the arguments; returns what JSON holds before the summary of a run.
    text : callable, optional
        Takes a run; returns its summary for people.
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

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add ``run``, ``compare`` and the services of a plant: enough for a small machine."""
        commands = parser.add_subparsers(required=True, metavar='COMMAND')
        add_results(self.add_run(commands), 'a table of all rows', 'a picture')
        self.add_compare(commands, 'It may be of another machine file or scenario')
        self.add_services(commands)

    # --- runs --------------------------------------------------------------------------------

    def add_run(self, commands: Any) -> argparse.ArgumentParser:
        """Add the subcommand ``run`` with SCENARIO; options and results are the machine's."""
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
            What to name when a recording is another run, and what differs in any case.
        step : float, optional
            Adds ``--step``, what the plant's step was by default [s], which no recording holds.
            The sample time is that of the recording.
        what : str
            What a row is called.

        Returns
        -------
        ArgumentParser
            For options of the machine's own. With a ``--plot`` the recorded run is drawn, and
            summarised for people.
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
                help=f'scenario that was run{usual}',
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
            '--csv', metavar='FILE', type=Path, help='the recorded run, row by row'
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
            '--prefix', default='', help='before the names of frames, as in north/'
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
        Add the subcommand ``demo``: the launch file as a user would call it, then other commands.

        Parameters are those of :func:`longreach_tools.demo.demonstrate`; ``text`` is the help,
        ``calls`` are subcommands of this one.
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
        Add subcommands that call services without arguments of a plant that runs as a node.

        Parameters
        ----------
        commands : subparsers
            Of the machine's command.
        own : mapping, optional
            Subcommands and their help for services that only this machine has; ``release-load``
            calls ``release_load``.
        """
        services = {
            **(own or {}),
            'pause': f'pause the simulation of a running {self.name}',
            'resume': 'resume it',
            'step': 'advance by one sample, while paused',
            'reset': 'go back to the initial state at time 0',
        }
        for name, text in services.items():
            parser = commands.add_parser(name, help=text)
            add_whom(parser, self.name)
            parser.set_defaults(run=self._call_plant, service=name.replace('-', '_'))

    def _call_plant(self, arguments: argparse.Namespace) -> None:
        """Run a command that is a service of the plant."""
        from longreach_node.remote import call_plant

        start = f'longreach launch {self.name}'
        print(call_plant(arguments.service, arguments.namespace, arguments.timeout, start))

    def add_valves(self, commands: Any, topic: str, others: str, stands_still: str) -> None:
        """
        Add the subcommand ``valves``, which commands those of a plant that runs as a node.

        Parameters are those of :func:`longreach_node.remote_valves.command_valves`.
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

        parser = commands.add_parser('valves', help='move the valves while nobody else does')
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
            help='in real time, then closed [s] (default: 1)',
        )
        add_whom(parser, self.name)
        parser.set_defaults(run=run)

    def add_move(self, commands: Any, joints: str) -> None:
        """Add the subcommand ``move``, for the controller; ``joints`` is what the help says."""
        parser = commands.add_parser(
            'move', help=f'let the controller of a running {self.name} move joints'
        )
        allow_lists(parser)
        parser.add_argument('angles', metavar='A1,A2,..', type=numbers, help='joint angles [rad]')
        parser.add_argument('--degrees', action='store_true', help='angles are in degrees')
        parser.add_argument(
            '--time', type=positive, required=True, help='until they are there [s of simulation]'
        )
        parser.add_argument(
            '--joints',
            metavar='NAME,NAME,..',
            type=names,
            default=(),
            help=f'{joints} that the angles are for; the others stay (default: all {joints})',
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
                f'angles up to {max(angles, key=abs):g} rad, allowed: up to a turn; if they are'
                ' deg, add --degrees'
            )
        topic = send_trajectory(
            angles,
            arguments.time,
            arguments.joints,
            arguments.namespace,
            arguments.timeout,
            f'longreach launch {self.name}',
        )
        print(f'the controller has taken the trajectory of {arguments.time:g} s from {topic}')
