"""
The answers of a simulator node to the services of ``simulation_interfaces``; without a node.

``simulation_interfaces`` is the package in which Gazebo, O3DE and Isaac Sim agree on the services
of a simulator. One of its steps is one sample here, because messages are published at samples. The
only entity is the machine. It is fixed to the ground, so that its pose cannot be set.

Types and constants are those of the installed version, passed to the class: 1.5 with Jazzy, 2.1
with newer distributions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Protocol

from rclpy.task import Future

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
    'SetEntityState': 'set_entity_state',
}
# Features of each installed type, by the names in SimulatorFeatures.
_FEATURES = {
    'GetSimulationState': ('SIMULATION_STATE_GETTING',),
    'SetSimulationState': ('SIMULATION_STATE_SETTING', 'SIMULATION_STATE_PAUSE'),
    'StepSimulation': ('STEP_SIMULATION_SINGLE', 'STEP_SIMULATION_MULTIPLE'),
    'SimulateSteps': ('STEP_SIMULATION_MULTIPLE', 'STEP_SIMULATION_ACTION'),
    'ResetSimulation': ('SIMULATION_RESET', 'SIMULATION_RESET_TIME', 'SIMULATION_RESET_STATE'),
    'GetEntities': ('ENTITY_CATEGORIES',),
    'GetEntityInfo': ('ENTITY_INFO_GETTING',),
    'GetEntityState': ('ENTITY_STATE_GETTING',),
}
_ABOUT = (
    'Longreach: a step is one sample, 1 / publish_rate of simulation time; the entity is the'
    ' machine, which stands on the ground; in lockstep a step waits for its command'
)
_CANCELLED = 'the goal was cancelled'
# Parts of a POSIX extended regular expression: a bracket expression, an escaped character,
# repeated quantifiers, a quantifier after an opening parenthesis, any other character.
_PARTS = re.compile(r'\[\^?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]|\\.|[*+?}][*+?{]|\(\?|.', re.DOTALL)
_CLASSES = {
    'alnum': 'A-Za-z0-9', 'alpha': 'A-Za-z', 'blank': ' \t', 'cntrl': r'\x00-\x1f\x7f',
    'digit': '0-9', 'graph': '!-~', 'lower': 'a-z', 'print': ' -~', 'punct': r'!-/:-@\[-`{-~',
    'space': r'\s', 'upper': 'A-Z', 'xdigit': 'A-Fa-f0-9',
}  # fmt: skip


def _python_pattern(pattern: str) -> str:
    """Translate a POSIX extended regular expression; re.error for what POSIX does not define."""
    parts = _PARTS.findall(pattern)
    for part in parts:
        if len(part) > 1 and part[0] != '[' and (part[0] != '\\' or part[1].isalnum()):
            raise re.error(f'{part} is not defined there')
    return ''.join(
        _python_set(part) if len(part) > 1 and part[0] == '[' else part for part in parts
    )


def _python_set(bracket: str) -> str:
    """Translate a bracket expression, in which a backslash stands for itself."""
    inverse, first, rest = re.fullmatch(r'\[(\^?)(\]?)(.*)\]', bracket, re.DOTALL).groups()  # type: ignore[union-attr]
    text = ''
    for part in re.findall(r'\[[:.=].*?[:.=]\]|.', rest, re.DOTALL):
        if len(part) == 1:
            text += part if part in '-^' else re.escape(part)
        elif part[2:-2] in _CLASSES and part[1] == part[-2] == ':':
            text += _CLASSES[part[2:-2]]
        else:
            raise re.error(f'{part} is none of [:{":], [:".join(_CLASSES)}:]')
    return f'[{inverse}{re.escape(first)}{text}]'


class Simulated(Protocol):
    """Interface of a simulator node."""

    entity: str
    frame: str

    @property
    def sample(self) -> int:
        """Number of the present sample."""

    @property
    def paused(self) -> bool:
        """Whether time stands still."""

    @property
    def stepping(self) -> bool:
        """Whether samples of ``step_many`` are left."""

    @property
    def started(self) -> bool:
        """Whether the first sample was published."""

    @property
    def ended(self) -> bool:
        """Whether the last sample was published."""

    def pause(self) -> None:
        """Stop time."""

    def resume(self) -> None:
        """Let time go on."""

    def reset(self, state: bool = True, time: bool = True) -> None:
        """Go back to the initial state, or to time 0, or to both."""

    def step_many(
        self, count: int, on_done: Callable[[int, str], None], on_step: Callable[[int], None]
    ) -> None:
        """Advance by some samples."""

    def stop_steps(self, reason: str) -> None:
        """Make no more of them."""

    def stamp(self) -> Any:
        """Return simulation time as a message."""

    def quit(self) -> None:
        """End the node, once :attr:`StandardInterface.answering` is 0."""


class StandardInterface:
    """
    Callbacks of the services.

    Parameters
    ----------
    simulated : Simulated
    types : mapping of str to type
        The installed messages, services and action by name; at least ``Result`` and
        ``SimulationState``.
    """

    def __init__(self, simulated: Simulated, types: dict[str, Any]) -> None:
        self._simulated = simulated
        self._types = types
        self._result = types['Result']
        self._states = types['SimulationState']
        self._is_stopped = False
        # Requests of steps whose response is still to be sent.
        self.answering = 0
        # The goal whose steps are being made.
        self._goal: Any = None
        # The action server, which nothing else keeps.
        self.action: Any = None

    # --- features and states -------------------------------------------------------------------

    def get_simulator_features(self, _: Any, response: Any) -> Any:
        """List what this simulator does."""
        known = self._types['SimulatorFeatures']
        names = [name for kind in self._types for name in _FEATURES.get(kind, ())]
        # An older version has no number for a newer feature.
        numbers = {getattr(known, name) for name in names if hasattr(known, name)}
        response.features.features = sorted(numbers)
        response.features.custom_info = _ABOUT
        return response

    def _state(self) -> int:
        """Return the simulation's state as a number of SimulationState."""
        simulated = self._simulated
        if simulated.ended:
            return int(self._states.STATE_QUITTING)
        if not simulated.paused:
            return int(self._states.STATE_PLAYING)
        if self._is_stopped and simulated.sample == 0:
            return int(self._states.STATE_STOPPED)
        return int(self._states.STATE_PAUSED)

    def get_simulation_state(self, _: Any, response: Any) -> Any:
        """Return the state."""
        response.state.state = self._state()
        return self._ok(response)

    def set_simulation_state(self, request: Any, response: Any) -> Any:
        """Stop, play, pause or quit."""
        states, simulated, target = self._states, self._simulated, int(request.state.state)
        # Paused is also the state between steps, which a request to pause stops.
        if target == self._state() and not simulated.stepping:
            response.result.result = type(response).ALREADY_IN_TARGET_STATE
            response.result.error_message = 'the simulation is in this state already'
            return response
        if simulated.ended:
            return self._refuse(response, 'INCORRECT_STATE', 'the simulation has ended')
        if target == states.STATE_PLAYING:
            self._is_stopped = False
            simulated.resume()
        elif target == states.STATE_PAUSED:
            self._is_stopped = False
            simulated.pause()
        elif target == states.STATE_STOPPED:
            self._stop()
        elif target == states.STATE_QUITTING:
            self._stop()
            simulated.quit()
        else:
            return self._refuse(
                response,
                'FEATURE_UNSUPPORTED',
                f'state = {target}, allowed: 0 (stopped), 1 (playing), 2 (paused), 3 (quitting)',
            )
        return self._ok(response)

    def _stop(self) -> None:
        """Pause at time 0."""
        self._simulated.pause()
        self._simulated.reset()
        self._is_stopped = True

    def reset_simulation(self, request: Any, response: Any) -> Any:
        """Go back to the start, as a whole or in part."""
        if self._simulated.ended:
            return self._refuse(response, 'INCORRECT_STATE', 'the simulation has ended')
        kind, scope = type(request), int(request.scope)
        if scope in (kind.SCOPE_DEFAULT, kind.SCOPE_ALL):
            scope = kind.SCOPE_TIME | kind.SCOPE_STATE
        known = kind.SCOPE_TIME | kind.SCOPE_STATE | kind.SCOPE_SPAWNED
        if scope & ~known:
            return self._refuse(
                response,
                'OPERATION_FAILED',
                f'scope = {scope}, allowed: 0 or 255 (all), sums of 1 (time) and 2 (state)',
            )
        if not scope & ~kind.SCOPE_SPAWNED:
            return self._refuse(
                response, 'FEATURE_UNSUPPORTED', 'nothing can be spawned here: reset time or state'
            )
        self._simulated.reset(
            state=bool(scope & kind.SCOPE_STATE), time=bool(scope & kind.SCOPE_TIME)
        )
        return self._ok(response)

    # --- steps ---------------------------------------------------------------------------------

    def _refusal_of_steps(self, steps: int) -> tuple[str, str]:
        """Return the kind of result and the text for steps that cannot be made now."""
        if self._simulated.ended:
            return 'INCORRECT_STATE', 'the simulation has ended'
        if not self._simulated.started:
            return 'INCORRECT_STATE', 'the simulation has not begun: it waits for other nodes'
        state = self._state()
        if state != self._states.STATE_PAUSED:
            # As the interface defines it, not INCORRECT_STATE.
            now = 'stopped' if state == self._states.STATE_STOPPED else 'playing'
            return 'OPERATION_FAILED', f'the simulation is {now}: pause it before stepping'
        if steps < 1:
            return 'OPERATION_FAILED', f'steps = {steps}, allowed: 1 or more'
        if self._simulated.stepping:
            return 'OPERATION_FAILED', (
                'steps of another request are being simulated: wait, or stop them by setting the'
                ' state to 2 (paused)'
            )
        return '', ''

    async def step_simulation(self, request: Any, response: Any) -> Any:
        """Make steps, and answer when they are made."""
        kind, text = self._refusal_of_steps(int(request.steps))
        if kind:
            return self._refuse(response, kind, text)
        left, reason = await self._steps(int(request.steps), lambda _: None)
        return self._refuse_rest(response, left, reason) if left else self._ok(response)

    async def simulate_steps(self, goal: Any) -> Any:
        """Make steps as an action, with feedback after each."""
        action = self._types['SimulateSteps']
        result, steps = action.Result(), int(goal.request.steps)
        if goal.is_cancel_requested:
            # Before this goal's turn came.
            goal.canceled()
            return self._refuse_rest(result, steps, _CANCELLED)
        kind, text = self._refusal_of_steps(steps)
        if kind:
            goal.abort()
            return self._refuse(result, kind, text)

        def on_step(left: int) -> None:
            goal.publish_feedback(
                action.Feedback(completed_steps=steps - left, remaining_steps=left)
            )

        left, reason = await self._steps(steps, on_step, goal)
        if not left:
            goal.succeed()
            return self._ok(result)
        if goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return self._refuse_rest(result, left, reason)

    def cancel_steps(self, goal: Any) -> None:
        """Make no more steps of a goal; those of another request go on."""
        if goal is self._goal:
            self._simulated.stop_steps(_CANCELLED)

    async def _steps(
        self, steps: int, on_step: Callable[[int], None], goal: Any = None
    ) -> tuple[int, str]:
        """Make steps; return the number of those that were not made, and why not."""
        done = Future()

        def on_done(left: int, reason: str) -> None:
            self._goal = None
            done.set_result((left, reason))

        self.answering += 1
        self._goal = goal
        try:
            self._simulated.step_many(steps, on_done, on_step)
            left, reason = await done
        finally:
            self.answering -= 1
        return left, reason

    def _refuse_rest(self, response: Any, left: int, reason: str) -> Any:
        """Return an answer for steps that were not all made."""
        return self._refuse(
            response, 'OPERATION_FAILED', f'{left} steps were not simulated: {reason}'
        )

    # --- entities ------------------------------------------------------------------------------

    def get_entities(self, request: Any, response: Any) -> Any:
        """Return the names of the entities that pass the filters."""
        names, kind, text = self._filtered(request.filters)
        response.entities = names
        return self._refuse(response, kind, text) if kind else self._ok(response)

    def get_entities_states(self, request: Any, response: Any) -> Any:
        """Return names and states of the entities that pass the filters."""
        names, kind, text = self._filtered(request.filters)
        response.entities = names
        response.states = [self._filled(self._types['EntityState']()) for _ in names]
        return self._refuse(response, kind, text) if kind else self._ok(response)

    def get_entity_info(self, request: Any, response: Any) -> Any:
        """Return what an entity is."""
        if request.entity != self._simulated.entity:
            return self._unknown(response, request.entity)
        response.info.category.category = self._types['EntityCategory'].CATEGORY_ROBOT
        response.info.description = 'a machine on the ground; its joints are in joint_states'
        return self._ok(response)

    def get_entity_state(self, request: Any, response: Any) -> Any:
        """Return where an entity is: the machine at the origin of its root frame, at rest."""
        if request.entity != self._simulated.entity:
            return self._unknown(response, request.entity)
        self._filled(response.state)
        return self._ok(response)

    def set_entity_state(self, request: Any, response: Any) -> Any:
        """Refuse to move the machine."""
        if request.entity != self._simulated.entity:
            return self._unknown(response, request.entity)
        return self._refuse(
            response,
            'FEATURE_UNSUPPORTED',
            f'{request.entity} stands on the ground and cannot be moved; send commands to its'
            ' joints, or choose a pose in its scenario',
        )

    def _filtered(self, filters: Any) -> tuple[list[str], str, str]:
        """Return the names that pass, and the kind and text of a refusal."""
        if filters.tags.tags:
            return [], 'FEATURE_UNSUPPORTED', 'entities have no tags here: leave tags empty'
        try:
            found = re.search(_python_pattern(filters.filter), self._simulated.entity) is not None
        except re.error as error:
            text = f'filter = {filters.filter!r} is no POSIX extended regular expression: {error}'
            return [], 'OPERATION_FAILED', text
        bounds, points = filters.bounds, filters.bounds.points
        if points:
            if bounds.type != bounds.TYPE_SPHERE:
                text = f'bounds.type = {bounds.type}, allowed: {bounds.TYPE_SPHERE}, a sphere'
                return [], 'FEATURE_UNSUPPORTED', text
            if len(points) != 2 or not points[1].x >= 0.0:
                text = 'bounds.points of a sphere: centre, then the radius as x, 0 or more [m]'
                return [], 'OPERATION_FAILED', text
            # The machine is at the origin of its root frame.
            found = found and math.hypot(*(getattr(points[0], i) for i in 'xyz')) <= points[1].x
        robot = self._types['EntityCategory'].CATEGORY_ROBOT
        wanted = [category.category for category in filters.categories]
        passes = found and (not wanted or robot in wanted)
        return [self._simulated.entity] * passes, '', ''

    def _filled(self, state: Any) -> Any:
        """Return the state of the machine: a new message has the identity as its pose."""
        state.header.frame_id = self._simulated.frame
        state.header.stamp = self._simulated.stamp()
        return state

    def _unknown(self, response: Any, entity: str) -> Any:
        """Refuse a name that no entity has."""
        return self._refuse(
            response, 'NOT_FOUND', f'entity = {entity!r}, allowed: {self._simulated.entity}'
        )

    # --- results -------------------------------------------------------------------------------

    def _ok(self, response: Any) -> Any:
        """Return a successful answer."""
        response.result.result = self._result.RESULT_OK
        return response

    def _refuse(self, response: Any, kind: str, text: str) -> Any:
        """Return an answer with an error code and text."""
        response.result.result = getattr(self._result, f'RESULT_{kind}')
        response.result.error_message = text
        return response
