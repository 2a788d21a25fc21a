"""
The services of ``simulation_interfaces`` on a simulator node, where that package is installed.

Only this module imports the package. Types that the installed version does not have are omitted,
with a log message. The responses are computed in :mod:`~longreach_node.standard_interface`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rclpy.action.server import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup

from longreach_node.stamps import seconds_to_nanoseconds, stamp_of
from longreach_node.standard_interface import SERVICES, StandardInterface

if TYPE_CHECKING:
    from longreach_node.simulator import SimulatorNode

_PACKAGE = 'simulation_interfaces'
_MESSAGES = ('Result', 'SimulationState', 'SimulatorFeatures', 'EntityCategory', 'EntityState')
_ACTION = 'SimulateSteps'


def _module(name: str) -> ModuleType | None:
    """Return a module of the package, or None where it is not installed."""
    try:
        return import_module(f'{_PACKAGE}.{name}')
    except ImportError:
        return None


def installed_types() -> tuple[dict[str, Any], list[str]]:
    """
    Return the types that are installed, by name, and the names of those that are not.

    Returns
    -------
    types : dict of str to type
        Empty when the package is not installed, or lacks what everything else needs.
    missing : list of str
        Empty when the package is not installed.
    """
    types, missing = {}, []
    wanted = {'msg': _MESSAGES, 'srv': tuple(SERVICES), 'action': (_ACTION,)}
    modules = {kind: _module(kind) for kind in wanted}
    if modules['msg'] is None:
        return {}, []
    for kind, names in wanted.items():
        for name in names:
            found = getattr(modules[kind], name, None)
            if found is None:
                missing.append(name)
            else:
                types[name] = found
    if {'Result', 'SimulationState', 'SimulatorFeatures', 'GetSimulatorFeatures'} - types.keys():
        return {}, missing
    if not {'EntityCategory', 'EntityState'} <= types.keys():
        without = {name for name in SERVICES if 'Entit' in name}
        missing += sorted(without & types.keys())
        types = {name: found for name, found in types.items() if name not in without}
    return types, missing


class _Node:
    """A simulator node as the interface sees it."""

    def __init__(self, node: SimulatorNode[Any, Any]) -> None:
        self._node = node
        self.entity = node.get_namespace().strip('/').replace('/', '_') or node.get_name()
        self.frame = node.frame
        self.pause = node.simulation.pause
        self.resume = node.simulation.resume
        self.reset = node.reset
        self.step_many = node.simulation.step_many
        self.stop_steps = node.simulation.stop_steps

    @property
    def sample(self) -> int:
        return self._node.sample

    @property
    def paused(self) -> bool:
        return self._node.paused

    @property
    def stepping(self) -> bool:
        return self._node.simulation.stepping

    @property
    def started(self) -> bool:
        return self._node.simulation.started

    @property
    def ended(self) -> bool:
        return self._node.simulation.finished or self._node.host.quitting

    def stamp(self) -> Any:
        return stamp_of(seconds_to_nanoseconds(self._node.time))

    def quit(self) -> None:
        self._node.get_logger().info(f'told to quit at {self._node.time:g} s')
        self._node.host.quit()


def add_standard_services(
    node: SimulatorNode[Any, Any],
    types: Callable[[], tuple[dict[str, Any], list[str]]] = installed_types,
) -> StandardInterface | None:
    """
    Create the services, and the action, on a simulator node that has begun.

    Parameters
    ----------
    node : SimulatorNode
    types : callable, optional
        Another source of types than the installed package.

    Returns
    -------
    StandardInterface or None
        None when the package is not installed.
    """
    found, missing = types()
    log = node.get_logger()
    if missing:
        log.info(f'the installed {_PACKAGE} lacks {", ".join(missing)}: left out')
    if not found:
        log.info(f'{_PACKAGE} is not installed: its services are left out')
        return None
    interface = StandardInterface(_Node(node), found)
    # A step lasts for many callbacks of the other groups.
    group = ReentrantCallbackGroup()
    for kind, name in SERVICES.items():
        if kind in found:
            callback = getattr(interface, name)
            node.create_service(found[kind], f'~/{name}', callback, callback_group=group)
    if _ACTION in found:

        def cancel(goal: Any) -> CancelResponse:
            interface.cancel_steps(goal)
            return CancelResponse.ACCEPT

        interface.action = ActionServer(
            node,
            found[_ACTION],
            '~/simulate_steps',
            interface.simulate_steps,
            cancel_callback=cancel,
            callback_group=group,
        )
    return interface
