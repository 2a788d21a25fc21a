"""
The services of ``simulation_interfaces`` on a simulator node, where that package is installed.

``simulation_interfaces`` is the package in which Gazebo, O3DE and Isaac Sim agree on the services
of a simulator. Served are its state, steps and resets; a step is one sample here, because messages
are published at samples. There are no entities: the machine is fixed to the ground, and its joints
are in ``joint_states``.

Only this module imports the package: 1.5 with Jazzy, 2.1 with newer distributions.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from longreach_node.simulation import Simulation

_PACKAGE = 'simulation_interfaces'
_MESSAGES = ('Result', 'SimulationState', 'SimulatorFeatures')
# Services by type.
SERVICES = {
    'GetSimulatorFeatures': 'get_simulator_features',
    'GetSimulationState': 'get_simulation_state',
    'SetSimulationState': 'set_simulation_state',
    'StepSimulation': 'step_simulation',
    'ResetSimulation': 'reset_simulation',
}
_FEATURES = (
    'SIMULATION_STATE_GETTING',
    'SIMULATION_STATE_SETTING',
    'SIMULATION_STATE_PAUSE',
    'STEP_SIMULATION_SINGLE',
    'STEP_SIMULATION_MULTIPLE',
    'SIMULATION_RESET',
    'SIMULATION_RESET_TIME',
    'SIMULATION_RESET_STATE',
)
_DESCRIPTION = (
    'Longreach: a step is one sample, 1 / publish_rate of simulation time; in lockstep a step'
    ' waits for its command'
)


def installed_types() -> dict[str, Any]:
    """Return the types of messages and services by name; none without the package."""
    try:
        messages, services = (import_module(f'{_PACKAGE}.{part}') for part in ('msg', 'srv'))
    except ImportError:
        return {}
    found = {name: getattr(messages, name) for name in _MESSAGES}
    return found | {name: getattr(services, name) for name in SERVICES}


def add_standard_services(
    node: Node,
    simulation: Simulation[Any, Any],
    types: Callable[[], dict[str, Any]] = installed_types,
) -> StandardInterface | None:
    """Create the services on a simulation's node; None when the package is not installed."""
    found = types()
    if not found:
        node.get_logger().info(f'{_PACKAGE} is not installed: its services are left out')
        return None
    interface = StandardInterface(node, simulation, found)
    # A step lasts for many callbacks of the other groups.
    group = ReentrantCallbackGroup()
    for kind, name in SERVICES.items():
        callback = interface.callback(name)
        node.create_service(found[kind], f'~/{name}', callback, callback_group=group)
    return interface


