"""
The services of ``simulation_interfaces`` on a simulator node, where that package is installed.

``simulation_interfaces`` is the package in which Gazebo, O3DE and Isaac Sim agree on the services
of a simulator. One of its steps is one sample here, because messages are published at samples. The
only entity is the machine. It is fixed to the ground, so that its pose cannot be set.

Only this module imports the package: 1.5 with Jazzy, 2.1 with newer distributions. Services that
the installed version does not have are omitted, with a log message; so is the action, which does
what a service does.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from longreach_node.simulation import Simulation
from longreach_node.stamps import stamp_of

_PACKAGE = 'simulation_interfaces'
_MESSAGES = ('Result', 'SimulationState', 'SimulatorFeatures', 'EntityCategory', 'EntityState')
# Services by type, in order of creation: the first one describes the others.
SERVICES = {
    'GetSimulatorFeatures': 'get_simulator_features',
    'GetSimulationState': 'get_simulation_state',
    'SetSimulationState': 'set_simulation_state',
    'StepSimulation': 'step_simulation',
    'ResetSimulation': 'reset_simulation',
    'GetEntities': 'get_entities',
    'GetEntityInfo': 'get_entity_info',
    'GetEntityState': 'get_entity_state',
    'GetEntitiesStates': 'get_entities_states',
}
# Features of each installed type, by the names in SimulatorFeatures.
_FEATURES = {
    'GetSimulationState': ('SIMULATION_STATE_GETTING',),
    'SetSimulationState': ('SIMULATION_STATE_SETTING', 'SIMULATION_STATE_PAUSE'),
    'StepSimulation': ('STEP_SIMULATION_SINGLE', 'STEP_SIMULATION_MULTIPLE'),
    'ResetSimulation': ('SIMULATION_RESET', 'SIMULATION_RESET_TIME', 'SIMULATION_RESET_STATE'),
    'GetEntities': ('ENTITY_CATEGORIES',),
    'GetEntityInfo': ('ENTITY_INFO_GETTING',),
    'GetEntityState': ('ENTITY_STATE_GETTING',),
}
_DESCRIPTION = (
    'Longreach: a step is one sample, 1 / publish_rate of simulation time; the entity is the'
    ' machine, which stands on the ground; in lockstep a step waits for its command'
)


def installed_types() -> tuple[dict[str, Any], list[str]]:
    """Return the installed types by name, none without the package, and the names it lacks."""
    types: dict[str, Any] = {}
    missing: list[str] = []
    for module, names in (('msg', _MESSAGES), ('srv', SERVICES)):
        try:
            found = import_module(f'{_PACKAGE}.{module}')
        except ImportError:
            return {}, []
        types |= {name: getattr(found, name) for name in names if hasattr(found, name)}
        missing += [name for name in names if not hasattr(found, name)]
    return types, missing


def add_standard_services(
    node: Node,
    simulation: Simulation[Any, Any],
    frame: str,
    types: Callable[[], tuple[dict[str, Any], list[str]]] = installed_types,
) -> StandardInterface | None:
    """
    Create the services on the node of a simulation; None when the package is not installed.

    ``frame`` is that of the entity's pose, ``types`` another source than the installed package.
    """
    found, missing = types()
    log = node.get_logger()
    if missing:
        log.info(f'the installed {_PACKAGE} lacks {", ".join(missing)}: left out')
    if not found:
        log.info(f'{_PACKAGE} is not installed: its services are left out')
        return None
    interface = StandardInterface(node, simulation, frame, found)
    # A step lasts for many callbacks of the other groups.
    group = ReentrantCallbackGroup()
    for kind, name in SERVICES.items():
        if kind in found:
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
        self, node: Node, simulation: Simulation[Any, Any], frame: str, types: dict[str, Any]
    ) -> None:
        self._node, self._simulation, self._frame = node, simulation, frame
        self._types = types
        self._codes = types['Result']
        self._states = types['SimulationState']
        self._entity = node.get_namespace().strip('/').replace('/', '_') or node.get_name()
        self._is_stopped = False
        # Requests of steps whose response is still to be sent.
        self.answering = 0

    def callback(self, name: str) -> Callable[[Any, Any], Any]:
        """Return the callback of a service: one of the methods below fills in its response."""
        method = getattr(self, name)
        if name == 'step_simulation':

            async def wait(request: Any, response: Any) -> Any:
                with self._result_in(response):
                    await method(request, response)
                return response

            return wait

        def answer(request: Any, response: Any) -> Any:
            with self._result_in(response):
                method(request, response)
            return response

        return answer

    @contextlib.contextmanager
    def _result_in(self, response: Any) -> Iterator[None]:
        """Write into a response that the block has succeeded, or why it was refused."""
        try:
            yield
        except _RefusedError as refusal:
            # Some services have results of their own.
            own = getattr(type(response), refusal.kind, None)
            common = getattr(self._codes, f'RESULT_{refusal.kind}', None)
            response.result.result = common if own is None else own
            response.result.error_message = str(refusal)
        else:
            if hasattr(response, 'result'):
                response.result.result = self._codes.RESULT_OK

    def _check_not_ended(self) -> None:
        """Refuse a request after the end."""
        if self._simulation.ended:
            raise _RefusedError('INCORRECT_STATE', 'the simulation has ended')

    # --- features and states -------------------------------------------------------------------

    def get_simulator_features(self, _: Any, response: Any) -> None:
        """List what this simulator does; this response has no result."""
        known = self._types['SimulatorFeatures']
        names = [name for kind in self._types for name in _FEATURES.get(kind, ())]
        # An older version has no number for a newer feature.
        numbers = {getattr(known, name) for name in names if hasattr(known, name)}
        response.features.features = sorted(numbers)
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
        if self._is_stopped:
            simulation.reset()
        if target == states.STATE_QUITTING:
            self._node.get_logger().info(f'told to quit at {simulation.time:g} s')
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

    # --- entities ------------------------------------------------------------------------------

    def get_entities(self, request: Any, response: Any) -> None:
        """Return the names of the entities that pass the filters."""
        response.entities = [self._entity] * self._passes(request.filters)

    def get_entities_states(self, request: Any, response: Any) -> None:
        """Return names and states of the entities that pass the filters."""
        self.get_entities(request, response)
        response.states = [self._types['EntityState']() for _ in response.entities]
        for state in response.states:
            self._fill_in(state)

    def get_entity_info(self, request: Any, response: Any) -> None:
        """Return what an entity is."""
        self._check_entity(request.entity)
        response.info.category.category = self._types['EntityCategory'].CATEGORY_ROBOT
        response.info.description = 'a machine on the ground; its joints are in joint_states'

    def get_entity_state(self, request: Any, response: Any) -> None:
        """Return where an entity is: the machine at the origin of its root frame, at rest."""
        self._check_entity(request.entity)
        self._fill_in(response.state)

    def _passes(self, filters: Any) -> bool:
        """Return whether the machine passes filters."""
        if filters.tags.tags or filters.bounds.points:
            text = 'neither tags nor bounds are supported here: leave them empty'
            raise _RefusedError('FEATURE_UNSUPPORTED', text)
        pattern = filters.filter
        try:
            # Python would take the classes of POSIX for sets of letters.
            if classes := re.search(r'\[[:.=].*?[:.=]\]', pattern):
                raise re.error(f'{classes[0]} is not supported, use ranges such as [a-z]')
            found = re.search(pattern, self._entity) is not None
        except re.error as error:
            text = f'filter = {pattern!r} is no regular expression here: {error}'
            raise _RefusedError('OPERATION_FAILED', text) from error
        robot = self._types['EntityCategory'].CATEGORY_ROBOT
        wanted = [category.category for category in filters.categories]
        return found and (not wanted or robot in wanted)

    def _fill_in(self, state: Any) -> None:
        """Fill in the state of the machine: a new message has the identity as its pose."""
        state.header.frame_id = self._frame
        state.header.stamp = stamp_of(self._simulation.nanoseconds)

    def _check_entity(self, entity: str) -> None:
        """Refuse a name that no entity has."""
        if entity != self._entity:
            raise _RefusedError('NOT_FOUND', f'entity = {entity!r}, allowed: {self._entity}')
