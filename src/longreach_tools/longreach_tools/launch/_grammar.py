"""
Which tags a launch file may have, with which attributes and children.

The table follows launch_xml and launch_ros of ROS 2 Jazzy, so that a file which is accepted here
is accepted there. Kinds of attributes: ``template`` may have substitutions; ``text`` may not;
``flag``, ``number`` (not negative) and ``count`` are literals that are converted on reading;
``shutdown`` is the literal ``shutdown``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ['ACTIONS', 'ALIASES', 'ONLY_IN_ROS', 'TAGS', 'Tag']


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
    'cwd': 'template',
    'emulate_tty': 'flag',
    'launch-prefix': 'template',
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

TAGS: dict[str, Tag] = {
    'launch': Tag(
        optional={'version': 'text', 'deprecated': 'text'}, actions=True, conditional=False
    ),
    'arg': Tag(
        required={'name': 'text'},
        optional={'default': 'template', 'description': 'text'},
        children={'choice': 'choice'},
    ),
    'choice': Tag(required={'value': 'text'}, conditional=False),
    'let': Tag(required=_ASSIGNMENT),
    'node': Tag(
        required={'exec': 'template'},
        optional={
            **_PROCESS,
            'args': 'template',
            'exec_name': 'template',
            'namespace': 'template',
            'pkg': 'template',
            'ros_args': 'template',
        },
        children={'env': 'env', 'param': 'param', 'remap': 'remap'},
    ),
    'param': Tag(
        optional={
            'allow_substs': 'template',
            'from': 'template',
            'name': 'template',
            'type': 'text',
            'value': 'template',
            'value-sep': 'text',
        },
        children={'param': 'param'},
        conditional=False,
    ),
    'remap': Tag(required={'from': 'template', 'to': 'template'}, conditional=False),
    'env': Tag(required=_ASSIGNMENT, conditional=False),
    'include': Tag(
        required={'file': 'template'}, children={'arg': 'include/arg', 'let': 'include/let'}
    ),
    'include/arg': Tag(required=_ASSIGNMENT, conditional=False),
    'include/let': Tag(required=_ASSIGNMENT, conditional=False),
    'group': Tag(
        optional={'scoped': 'flag', 'forwarding': 'flag'}, children={'keep': 'keep'}, actions=True
    ),
    'keep': Tag(required=_ASSIGNMENT, conditional=False),
    'push_ros_namespace': Tag(required={'namespace': 'template'}),
    'executable': Tag(required={'cmd': 'template'}, optional=_PROCESS, children={'env': 'env'}),
    'set_env': Tag(required=_ASSIGNMENT),
    'append_env': Tag(
        required=_ASSIGNMENT, optional={'prepend': 'template', 'separator': 'template'}
    ),
    'unset_env': Tag(required={'name': 'template'}),
    'set_parameter': Tag(required=_ASSIGNMENT),
    'set_remap': Tag(required={'from': 'template', 'to': 'template'}),
    'log': Tag(required={'message': 'template'}),
    'shutdown': Tag(optional={'reason': 'template'}),
    'timer': Tag(required={'period': 'template'}, actions=True),
}

ACTIONS = frozenset(
    {
        'append_env',
        'arg',
        'executable',
        'group',
        'include',
        'let',
        'log',
        'node',
        'push_ros_namespace',
        'set_env',
        'set_parameter',
        'set_remap',
        'shutdown',
        'timer',
        'unset_env',
    }
)

ALIASES = {'push-ros-namespace': 'push_ros_namespace'}

ONLY_IN_ROS = frozenset(
    {
        'composable_node',
        'lifecycle_node',
        'load_composable_node',
        'node_container',
        'reset',
        'ros_timer',
        'set_parameters_from_file',
        'set_ros_log_dir',
        'set_use_sim_time',
    }
)
