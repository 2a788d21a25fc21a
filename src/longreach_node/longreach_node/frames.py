"""
Names of coordinate frames.

All machines on one graph share ``/tf``, so that the frames of each begin with a prefix: by default
its namespace and a slash, as in ``north/track``. The prefix belongs to the frames, which are the
links of the robot description; joints keep their names, because ``joint_states`` lies in the
machine's namespace already.
"""

from __future__ import annotations

import dataclasses

from rclpy.node import Node
from std_msgs.msg import Header

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity
from longreach_node.stamps import stamp_of

# In a prefix this stands for the node's namespace.
_NAMESPACE = '{namespace}'


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrameParameters(Parameters):
    """The parameter of every node whose messages have a frame."""

    frame_prefix: str = quantity(
        'prefix of frame names; {namespace} stands for the namespace of the node',
        '',
        default=f'{_NAMESPACE}/',
    )

    def check(self) -> None:
        """Raise InputError for a prefix with white space."""
        super().check()
        if any(character.isspace() for character in self.frame_prefix):
            raise InputError(
                f'frame_prefix = {self.frame_prefix!r}, allowed: a text without white space'
            )


def frame_name(node: Node, parameters: FrameParameters, frame: str) -> str:
    """
    Return the name of a frame on the graph.

    Parameters
    ----------
    node : Node
        Its namespace is used.
    parameters : FrameParameters
    frame : str
        As in the machine's robot description, such as ``track``.

    Returns
    -------
    str
        Without a leading slash, which tf2 refuses.
    """
    namespace = node.get_namespace().strip('/')
    return (parameters.frame_prefix.replace(_NAMESPACE, namespace) + frame).lstrip('/')


def header_at(nanoseconds: int, frame: str) -> Header:
    """Return a message's header: a time since the epoch of the clock [ns], and a frame."""
    return Header(stamp=stamp_of(nanoseconds), frame_id=frame)
