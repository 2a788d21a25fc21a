"""What the command line says to nodes that run."""

from __future__ import annotations

import functools

from longreach_node.remote import call_plant as _call_plant
from longreach_node.remote_valves import command_valves as _command_valves

__all__ = ['call_plant', 'command_valves']

_START = 'longreach launch excavator'
_OTHERS = (
    f'commands the cylinders on {{topic}}, too; start the excavator with {_START} operator:=false'
    ' to move its valves by hand'
)
_STANDS_STILL = 'if it is paused, longreach excavator resume lets it go on'

call_plant = functools.partial(_call_plant, start=_START)


command_valves = functools.partial(
    _command_valves,
    topic='cylinder_command',
    machine='excavator',
    others=_OTHERS,
    stands_still=_STANDS_STILL,
)
