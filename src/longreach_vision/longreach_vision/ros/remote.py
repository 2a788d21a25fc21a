"""Requests to a running tracker node."""

from __future__ import annotations

from longreach_msgs.srv import InitializeMarker

from longreach_node.remote import remote

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
    """Start tracking a marker at a pixel, and return the tracker's answer."""
    u, v = at
    request = InitializeMarker.Request(camera=camera, name=name, u=u, v=v, radius=radius)
    with remote('initialize', namespace, timeout, _START) as far:
        return far.call(InitializeMarker, f'{node}/initialize', request)
