"""
What one pass of a player publishes, and when: messages and ticks of the clock in bag time.

The clock ticks at a fixed rate of bag time from the start of what is played on, and a tick comes
before a message of the same time. So what is published does not depend on how fast it is played.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from longreach_dynamics.errors import InputError

from ._sources import Message
from ._storage import Bag

__all__ = ['CLOCK', 'NANOSECONDS', 'PlayOptions', 'timeline']

CLOCK = '/clock'
NANOSECONDS = 1_000_000_000

_CLOCK_CDR = struct.Struct('<4xiI')


@dataclass(frozen=True)
class PlayOptions:
    """
    How to play.

    Attributes
    ----------
    rate : float
        Speed; 2 is twice as fast, 0 as fast as possible.
    passes : int
        How often; 0 until stopped.
    clock_rate : float, optional
        Publish /clock so often in a second of bag time; the recorded one is then left out.
    start_offset : float
        Begin so long after the start of the bag [s].
    duration : float, optional
        Play only so long [s of bag time].
    topics : tuple of str, optional
        Only these.
    remap : mapping
        Recorded name to the name to publish on.
    subscribers : int
        Wait until each topic has so many before the first message.
    wait_limit : float
        But only so long [s].
    delay : float
        Pause before the first message, in which subscribers find the player [s].
    keep_going : bool
        Leave out topics whose type is not installed, instead of refusing.
    node_name : str
        Name of the player's node.

    Raises
    ------
    InputError
        If a number is out of its range.
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
    """
    Yield (topic, bag time [ns], CDR bytes) of what one pass publishes, with the clock's ticks.

    Raises
    ------
    InputError
        If the start offset is beyond the end.
    """
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
    """Yield the clock's messages from begin to end [ns]."""
    number = 0
    while rate is not None and (now := begin + round(number * NANOSECONDS / rate)) <= end:
        data = bytearray(_CLOCK_CDR.pack(*divmod(now, NANOSECONDS)))
        data[1] = 1  # little-endian
        yield CLOCK, now, bytes(data)
        number += 1
