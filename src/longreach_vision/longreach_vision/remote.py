"""What the command line says to a tracker that runs as a node."""

from __future__ import annotations

from longreach_msgs.srv import InitializeMarker

from longreach_node.remote import remote

__all__ = ['initialize']

_START = 'longreach launch vision'


def initialize(
    camera: str,
    name: str,
    at: tuple[float, float],
    radius: float,
    node: str,
    namespace: str,
    timeout: float,
) -> str:
    """
    Begin to track a marker where somebody sees it, and return the tracker's answer.

    Parameters
    ----------
    camera : str
        ``left`` or ``right``.
    name : str
        Of the marker, as in the rig file.
    at : (float, float)
        About where its centre is: u, v [px].
    radius : float
        About the longer semi-axis of its outer edge [px].
    node : str
        Name of the node.
    namespace : str
    timeout : float
        Longest wait [s].

    Raises
    ------
    InputError
        For a namespace that ROS does not allow.
    LongreachError
        When there is no tracker, or it refuses.
    """
    u, v = at
    request = InitializeMarker.Request(camera=camera, name=name, u=u, v=v, radius=radius)
    with remote('initialize', namespace, timeout, _START) as far:
        return far.call(InitializeMarker, f'{node}/initialize', request)
