"""
What a machine offers to identification: parameters that can be free, and predicted signals.

A machine's package has a module with an :class:`Identifiable` and names it in the entry-point
group ``longreach.identification``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from longreach_dynamics.runs import Source

__all__ = ['FreeParameter', 'Identifiable', 'MeasuredSignal', 'Recording', 'Signal']


class FreeParameter(NamedTuple):
    """A parameter that can be identified."""

    name: str  # such as mass_scale_2
    group: str  # such as masses
    unit: str
    lowest: float  # bounds of the search
    highest: float
    meaning: str = ''


class Signal(NamedTuple):
    """A measured quantity over time."""

    times: np.ndarray  # (rows,) [s], increasing
    values: np.ndarray  # (rows,)
    deviation: np.ndarray  # (rows,) standard deviation of the noise; NaN: unknown


class MeasuredSignal(NamedTuple):
    """
    A signal that a recording of a machine may contain, and where.

    ``sources`` are alternatives: the first whose topic is recorded is used. In messages with a
    list of named entries that are messages themselves, the field is ``LIST.FIELD``.
    """

    name: str  # such as p_head_1
    unit: str  # SI
    sources: tuple[Source, ...]
    deviation: str = ''  # field with the variance of its noise, such as LIST.covariance.0


class Recording(NamedTuple):
    """What was measured in one experiment."""

    name: str  # of its file
    signals: Mapping[str, Signal]
    events: tuple[tuple[float, str], ...] = ()  # time [s] and what happened, such as release
    # Known, such as payload [kg]; no read-only view, which could not be sent to processes.
    conditions: Mapping[str, float] = {}


class Identifiable(Protocol):
    """
    One machine; ``machine`` is its frozen parameter object.

    A page may also have what the command uses where it is there: ``statics()``, a
    :class:`longreach_identification.statics.StaticMachine`; ``usual_groups``, of the parameters
    that are found by default; ``compared``, patterns of the signals that are predicted, where
    others are inputs; ``signal_kinds``, patterns by kind of signal; and ``possible(machine, poses,
    masses)``, scenarios and exact recordings to choose from.
    """

    @property
    def name(self) -> str:
        """Return the name of the machine."""
        ...

    def load(self, file: str | None) -> Any:
        """Return the parameters in a file, by default the installed one."""
        ...

    def free_parameters(self, machine: Any) -> tuple[FreeParameter, ...]:
        """Return all parameters that can be free."""
        ...

    def values(self, machine: Any) -> dict[str, float]:
        """Return the values of all of them; scales are 1."""
        ...

    def with_values(self, machine: Any, values: Mapping[str, float]) -> Any:
        """
        Return the machine with some of them changed; InputError for values out of range.

        Scales are relative to ``machine``, so this is called with the machine of the start file.
        """
        ...

    def planted(self, start: Any, machine: Any) -> dict[str, float]:
        """Return the values of another machine, its scales relative to ``start``."""
        ...

    def signals(self, machine: Any) -> tuple[MeasuredSignal, ...]:
        """Return the signals that recordings may contain."""
        ...

    def experiment(self, machine: Any, recording: Recording) -> Any:
        """
        Return the experiment that a recording shows, with the times ``start`` and ``end`` [s].

        InputError when signals, events or conditions are missing.
        """
        ...

    def predict(
        self, machine: Any, experiment: Any, times: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """
        Return what sensors without error would show, for each signal at its times.

        LongreachError when the simulation of such a machine fails.
        """
        ...

    def corrections(self, machine: Any, experiment: Any) -> dict[str, float]:
        """
        Return names and standard deviations of what a recording tells of its start only roughly.

        They become unknowns of that recording, with a mean of 0.
        """
        ...

    def corrected(self, machine: Any, experiment: Any, values: Mapping[str, float]) -> Any:
        """Return the experiment with values of its corrections."""
        ...

    def start_values(
        self, machine: Any, experiment: Any, recording: Recording
    ) -> dict[str, float]:
        """Return values to begin with, from the recording itself; empty: those of the machine."""
        ...

    def derived(self, machine: Any, experiment: Any) -> dict[str, float]:
        """Return quantities of interest that follow from the parameters, by name."""
        ...
