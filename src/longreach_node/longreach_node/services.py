"""The services of a simulator node: ``~/pause``, ``~/resume``, ``~/step``, ``~/reset``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from std_srvs.srv import Trigger

if TYPE_CHECKING:
    from longreach_node.simulator import SimulatorNode


def add_services(node: SimulatorNode[Any, Any]) -> None:
    """Create the services on a simulator node that has begun."""
    simulation = node.simulation

    def pause() -> tuple[bool, str]:
        simulation.pause()
        return True, f'paused at {node.time:g} s'

    def resume() -> tuple[bool, str]:
        text = f'running from {node.time:g} s'
        simulation.resume()
        return True, text

    def step() -> tuple[bool, str]:
        refusal = simulation.step_once()
        return not refusal, refusal or f'at {node.time:g} s'

    def reset() -> tuple[bool, str]:
        node.reset()
        return True, 'at 0 s'

    for function in (pause, resume, step, reset):
        node.create_service(Trigger, f'~/{function.__name__}', _callback(function))


def _callback(
    function: Callable[[], tuple[bool, str]],
) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
    """Return a service's callback that answers with what a function returns."""

    def call(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = function()
        return response

    return call
