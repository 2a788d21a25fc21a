"""
Sequence of messages and clock ticks published by a player, in bag time.

The clock ticks at a fixed rate of bag time from the start of the playback, and a tick precedes a
message of the same time. The sequence does not depend on the speed of the playback.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from longreach_dynamics.errors import InputError

from ._sources import Message
from ._storage import Bag

CLOCK = '/clock'
NANOSECONDS = 1_000_000_000

_CLOCK_CDR = struct.Struct('<4xiI')


@dataclass(frozen=True)
class PlayOptions:
    """
    Options of a playback.

    Attributes
    ----------
    rate : float
        Speed; 2: twice as fast, 0: as fast as possible.
    passes : int
        Number of repetitions; 0: until stopped.
    clock_rate : float, optional
        Rate of /clock in bag time [Hz]; the recorded /clock is then omitted.
    start_offset : float
        Start this long after the start of the bag [s].
    duration : float, optional
        Length of the playback [s of bag time].
    topics : tuple of str, optional
        Topics to be played; all by default.
    remap : mapping
        Recorded name to published name.
    subscribers : int
        Number of subscribers of each topic to wait for before the first message.
    wait_limit : float
        Longest wait for them [s].
    delay : float
        Delay before the first message, for subscribers to find the player [s].
    keep_going : bool
        Skip topics whose type is not installed, instead of raising an error.
    node_name : str
        Name of the player's node.

    Raises
    ------
    InputError
        If a value is out of its range.
    """

    rate: float = 1.0
    passes: int = 1
    clock_rate: float | None = None
    start_offset: float = 0.0
    duration: float | None = None
    topics: tuple[str, ...] | None = None
    remap: Mapping[str, str] = field(default_factory=dict)
    subscribers: int = 0
    wait_limit: float = 10.0
    delay: float = 0.5
    keep_going: bool = False
    node_name: str = f'longreach_bag_play_{os.getpid()}'

    def __post_init__(self) -> None:
        for name in ('rate', 'passes', 'start_offset', 'subscribers', 'wait_limit', 'delay'):
            value = getattr(self, name)
            if not 0 <= value < float('inf'):
                raise InputError(f'{name} = {value}; allowed: finite and not negative')
        for name in ('clock_rate', 'duration'):
            value = getattr(self, name)
            if value is not None and not 0 < value < float('inf'):
                raise InputError(f'{name} = {value}; allowed: finite and positive')


def timeline(bag: Bag, names: Sequence[str], options: PlayOptions) -> Iterator[Message]:
    """Yield (topic, bag time [ns], CDR bytes) of one repetition, including clock ticks."""
    begin = bag.start_time + round(options.start_offset * NANOSECONDS)
    end = bag.end_time
    if begin > end:
        length = (bag.end_time - bag.start_time) / NANOSECONDS
        raise InputError(
            f'start offset {options.start_offset:g} s; the bag has {length:g} s, allowed is less'
        )
    if options.duration is not None:
        end = min(end, begin + round(options.duration * NANOSECONDS))
    ticks = _ticks(begin, end, options.clock_rate)
    tick = next(ticks, None)
    for message in bag.messages(names, begin):
        if message[1] > end:
            break
        while tick is not None and tick[1] <= message[1]:
            yield tick
            tick = next(ticks, None)
        yield message
    if tick is not None:
        yield tick
    yield from ticks


def _ticks(begin: int, end: int, rate: float | None) -> Iterator[Message]:
    """Yield the clock messages between two times [ns]."""
    number = 0
    while rate is not None and (now := begin + round(number * NANOSECONDS / rate)) <= end:
        data = bytearray(_CLOCK_CDR.pack(*divmod(now, NANOSECONDS)))
        data[1] = 1  # little-endian
        yield CLOCK, now, bytes(data)
        number += 1
