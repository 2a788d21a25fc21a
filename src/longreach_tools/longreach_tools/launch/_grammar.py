"""
Which tags a launch file may have here, with which attributes and children.

The table is the part of launch_xml and launch_ros of ROS 2 Jazzy that Longreach's files use; a
file that is accepted here is accepted there. Kinds of attributes: ``template`` may have
substitutions; ``text`` may not; ``flag``, ``number`` (not negative) and ``count`` are literals
that are converted on reading; ``shutdown`` is the literal ``shutdown``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ['ACTIONS', 'ALIASES', 'TAGS', 'Tag']


@dataclass(frozen=True)
class Tag:
    """
    What an element may have.

    ``children`` maps the tag of a child to the name of its entry in TAGS. With ``actions`` set,
    every action may be a child.
    """

    required: Mapping[str, str] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)
    children: Mapping[str, str] = field(default_factory=dict)
    actions: bool = False
    conditional: bool = True

    @property
    def attributes(self) -> dict[str, str]:
        """All attributes with their kinds."""
        conditions = {'if': 'template', 'unless': 'template'} if self.conditional else {}
        return {**self.required, **self.optional, **conditions}


_PROCESS = {
    'name': 'template',
    'on_exit': 'shutdown',
    'output': 'template',
    'respawn': 'template',
    'respawn_delay': 'number',
    'respawn_max_retries': 'count',
    'shell': 'flag',
    'sigkill_timeout': 'number',
    'sigterm_timeout': 'number',
}
_ASSIGNMENT = {'name': 'template', 'value': 'template'}

_ACTIONS = {
    'arg': Tag(
        required={'name': 'text'},
        optional={'default': 'template', 'description': 'text'},
        children={'choice': 'choice'},
    ),
    'executable': Tag(required={'cmd': 'template'}, optional=_PROCESS),
    'group': Tag(actions=True),
    'include': Tag(required={'file': 'template'}, children={'arg': 'include/arg'}),
    'let': Tag(required=_ASSIGNMENT),
    'node': Tag(
        required={'exec': 'template'},
        optional={
            **_PROCESS,
            'args': 'template',
            'namespace': 'template',
            'pkg': 'template',
        },
        children={'param': 'param', 'remap': 'remap'},
    ),
    'push_ros_namespace': Tag(required={'namespace': 'template'}),
}
ACTIONS = frozenset(_ACTIONS)

TAGS: dict[str, Tag] = {
    **_ACTIONS,
    'launch': Tag(optional={'version': 'text'}, actions=True, conditional=False),
    'choice': Tag(required={'value': 'text'}, conditional=False),
    'include/arg': Tag(required=_ASSIGNMENT, conditional=False),
    'param': Tag(
        optional={'from': 'template', 'name': 'template', 'type': 'text', 'value': 'template'},
        conditional=False,
    ),
    'remap': Tag(required={'from': 'template', 'to': 'template'}, conditional=False),
}

ALIASES = {'push-ros-namespace': 'push_ros_namespace'}
