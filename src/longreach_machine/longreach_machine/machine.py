"""The interface of machines to simulators: a parameter object and pure functions."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from longreach_dynamics.errors import InputError, check_within

State = TypeVar('State')
Command = TypeVar('Command', contravariant=True)

Spools = tuple[float, ...]
"""Command of valves: positions of their spools, -1 to 1; positive extends a piston."""

# More can neither be counted to the last one nor waited for.
_MOST_STEPS = 1e12
# Numbers in the tables of a run: 1.6 GB, and up to as much again while they are put together.
_MOST_NUMBERS = 200_000_000


class ByScenario(enum.Enum):
    """Type of :data:`BY_SCENARIO`."""

    BY_SCENARIO = 'by scenario'


BY_SCENARIO: Final = ByScenario.BY_SCENARIO
"""Given in place of a command: the machine follows the commands of its scenario."""


class JointSample(NamedTuple):
    """
    Joints at one instant, in the order of ``names``.

    Positions are [rad] or [m], velocities [rad/s] or [m/s], efforts [N m] or [N].
    """

    names: tuple[str, ...]
    positions: tuple[float, ...]
    velocities: tuple[float, ...]
    efforts: tuple[float, ...]


class HydraulicSample(NamedTuple):
    """
    Cylinders and valves at one instant, as in a HydraulicState message; empty: not known.

    Pressures are [Pa], flows into the head side and out of the rod side [m^3/s], spools -1 to 1.
    """

    name: tuple[str, ...]
    head_pressure: tuple[float, ...]
    rod_pressure: tuple[float, ...]
    head_flow: tuple[float, ...] = ()
    rod_flow: tuple[float, ...] = ()
    spool: tuple[float, ...] = ()

    @classmethod
    def of(cls, name: Iterable[str], *rows: np.ndarray) -> HydraulicSample:
        """Return the sample of arrays in the order of the fields."""
        return cls(tuple(name), *(tuple(row.tolist()) for row in rows))


class Machine(Protocol[State, Command]):
    """All that the simulator node knows of a machine."""

    def initial_state(self) -> State:
        """Return the state at time 0: continuous vector and discrete modes, immutable."""
        ...

    def advance(self, state: State, command: Command, time: float, duration: float) -> State:
        """
        Return the state ``duration`` seconds after ``time`` [s] under a constant command.

        Steps and events are inside. Raises LongreachError when there is no finite state to return.
        """
        ...

    def joint_sample(self, state: State, command: Command) -> JointSample:
        """Return what a JointState message holds."""
        ...


class Cycle(NamedTuple):
    """A closed loop at one sampling instant."""

    time: float  # [s]
    state: Any  # of the machine
    memory: Any  # of the controller, after its answer
    command: Any  # acts until the next instant


Answer = Callable[[Any, int, Any], tuple[Any, Any]]


def closed_loop(
    machine: Machine[Any, Any], answer: Answer, cycles: int, sample_time: float
) -> Iterator[Cycle]:
    """
    Yield the sampling instants 0 to ``cycles`` of a machine with its controller.

    As nodes in lockstep step them. ``answer`` takes the controller's memory (None at first), the
    number of the cycle and the machine's state, and returns memory and command;
    :func:`by_scenario` leaves it to the machine. Errors of the machine are raised in place of the
    instant that it does not reach; cycles have the length ``sample_time`` [s].
    """
    state, memory = machine.initial_state(), None
    for cycle in range(cycles + 1):
        time = step_time(cycle, sample_time)
        memory, command = answer(memory, cycle, state)
        yield Cycle(time, state, memory, command)
        if cycle < cycles:
            state = machine.advance(state, command, time, sample_time)


def by_scenario(memory: None, cycle: int, state: object) -> tuple[None, ByScenario]:  # noqa: ARG001
    """Answer, in :func:`closed_loop`, that the machine follows its scenario."""
    return None, BY_SCENARIO


def step_time(count: int, step: float) -> float:
    """Return the time of a step [s], without the last bits that a product of floats adds."""
    return float(f'{count * step:.15g}')


def step_count(time: float, step: float, what: str) -> int:
    """Return a time [s] in whole steps [s]; InputError, with ``what`` first, when it is none."""
    if not abs(time) < _MOST_STEPS * step:
        raise InputError(f'{what} = {time} s, allowed: up to {_MOST_STEPS:g} steps of {step:g} s')
    count = round(time / step)
    if abs(count * step - time) > 1e-9 * max(step, time):
        near = round(max(count, 1) * step, 9)
        raise InputError(
            f'{what} = {time:.12g} s, allowed: whole steps of {step:g} s, such as {near:.12g} s'
        )
    return count


def check_instant(time: float, duration: float, step: float) -> None:
    """Raise InputError unless a time [s] is that of a step [s] of a run of some duration [s]."""
    check_within('time', time, f'[0, {duration}] s; the duration of the scenario')
    step_count(time, step, 'time')


def check_rows(rows: int, width: int, what: str, remedy: str) -> None:
    """
    Raise InputError unless tables of so many rows, ``width`` numbers each, fit into memory.

    The message begins with ``what`` determines the number of rows, and ends with the remedy.
    """
    most = _MOST_NUMBERS // width
    if rows > most:
        raise InputError(
            f'{what} gives {rows} rows of {width} numbers, allowed: up to {most} rows; {remedy}'
        )


def sample_counts(duration: float, sample_time: float, step: float, width: int) -> tuple[int, int]:
    """
    Return how many steps [s] a sample takes, and how many samples a run; InputError for a misfit.

    Duration and sample time [s] are whole samples and whole steps; ``width`` as in check_rows.
    """
    if not sample_time >= 0.5 * step:
        raise InputError(f'sample_time = {sample_time} s, allowed: whole steps of {step:g} s')
    every = step_count(sample_time, step, 'sample_time')
    samples = step_count(duration, sample_time, 'duration')
    what = f'duration = {duration:g} s with sample_time = {sample_time:g} s'
    if samples < 1:
        raise InputError(f'{what} gives {samples} rows, allowed: 1 or more')
    check_rows(samples, width, what, 'take a longer sample_time or a shorter duration')
    return every, samples


def late_events(scenario: Any, *names: str, paths: Sequence[str] = ()) -> tuple[str, ...]:
    """Return which entries of a scenario's lists the run does not reach."""
    # Those of ``names`` act from their time on, and not at the end of the run; the last point of a
    # path may be there. Entries have a ``time`` or a ``start`` [s], are times, or begin with it.
    found = []
    for name in (*names, *paths):
        for k, item in enumerate(operator.attrgetter(name)(scenario)):
            time = getattr(item, 'time', getattr(item, 'start', item))
            time = time[0] if isinstance(time, tuple) else time
            if time > scenario.duration or (time == scenario.duration and name in names):
                found.append(f'{name}[{k}] is at {time:g} s')
    return tuple(found)


def check_order(times: Sequence[float], what: str) -> None:
    """Raise InputError unless each time [s] in a list of a scenario is after the one before."""
    for index in range(1, len(times)):
        if not times[index] > times[index - 1]:
            raise InputError(
                f'{what}[{index}].time = {times[index]} s, allowed: after {times[index - 1]} s;'
                ' sort them'
            )