class _RefusedError(Exception):
    """A result other than OK: the rest of its name, such as NOT_FOUND, and why."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class StandardInterface:
    """Callbacks of the services; ``types`` are the installed ones by name."""

    def __init__(
        self, node: Node, simulation: Simulation[Any, Any], types: dict[str, Any]
    ) -> None:
        self._node, self._simulation = node, simulation
        self._types = types
        self._codes = types['Result']
        self._states = types['SimulationState']
        self._is_stopped = False
        # Requests of steps whose response is still to be sent.
        self.answering = 0

    def callback(self, name: str) -> Callable[[Any, Any], Any]:
        """Return the callback of a service: one of the methods below fills in its response."""
        method = getattr(self, name)

        async def answer(request: Any, response: Any) -> Any:
            try:
                waits = method(request, response)
                if waits is not None:
                    await waits
            except _RefusedError as refusal:
                # Some services have results of their own.
                own = getattr(type(response), refusal.kind, None)
                common = getattr(self._codes, f'RESULT_{refusal.kind}', None)
                response.result.result = common if own is None else own
                response.result.error_message = str(refusal)
            else:
                if hasattr(response, 'result'):
                    response.result.result = self._codes.RESULT_OK
            return response

        return answer

    def _check_not_ended(self) -> None:
        """Refuse a request after the end."""
        if self._simulation.ended:
            raise _RefusedError('INCORRECT_STATE', 'the simulation has ended')

    # --- features and states -------------------------------------------------------------------

    def get_simulator_features(self, _: Any, response: Any) -> None:
        """List what this simulator does; this response has no result."""
        known = self._types['SimulatorFeatures']
        response.features.features = sorted(getattr(known, name) for name in _FEATURES)
        response.features.custom_info = _DESCRIPTION

    def _state(self) -> int:
        """Return the simulation's state as a number of SimulationState."""
        if self._simulation.ended:
            return int(self._states.STATE_QUITTING)
        if not self._simulation.paused:
            return int(self._states.STATE_PLAYING)
        if self._is_stopped and self._simulation.sample == 0:
            return int(self._states.STATE_STOPPED)
        return int(self._states.STATE_PAUSED)

    def get_simulation_state(self, _: Any, response: Any) -> None:
        """Return the state."""
        response.state.state = self._state()

    def set_simulation_state(self, request: Any, _: Any) -> None:
        """Stop, play, pause or quit."""
        states, simulation, target = self._states, self._simulation, int(request.state.state)
        # Paused is also the state between steps, which a request to pause stops.
        if target == self._state() and not simulation.stepping:
            text = 'the simulation is in this state already'
            raise _RefusedError('ALREADY_IN_TARGET_STATE', text)
        self._check_not_ended()
        if target not in range(4):
            raise _RefusedError(
                'FEATURE_UNSUPPORTED',
                f'state = {target}, allowed: 0 (stopped), 1 (playing), 2 (paused), 3 (quitting)',
            )
        self._is_stopped = target in (states.STATE_STOPPED, states.STATE_QUITTING)
        if target == states.STATE_PLAYING:
            simulation.resume()
            return
        simulation.pause()
        if target == states.STATE_QUITTING:
            self._node.get_logger().info(f'asked to quit at {simulation.time:g} s')
        if self._is_stopped:
            simulation.reset()
        if target == states.STATE_QUITTING:
            simulation.quit()

    def reset_simulation(self, request: Any, _: Any) -> None:
        """Go back to the start, as a whole or in part."""
        self._check_not_ended()
        kind, scope = type(request), int(request.scope)
        if scope in (kind.SCOPE_DEFAULT, kind.SCOPE_ALL):
            scope = kind.SCOPE_TIME | kind.SCOPE_STATE
        if scope & ~(kind.SCOPE_TIME | kind.SCOPE_STATE | kind.SCOPE_SPAWNED):
            raise _RefusedError(
                'OPERATION_FAILED',
                f'scope = {scope}, allowed: 0 or 255 (all), sums of 1 (time) and 2 (state)',
            )
        if scope == kind.SCOPE_SPAWNED:
            text = 'nothing can be spawned here: reset time or state'
            raise _RefusedError('FEATURE_UNSUPPORTED', text)
        self._simulation.reset(
            state=bool(scope & kind.SCOPE_STATE), time=bool(scope & kind.SCOPE_TIME)
        )

    # --- steps ---------------------------------------------------------------------------------

    def _check_can_step(self, steps: int) -> None:
        """Refuse steps that cannot be made now."""
        self._check_not_ended()
        if not self._simulation.started:
            text = 'the simulation has not begun: it waits for other nodes'
            raise _RefusedError('INCORRECT_STATE', text)
        problem, state = '', self._state()
        if state != self._states.STATE_PAUSED:
            # As the interface defines it, not INCORRECT_STATE.
            now = 'stopped' if state == self._states.STATE_STOPPED else 'playing'
            problem = f'the simulation is {now}: pause it before stepping'
        elif steps < 1:
            problem = f'steps = {steps}, allowed: 1 or more'
        elif self._simulation.stepping:
            problem = (
                'steps of another request are being simulated: wait, or stop them by setting the'
                ' state to 2 (paused)'
            )
        if problem:
            raise _RefusedError('OPERATION_FAILED', problem)

    async def step_simulation(self, request: Any, _: Any) -> None:
        """Make steps, and answer when they are made."""
        self._check_can_step(int(request.steps))
        done = Future()
        self.answering += 1
        try:
            self._simulation.step_many(
                int(request.steps), lambda left, reason: done.set_result((left, reason))
            )
            left, reason = await done
        finally:
            self.answering -= 1
        if left:
            text = f'{left} steps were not simulated: {reason}'
            raise _RefusedError('OPERATION_FAILED', text)
