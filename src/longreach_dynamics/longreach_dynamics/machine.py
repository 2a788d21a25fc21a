"""What a machine is to the programs that drive it: a parameter object plus pure functions."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

__all__ = ['JointSample', 'Machine', 'step_time']

State = TypeVar('State')
Command = TypeVar('Command', contravariant=True)


class JointSample(NamedTuple):
    """
    Joints at one instant, in the order of ``names``.

    Positions are [rad] or [m], velocities [rad/s] or [m/s], efforts [N m] or [N].
    """

    names: tuple[str, ...]
    positions: tuple[float, ...]
    velocities: tuple[float, ...]
    efforts: tuple[float, ...]


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


def step_time(count: int, step: float) -> float:
    """Return the time of a step [s], without the last bits that a product of floats adds."""
    return round(count * step, 12)
