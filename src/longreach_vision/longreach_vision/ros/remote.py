"""Requests to a running tracker node."""

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
    Start tracking a marker at a pixel, and return the tracker's answer.

    Parameters
    ----------
    camera : str
        ``left`` or ``right``.
    name : str
        Name of the marker in the rig file.
    at : (float, float)
        Approximate centre: u, v [px].
    radius : float
        Approximate longer semi-axis of the outer edge [px].
    node : str
        Name of the node.
    namespace : str
    timeout : float
        Longest wait [s].

    Raises
    ------
    InputError
        For a namespace that is not valid in ROS.
    LongreachError
        If there is no tracker, or if it refuses.
    """
    u, v = at
    request = InitializeMarker.Request(camera=camera, name=name, u=u, v=v, radius=radius)
    with remote('initialize', namespace, timeout, _START) as far:
        return far.call(InitializeMarker, f'{node}/initialize', request)
