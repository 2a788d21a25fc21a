"""
What a machine declares.

A package makes one object of a class derived from :class:`MachineSpec`, and registers it as an
entry point of the group ``longreach.machines``. The command ``longreach NAME`` with its verbs, the
figures of runs and recordings, the demonstration and the compilation of kernels follow from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load
from longreach_dynamics.resources import data_directory, share_directory
from longreach_dynamics.runs import Column, Columns, Run
from longreach_machine.panels import Lane, Panel

P = TypeVar('P')
S = TypeVar('S')
O = TypeVar('O', bound=Parameters)  # noqa: E741


@dataclasses.dataclass(frozen=True)
class Services:
    """
    What a running plant and its controller take from the command line.

    Parameters
    ----------
    own : mapping
        Services without arguments of this machine only, with help texts.
    attach : str
        Help text of the subcommand ``attach``; empty: no load can be attached.
    attach_places : bool
        Whether a load hangs on a named beam, at a position.
    move : str
        Term for the joints that a trajectory moves; empty: there is no trajectory controller.
    valves : str
        Topic of valve commands; empty: none.
    hands_off : str
        How to start the machine without other senders of valve commands.
    """

    own: Mapping[str, str] = dataclasses.field(default_factory=dict)
    attach: str = ''
    attach_places: bool = False
    move: str = ''
    valves: str = ''
    hands_off: str = ''


class MachineSpec(Generic[P, S, O]):
    """
    Base of declarations: parameters P, scenarios S, options of a run O.

    Attributes
    ----------
    name : str
        Of the command, the launch file, the default namespace and the installed scenarios.
    summary : str
        One line for ``longreach --help``.
    package : str
        That installs ``config/FILE``.
    file : str
        Its name; empty: parameters are not read.
    parameters, scenarios : type
        Of the contents of parameter and scenario files.
    run : type
        Of runs.
    studies : str
        Module with a function ``add_studies(commands)``, which adds the machine's own subcommands;
        empty: none.
    file_help : str
        Help text of ``--file``.
    options : type
        Choices of a run beside parameters and scenario; each field is an option of ``run``,
        ``sweep`` and ``compare``.
    of_recording : tuple of str
        Options that a recording determines, which ``compare`` does not have.
    scenario_prefix : str
        Of the installed scenario files; by default the name and an underscore.
    scenario : str
        Default scenario.
    rows : str
        Term for a row.
    panels, lanes : sequence
        The figure of a run or a recording.
    figures : str
        Module with a function ``draw_run(file, run)`` that draws more of a run than the panels;
        empty: none.
    recorded_columns : sequence of Column
        Further columns of the figures of recordings.
    figure : str
        What the figure of a run shows, for the help.
    results : mapping
        Units of what :meth:`measure` returns, by name.
    swept : str
        Example of a parameter for the help of ``sweep``.
    differs : str
        Why a recording may differ from the library's run.
    demo : sequence of str
        Arguments of the launch of ``demo``; empty: there is no demonstration.
    demo_help, demo_next : str
        Its help, and what to try next, see :func:`longreach_tools.demo.demonstrate`.
    optional_topics : sequence of str
        Topics of columns that a recording may lack.
    services : Services
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    package: ClassVar[str]
    file: ClassVar[str] = ''
    parameters: ClassVar[type[Parameters]] = Parameters
    scenarios: ClassVar[type[Parameters]] = Parameters
    run: ClassVar[type[Run[Any]]] = Run
    studies: ClassVar[str] = ''
    file_help: ClassVar[str] = ''
    options: ClassVar[type[Parameters]] = Parameters
    of_recording: ClassVar[tuple[str, ...]] = ('sample_time',)
    scenario_prefix: ClassVar[str] = ''
    scenario: ClassVar[str] = ''
    rows: ClassVar[str] = 'sample'
    panels: ClassVar[Sequence[Panel]] = ()
    lanes: ClassVar[Sequence[Lane]] = ()
    figures: ClassVar[str] = ''
    recorded_columns: ClassVar[Sequence[Column]] = ()
    figure: ClassVar[str] = 'a picture'
    results: ClassVar[Mapping[str, str]] = {}
    swept: ClassVar[str] = ''
    differs: ClassVar[str] = ''
    demo: ClassVar[Sequence[str]] = ()
    demo_help: ClassVar[str] = ''
    demo_next: ClassVar[str] = ''
    optional_topics: ClassVar[Sequence[str]] = ()
    services: ClassVar[Services] = Services()

    # --- what a machine provides -------------------------------------------------------------

    def simulate(self, parameters: P, scenario: S, options: O) -> Run[Any]:
        """Return the run of a scenario."""
        raise NotImplementedError

    def columns(self, parameters: P) -> Columns:
        """Return the columns of a run, of which recordings have those with a source."""
        raise NotImplementedError

    # --- what it may provide -----------------------------------------------------------------

    def load(self, file: str | Path | None, options: O) -> P:
        """Return the parameters of a file, by default of the installed one."""
        return cast('P', load(self.parameters, file or self.default_file()))

    def load_scenario(self, file: str | Path, parameters: P, options: O) -> S:
        """Return the scenario of a file."""
        return cast('S', load(self.scenarios, file))

    def check(self, scenario: S, options: O) -> None:
        """Raise InputError for options with which a run would give no valid result."""

    def describe(self, parameters: P, prefix: str) -> str:
        """Return the URDF, its frame names with a prefix; empty: there is none."""
        return ''

    def measure(self, run: Run[Any]) -> Sequence[float]:
        """Return the :attr:`results` of a run with rows; NaN where it has none."""
        summary = run.summary()
        return [summary[name] for name in self.results]

    # --- what follows ------------------------------------------------------------------------

    def default_file(self) -> Path:
        """Return the path of the installed parameter file."""
        return data_directory(self.package) / 'config' / self.file

    def recorded_run(self, parameters: P, columns: Columns, table: Any) -> Run[Any]:
        """Return a recorded run of its columns and rows."""
        return self.run(parameters, columns, table)

    def find_scenario(self, given: str | Path) -> Path:
        """
        Return the file of a scenario.

        Parameters
        ----------
        given : path
            A file, or the name of an installed scenario: ``wave`` is ``boom_wave.yaml`` of the
            boom.

        Raises
        ------
        InputError
            When a name without a suffix is neither a file nor installed; lists installed ones.
        """
        given = Path(given)
        if given.exists() or given.suffix or given.parent != Path():
            return given
        directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
        beginning = self.scenario_prefix or f'{self.name}_'
        installed = {
            file.stem.removeprefix(f'{self.name}_'): file
            for file in sorted(directory.glob(f'{beginning}*.yaml'))
        }
        name = given.name.removeprefix(f'{self.name}_')
        if name not in installed:
            raise InputError(
                f'scenario {given} is unknown, allowed: {", ".join(installed)}, or a file such as'
                ' my.yaml'
            )
        return installed[name]
