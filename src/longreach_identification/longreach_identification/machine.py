"""What a machine offers to identification, by the entry point ``longreach.identification``."""

# ruff: noqa: ARG002

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError, check_among, check_has
from longreach_dynamics.hydraulics.parameters import check_pressed
from longreach_machine.runs import Columns, Run, Source

if TYPE_CHECKING:
    from longreach_identification.statics import StaticMachine

# Standard deviation of the joint angles that one sample shows [rad].
_POSE = 5e-3
# By which errors of sensors may let absolute pressures be below 0 [Pa].
BELOW = 2e5
# Largest magnitudes by unit, which other units exceed, such as percent of a spool.
_LARGEST = {'1': 1.05, 'rad': 4.0 * math.pi, 'm': 100.0, 'Pa': 1e8, 'N': 1e8}
# Part by which a run is longer for stamps that are early [s].
_EARLY = 0.1


class FreeParameter(NamedTuple):
    """
    A parameter that can be identified.

    ``deviation`` is the standard deviation of what is known before, about the value of the start
    file; of a ``logarithmic`` parameter, which is estimated as its logarithm, that of the
    logarithm: log(3) for a factor of three.
    """

    name: str  # such as mass_scale_2
    group: str  # such as masses
    unit: str
    lowest: float  # bounds of the search
    highest: float
    meaning: str = ''
    deviation: float = math.inf  # inf: nothing is known
    logarithmic: bool = False


class Signal(NamedTuple):
    """A measured quantity over time."""

    times: np.ndarray  # (rows,) [s], increasing
    values: np.ndarray  # (rows,)
    deviation: np.ndarray  # (rows,) standard deviation of the noise; NaN: unknown


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name fits one of some patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def longest_jump(signals: Sequence[Signal], least: float = 0.0, start: float = -math.inf) -> float:
    """Return the longest interval of rows after a start [s] in which one changes by more."""
    longest = 0.0
    for times, values, _ in signals:
        jumps = (np.abs(np.diff(values)) > least) & (times[1:] > start)
        longest = max(longest, float(np.diff(times)[jumps].max(initial=0.0)))
    return longest


