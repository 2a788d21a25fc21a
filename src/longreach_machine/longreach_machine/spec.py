"""
What a machine declares.

A package makes one object of a class derived from :class:`MachineSpec`, and registers it as an
entry point of the group ``longreach.machines``. The command ``longreach NAME`` with its verbs, the
figures of runs and recordings, the demonstration, plant, controller and operator nodes follow.

Units are SI and radians, in parameters, scenarios, columns and results; a name that ends in
``_deg`` is in degrees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load
from longreach_dynamics.resources import data_directory, share_directory
from longreach_machine.linear import Signal, SmoothModel
from longreach_machine.machine import BY_SCENARIO, check_instant
from longreach_machine.panels import Lane, Panel
from longreach_machine.runs import Columns, Run, sampled

MACHINE_GROUP = 'longreach.machines'
"""Group of the entry points of machines."""

P = TypeVar('P')
S = TypeVar('S')
O = TypeVar('O', bound=Parameters)  # noqa: E741

_NEXT = """
The bag is in {bag}, the picture in {picture}. What to try next, after . install/setup.bash:
MORE  cp {file} my_NAME.yaml
                                                   change a number in it, then:
  longreach NAME run SCENARIO --file my_NAME.yaml --plot out/mine.png"""


class MachineSpec(Generic[P, S, O]):
    """
    Base of declarations: parameters P, scenarios S, options of a run O.

    Each field of the options is an option of ``run``, ``sweep`` and ``compare``.
    """

    name: ClassVar[str]  # of command, launch file, default namespace, installed scenarios
    summary: ClassVar[str]  # one line for ``longreach --help``
    file: ClassVar[str] = ''  # parameters in ``config`` of the package; empty: none are read
    parameters: ClassVar[type[Parameters]] = Parameters  # type of parameter files
    scenarios: ClassVar[type[Parameters]] = Parameters  # type of scenario files
    run: ClassVar[type[Run[Any]]] = Run
    series: ClassVar[Columns] = Columns()  # its columns, where they do not depend on parameters
    options: ClassVar[type[Parameters]] = Parameters  # choices beside parameters and scenario
    # Options that a recording determines, which ``compare`` does not have.
    of_recording: ClassVar[tuple[str, ...]] = ('sample_time',)
    scenario: ClassVar[str] = ''  # the default; empty: there is only one, which is not read
    scenario_prefix: ClassVar[str] = ''  # of installed files; by default name and underscore
    root_frame: ClassVar[str] = 'world'  # root of the URDF, the frame of messages
    studies: ClassVar[str] = ''  # module with add_studies(commands), own subcommands
    rows: ClassVar[str] = 'sample'  # term for a row
    panels: ClassVar[Sequence[Panel]] = ()  # the figure of a run or a recording
    lanes: ClassVar[Sequence[Lane]] = ()
    # What drawings of a plant mean: a text, or the ends of a scale and its colours between them.
    legend: ClassVar[Sequence[Sequence[str]]] = ()
    figures: ClassVar[str] = ''  # module with draw_above(axis, run), axes above the panels
    commands: ClassVar[type[Any]] = tuple  # of spool positions
    measures: ClassVar[Sequence[str]] = ()  # families of columns that a controller gets
    optional_topics: ClassVar[Sequence[str]] = ()  # of columns that a recording may lack
    results: ClassVar[Mapping[str, str]] = {}  # units of what :meth:`measure` returns, by name
    swept: ClassVar[str] = 'mass'  # example of a parameter
    demo: ClassVar[Sequence[str]] = ()  # arguments of the launch of ``demo``; empty: none
    demo_next: ClassVar[Sequence[str]] = ()  # command lines to try after it
    # Services of the plant without arguments of this machine only, with help texts.
    services: ClassVar[Mapping[str, str]] = {}
    loads: ClassVar[str] = ''  # what ``attach`` attaches, such as ``a log``; empty: nothing
    load_places: ClassVar[bool] = False  # whether a load hangs on a named beam, at a position
    moves: ClassVar[str] = ''  # term for joints that a trajectory moves; empty: no controller
    valves: ClassVar[str] = ''  # topic of valve commands; empty: none
    by_hand: ClassVar[str] = 'controller:=false'  # launch argument: nobody else sends commands

    # --- what a machine provides -------------------------------------------------------------

    def machine(self, parameters: P, scenario: S, options: Any) -> Any:
        """Return the simulated machine, with the options of a run or the settings of a plant."""
        raise NotImplementedError

    # --- what it may provide -----------------------------------------------------------------

    def simulate(self, parameters: P, scenario: S, options: O) -> Run[Any]:
        """Return the run of a scenario, by default with the columns that samples show."""
        machine = self.machine(parameters, scenario, options)
        columns = self.columns(parameters)
        table, message = sampled(machine, columns, cast('Any', scenario).duration)
        return self.run(parameters, columns, table, message=message)

    def columns(self, parameters: P, /) -> Columns:
        """Return the columns of a run, of which recordings have those with a source."""
        return self.series

    def run_columns(self, parameters: P, options: Any) -> Columns:
        """Return the columns of a run with options, where they depend on these."""
        return self.columns(parameters)

    def load(self, file: str | Path | None, options: Any) -> P:
        """Return the parameters of a file, by default of the installed one."""
        return cast('P', load(self.parameters, file or self.default_file()))

    def load_scenario(self, file: str | Path, parameters: P, options: Any) -> S:
        """Return the scenario of a file."""
        return cast('S', load(self.scenarios, file)) if self.scenario else self.rest(parameters)

    def command(self, spools: Sequence[float]) -> Any:
        """Return the command of spool positions, in the order of :meth:`actuators`."""
        return self.commands(tuple(spools))

    def with_scenario(self, parameters: P, scenario: S) -> P:
        """Return the parameters with those values that a scenario sets in their place."""
        return parameters

    def rest(self, parameters: P, /) -> S:
        """Return the scenario of a node without a file: the machine rests."""
        return cast('S', self.scenarios())

    def check(self, scenario: S, options: O) -> None:
        """Raise InputError for options with which a run would give no valid result."""

    def describe(self, parameters: P, prefix: str, /) -> str:
        """Return the URDF, its frame names with a prefix; empty: there is none."""
        return ''

    def smooth(
        self, parameters: P, scenario: S, options: O, time: float, free: bool
    ) -> SmoothModel:
        """
        Return the equations at a time [s] of the scenario's run, see :mod:`.linear`.

        With ``free`` as if what sticks slides, and closed valves were at the edge of opening.
        """
        machine = self.machine(parameters, scenario, options)
        check_instant(time, cast('Any', scenario).duration, machine.step)
        state = machine.advance(machine.initial_state(), BY_SCENARIO, 0.0, time)
        return self.smooth_at(machine, state, time, free)

    def smooth_at(self, machine: Any, state: Any, time: float, free: bool) -> SmoothModel:
        """Return the equations near the state of a run at a time [s], for :meth:`smooth`."""
        raise NotImplementedError

    def cosimulation(
        self, parameters: P, scenario: S, options: O
    ) -> tuple[Any, Sequence[Signal], Callable[[Sequence[float]], Any]]:
        """
        Return the machine with its step, its inputs, and the command of their values.

        For an FMU, see :mod:`.cosimulation`.
        """
        inputs = [Signal(f'spool_{name}', '1') for name in self.actuators(parameters)]
        return self.machine(parameters, scenario, options), inputs, self.command

    def measure(self, run: Run[Any]) -> Sequence[float]:
        """Return the :attr:`results` of a run with rows; NaN where it has none."""
        summary = run.summary()
        return [summary[name] for name in self.results]

    # --- what follows ------------------------------------------------------------------------

    @property
    def launch(self) -> str:
        """The command that starts the nodes."""
        return f'longreach launch {self.name}'

    @property
    def other_senders(self) -> str:
        """The error when others command the valves, after who does, ``{topic}`` for the topic."""
        move = f', or its joints with longreach {self.name} move' if self.moves else ''
        start = f'start the {self.name} with {self.launch} {self.by_hand} to move them by hand'
        return f'commands the valves on {{topic}}, too; {start}{move}'

    @property
    def stands_still(self) -> str:
        """What to do when simulation time has stopped."""
        return (
            f'if it is paused, longreach {self.name} resume lets it go on; in lockstep it waits'
            ' for its controller, and nobody else can command the valves'
        )

    def warm_up(self) -> None:
        """Compile the kernels of the installed machine, or load them from the cache."""
        options: Any = self.options()
        parameters = self.load(None, options)
        self.simulate(parameters, self.rest(parameters), options)

    def actuators(self, parameters: P) -> list[str]:
        """Return the names in messages about oil, and in commands to valves."""
        sources = [source for column in self.columns(parameters) for source in column.sources]
        return list(dict.fromkeys(one.name for one in sources if one.topic == 'hydraulics'))

    def default_file(self) -> Path:
        """Return the path of the installed parameter file, of the package of ``parameters``."""
        package = self.parameters.__module__.partition('.')[0]
        return data_directory(package) / 'config' / self.file

    def recorded_run(self, parameters: P, columns: Columns, table: Any) -> Run[Any]:
        """Return a recorded run of its columns and rows."""
        return self.run(parameters, columns, table)

    def figure(self) -> str:
        """Return what the figure of a run shows, for the help."""
        return f'{", ".join(panel.label for panel in self.panels)} over time'.replace('\n', ' ')

    def next_steps(self) -> str:
        """Return what to try after a demonstration, with its places in braces."""
        more = ''.join(f'  {line}\n' for line in self.demo_next)
        text = _NEXT.replace('MORE', more).replace('SCENARIO', self.scenario)
        return text.replace('NAME', self.name)

    def find_scenario(self, given: str | Path) -> Path:
        """
        Return a file, or the installed one of a name: ``wave`` is ``boom_wave.yaml`` of the boom.

        InputError, which lists the installed ones, for a name without a suffix that is neither.
        """
        given = Path(given)
        if given.is_file() or given.suffix or given.parent != Path():
            return given
        directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
        installed = _installed(directory, self.name, self.scenario_prefix or f'{self.name}_')
        name = given.name.removeprefix(f'{self.name}_')
        if name not in installed:
            raise InputError(
                f'scenario {given} is unknown, allowed: {", ".join(installed)}, or a file such as'
                ' my.yaml'
            )
        return installed[name]


@functools.cache
def _installed(directory: Path, machine: str, beginning: str) -> dict[str, Path]:
    """Return the scenario files of a machine by name; a sweep asks for them for each run."""
    files = sorted(directory.glob(f'{beginning}*.yaml'))
    return {file.stem.removeprefix(f'{machine}_'): file for file in files}