def interpolated(
    times: Mapping[str, np.ndarray], rows: np.ndarray, columns: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return columns over ``rows`` [s] at other times; InputError for one that is not there."""
    for name in times:
        check_among('signal', name, columns)
    return {name: np.interp(at, rows, columns[name]) for name, at in times.items()}


def prolonged(duration: float, start: float, times: Mapping[str, np.ndarray]) -> float:
    """Return the duration [s] of a run from ``start`` on, longer for what is asked beyond it."""
    # Early stamps are of what was measured after the recording's last one.
    beyond = max((float(at.max(initial=0.0)) for at in times.values()), default=0.0)
    parts = math.ceil((beyond - start - duration) / _EARLY - 1e-6)
    return round(duration + parts * _EARLY, 6) if parts > 0 else duration


class MeasuredSignal(NamedTuple):
    """
    A signal that a recording of a machine may contain, and where.

    ``sources`` are alternatives: the first whose topic is recorded is used. In messages with a
    list of named entries that are messages themselves, the field is ``LIST.FIELD``. ``limits`` are
    those of its values, ``least`` is what the largest one exceeds in each recording: otherwise its
    unit or sign is wrong.
    """

    name: str  # such as p_head_1
    unit: str  # SI
    sources: tuple[Source, ...]
    deviation: str = ''  # field with the variance of its noise, such as LIST.covariance[0]
    limits: tuple[float, float] = (-math.inf, math.inf)
    least: float = -math.inf


class Recording(NamedTuple):
    """What was measured in one experiment."""

    name: str  # of its file
    signals: Mapping[str, Signal]
    events: tuple[tuple[float, str], ...] = ()  # time [s] and what happened, such as release
    # Known, such as payload [kg]; no read-only view, which could not be sent to processes.
    conditions: Mapping[str, float] = {}


class Identifiable(ABC):
    """
    One machine: its page of the identification.

    In all methods, ``machine`` is the machine's frozen parameter object.
    """

    name: str
    free: tuple[FreeParameter, ...]  # all parameters that can be free
    places: Mapping[str, str]  # where the machine's parameters have them, such as bucket.mass
    compared: tuple[str, ...] = ('*',)  # patterns of signals that are predicted; others are inputs
    usual_groups: tuple[str, ...] = ()  # of the parameters found by default; empty: all
    # Parameter whose start is chosen from multiples of its value, such as one that decides
    # frequencies, which are 2.5 % apart here; empty: none.
    scanned: str = ''
    scan: np.ndarray = np.geomspace(0.5, 2.0, 29)
    # Patterns of signals by kind; empty: each signal is a kind of its own.
    signal_kinds: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    @abstractmethod
    def load(self, file: str | None) -> Any:
        """Return the parameters in a file, by default the installed one."""

    def free_parameters(self, machine: Any) -> tuple[FreeParameter, ...]:
        """Return all parameters that can be free."""
        return self.free

    def values(self, machine: Any) -> dict[str, float]:
        """Return the values of all of them; scales are 1."""
        return {name: float(attrgetter(place)(machine)) for name, place in self.places.items()}

    def with_values(self, machine: Any, values: Mapping[str, float]) -> Any:
        """Return the start file's machine with some changed; InputError: out of range."""
        self.check_names(machine, values)
        for name, value in values.items():
            machine = machine.with_value(self.places[name], value)
        return machine

    @abstractmethod
    def signals(self, machine: Any) -> tuple[MeasuredSignal, ...]:
        """Return the signals that recordings may contain."""

    @abstractmethod
    def experiment(self, machine: Any, recording: Recording) -> Any:
        """Return what a recording shows, with ``start`` and ``end`` [s]; InputError."""

    @abstractmethod
    def predict(
        self, machine: Any, experiment: Any, times: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return each signal without error at its times; LongreachError: the simulation fails."""

    def planted(self, start: Any, machine: Any) -> dict[str, float]:
        """Return the values of another machine, its scales relative to ``start``."""
        return self.values(machine)

    def corrections(self, machine: Any, experiment: Any) -> dict[str, float]:
        """Return deviations of errors of a recording's start by name; they become unknowns."""
        return {}

    def corrected(self, machine: Any, experiment: Any, values: Mapping[str, float]) -> Any:
        """Return the experiment with values of its corrections."""
        return experiment

    def doubts(self, machine: Any, experiment: Any) -> str:
        """Return why standard errors of this experiment do not hold; empty: they do."""
        return str(getattr(experiment, 'doubt', ''))

    def derived(self, machine: Any, experiment: Any) -> dict[str, float]:
        """Return quantities of interest that follow from the parameters, by name."""
        return {}

    def statics(self) -> StaticMachine:
        """Return what is offered to the identification from poses at rest."""
        raise InputError(f'--static: the {self.name} has no statics; give --release')

    def possible(
        self, machine: Any, poses: Sequence[tuple[float, ...]], masses: Sequence[float], /
    ) -> dict[str, tuple[Any, Recording]]:
        """Return scenarios to choose from, and exact recordings of them, by name."""
        raise InputError(f'the {self.name} has no experiments to plan, allowed: boom')

    def possible_at_rest(self, machine: Any, mass: float, /) -> tuple[list[Any], list[Recording]]:
        """Return scenarios of poses at rest with a load [kg], and recordings; empty: none."""
        return [], []

    def chosen(self, machine: Any, wanted: Sequence[str]) -> dict[str, FreeParameter]:
        """Return free parameters by name, from names and groups; raises InputError."""
        free = {entry.name: entry for entry in self.free_parameters(machine)}
        groups = sorted({entry.group for entry in free.values()})
        for one in wanted:
            check_among('parameter', one, (*groups, *free))
        return {n: entry for n, entry in free.items() if n in wanted or entry.group in wanted}

    def usual(self, machine: Any) -> tuple[str, ...]:
        """Return the groups of parameters that are found by default."""
        groups = dict.fromkeys(entry.group for entry in self.free_parameters(machine))
        return self.usual_groups or tuple(groups)

    def check_names(self, machine: Any, values: Mapping[str, float]) -> None:
        """Raise InputError for names of values that are not those of free parameters."""
        allowed = [free.name for free in self.free_parameters(machine)]
        for name in values:
            check_among('parameter', name, allowed)


class SpoolRun(NamedTuple):
    """A run by recorded spools."""

    scenario: Any
    start: float  # time of the recording at time 0 of the scenario [s]
    end: float  # [s]
    doubt: str = ''  # why standard errors do not hold


class SpoolIdentification(Identifiable):
    """A machine that moves again by the recorded spools, from a recording's first pose."""

    actuators: tuple[str, ...]  # names of the joints' actuators; needed is spool_NAME of all
    angles: tuple[str, ...]  # signals of their joint angles, which are needed, too [rad]
    columns: Columns  # of runs
    shown: tuple[str, ...]  # which of them are signals, by name or family

    @abstractmethod
    def run(self, machine: Any, scenario: Any) -> Run[Any]:
        """Return the run of a scenario; signals are its columns."""

    @abstractmethod
    def turned(self, machine: Any, scenario: Any, changes: np.ndarray) -> Any:
        """Return the scenario with changes of the angles at time 0, (joints,) [rad]."""

    def signals(self, machine: Any) -> tuple[MeasuredSignal, ...]:
        """Return the signals, named as columns of runs; spools are its inputs."""
        found = []
        for column in self.columns:
            if (column.family or column.name) in self.shown:
                sources = (column.source,) if isinstance(column.source, Source) else ()
                most = _LARGEST.get(column.unit, math.inf)
                limits = (-BELOW if column.unit == 'Pa' else -most, most)
                found.append(MeasuredSignal(column.name, column.unit, sources, limits=limits))
        return tuple(found)

    def recorded(self, recording: Recording) -> tuple[list[Signal], list[Signal], float, float]:
        """Return known angles and spools, first and last time with all [s]; InputError."""
        needed = [*self.angles, *(f'spool_{name}' for name in self.actuators)]
        known = {
            name: Signal(*(part[np.isfinite(signal.values)] for part in signal))
            for name, signal in recording.signals.items()
            if np.isfinite(signal.values).any()
        }
        check_has(recording.name, needed, known)
        pressures = [known[name].values for name in known if name.startswith('p_')]
        if pressures:
            check_pressed(recording.name, float(np.abs(np.concatenate(pressures)).max()))
        signals = [known[name] for name in needed]
        start = max(float(signal.times[0]) for signal in signals)
        end = min(float(signal.times[-1]) for signal in signals)
        return signals[: len(self.angles)], signals[len(self.angles) :], start, end

    def predict(
        self, machine: Any, experiment: SpoolRun, times: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return columns of the run at given times; LongreachError when the run fails."""
        scenario = experiment.scenario
        duration = prolonged(scenario.duration, experiment.start, times)
        run = self.run(machine, scenario.replace(duration=duration))
        if run.message:
            raise LongreachError(run.message)
        names = [s.name for s in self.signals(machine) if not s.name.startswith('spool')]
        columns = {name: run.column(name) for name in names}
        return interpolated(times, run.column('time') + experiment.start, columns)

    def corrections(self, machine: Any, experiment: SpoolRun) -> dict[str, float]:
        """Return errors of the first joint angles [rad], each of a single noisy sample."""
        return {f'pose_{name}': _POSE for name in self.actuators}

    def corrected(
        self, machine: Any, experiment: SpoolRun, values: Mapping[str, float]
    ) -> SpoolRun:
        """Return the experiment from a corrected pose."""
        changes = np.array([values[f'pose_{name}'] for name in self.actuators])
        scenario = self.turned(machine, experiment.scenario, changes)
        return experiment._replace(scenario=scenario)
