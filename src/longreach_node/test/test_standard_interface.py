"""
The services of simulation_interfaces, with stand-ins of the generated types.

The stand-ins have the fields and constants of versions 1.5 and 2.1, and refuse any other name.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import types as python_types
from types import SimpleNamespace
from typing import Any

import pytest
from geometry_msgs.msg import Accel, Pose, Twist, Vector3
from rclpy.action.server import CancelResponse
from rclpy.task import Future
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from longreach_dynamics.errors import LongreachError
from longreach_dynamics.machine import JointSample
from longreach_node import simulation_interfaces
from longreach_node.entry import spin_until
from longreach_node.parameters import declare
from longreach_node.simulation_interfaces import add_standard_services, installed_types
from longreach_node.simulator import SimulatorNode
from longreach_node.simulator_parameters import SimulatorParameters
from longreach_node.standard_interface import SERVICES, StandardInterface
from longreach_node.testing import bench


def message(name: str, constants: dict[str, int] | None = None, **fields: Any) -> type:
    """Return a class with these fields, each a factory of its default, and no others."""
    cls = dataclasses.make_dataclass(
        name,
        [(key, Any, dataclasses.field(default_factory=make)) for key, make in fields.items()],
        slots=True,
    )
    for key, value in (constants or {}).items():
        setattr(cls, key, value)
    return cls


Result = message(
    'Result',
    {
        'RESULT_FEATURE_UNSUPPORTED': 0,
        'RESULT_OK': 1,
        'RESULT_NOT_FOUND': 2,
        'RESULT_INCORRECT_STATE': 3,
        'RESULT_OPERATION_FAILED': 4,
    },
    result=int,
    error_message=str,
)
UNSUPPORTED, OK, NOT_FOUND, INCORRECT, FAILED = range(5)
SimulationState = message(
    'SimulationState',
    {'STATE_STOPPED': 0, 'STATE_PLAYING': 1, 'STATE_PAUSED': 2, 'STATE_QUITTING': 3},
    state=int,
)
STOPPED, PLAYING, PAUSED, QUITTING = range(4)
FEATURES = {
    'SPAWNING': 0,
    'ENTITY_TAGS': 4,
    'ENTITY_CATEGORIES': 8,
    'ENTITY_STATE_GETTING': 10,
    'ENTITY_STATE_SETTING': 11,
    'ENTITY_INFO_GETTING': 12,
    'SIMULATION_RESET': 20,
    'SIMULATION_RESET_TIME': 21,
    'SIMULATION_RESET_STATE': 22,
    'SIMULATION_RESET_SPAWNED': 23,
    'SIMULATION_STATE_GETTING': 24,
    'SIMULATION_STATE_SETTING': 25,
    'SIMULATION_STATE_PAUSE': 26,
    'STEP_SIMULATION_SINGLE': 31,
    'STEP_SIMULATION_MULTIPLE': 32,
    'STEP_SIMULATION_ACTION': 33,
}
SimulatorFeatures = message(
    'SimulatorFeatures', FEATURES, features=list, spawn_formats=list, custom_info=str
)
EntityCategory = message(
    'EntityCategory', {'CATEGORY_OBJECT': 0, 'CATEGORY_ROBOT': 1}, category=int
)
EntityInfo = message('EntityInfo', category=EntityCategory, description=str, tags=list)
EntityState = message('EntityState', header=Header, pose=Pose, twist=Twist, acceleration=Accel)
TagsFilter = message('TagsFilter', {'FILTER_MODE_ANY': 0, 'FILTER_MODE_ALL': 1}, tags=list)
Bounds = message(
    'Bounds', {'TYPE_EMPTY': 0, 'TYPE_BOX': 1, 'TYPE_SPHERE': 3}, type=int, points=list
)
EntityFilters = message(
    'EntityFilters', filter=str, categories=list, tags=TagsFilter, bounds=Bounds
)


def service(
    request: dict[str, Any],
    response: dict[str, Any],
    on_request: dict[str, int] | None = None,
    on_response: dict[str, int] | None = None,
) -> SimpleNamespace:
    return SimpleNamespace(
        Request=message('Request', on_request, **request),
        Response=message('Response', on_response, **response),
    )


SCOPES = {
    'SCOPE_DEFAULT': 0,
    'SCOPE_TIME': 1,
    'SCOPE_STATE': 2,
    'SCOPE_SPAWNED': 4,
    'SCOPE_ALL': 255,
}
SimulateSteps = SimpleNamespace(
    Goal=message('Goal', steps=int),
    Result=message('Result', result=Result),
    Feedback=message('Feedback', completed_steps=int, remaining_steps=int),
)
TYPES: dict[str, Any] = {
    'Result': Result,
    'SimulationState': SimulationState,
    'SimulatorFeatures': SimulatorFeatures,
    'EntityCategory': EntityCategory,
    'EntityState': EntityState,
    'GetSimulatorFeatures': service({}, {'features': SimulatorFeatures}),
    'GetSimulationState': service({}, {'state': SimulationState, 'result': Result}),
    'SetSimulationState': service(
        {'state': SimulationState},
        {'result': Result},
        on_response={
            'ALREADY_IN_TARGET_STATE': 101,
            'STATE_TRANSITION_ERROR': 102,
            'INCORRECT_TRANSITION': 103,
        },
    ),
    'StepSimulation': service({'steps': lambda: 1}, {'result': Result}),
    'ResetSimulation': service({'scope': int}, {'result': Result}, on_request=SCOPES),
    'GetEntities': service({'filters': EntityFilters}, {'result': Result, 'entities': list}),
    'GetEntityInfo': service({'entity': str}, {'result': Result, 'info': EntityInfo}),
    'GetEntityState': service({'entity': str}, {'result': Result, 'state': EntityState}),
    'GetEntitiesStates': service(
        {'filters': EntityFilters}, {'result': Result, 'entities': list, 'states': list}
    ),
    'SetEntityState': service(
        {
            'entity': str,
            'state': EntityState,
            'set_pose': bool,
            'set_twist': bool,
            'set_acceleration': bool,
        },
        {'result': Result},
        on_response={'INVALID_POSE': 101},
    ),
    'SimulateSteps': SimulateSteps,
}


class Pendulum:
    """An oscillator, so that states have many digits."""

    def initial_state(self) -> tuple[float, float]:
        return 0.1, 0.0

    def advance(
        self, state: tuple[float, float], command: float, time: float, duration: float
    ) -> tuple[float, float]:
        angle, rate = state
        rate += (command - 9.81 * angle + 1e-3 * time) * duration
        return angle + rate * duration, rate

    def joint_sample(self, state: tuple[float, float], _: float) -> JointSample:
        return JointSample(('x',), state[:1], state[1:], (0.0,))


class Toy(SimulatorNode[tuple[float, float], float]):
    """A machine whose outputs nobody hears."""

    def __init__(self) -> None:
        super().__init__('plant', safe_command=0.0)
        self.start(Pendulum(), declare(self, SimulatorParameters))

    def publish_outputs(self, nanoseconds: int) -> None:
        """Publish nothing."""


class Rig:
    """A plant in the namespace crane, and the interface to it, called without transport."""

    def __init__(self, b: Any, types: dict[str, Any] = TYPES) -> None:
        self.bench = b
        self.plant = b.add(Toy)
        # Stand-ins have no transport: the callbacks are called directly.
        made: dict[str, Any] = {}
        create = self.plant.create_service
        self.plant.create_service = lambda _, name, callback, **__: made.update({name: callback})
        self.interface: StandardInterface = add_standard_services(
            self.plant, lambda: ({k: v for k, v in types.items() if k != 'SimulateSteps'}, [])
        )
        self.interface._types.update(types)
        self.plant.create_service = create
        self.plant.standard = self.interface
        self.services = made
        b.until(lambda: self.plant.simulation.started, 'start')

    def call(self, kind: str, **fields: Any) -> Any:
        """Call a service and return its response."""
        callback = self.services[f'~/{SERVICES[kind]}']
        answer = callback(TYPES[kind].Request(**fields), TYPES[kind].Response())
        if not hasattr(answer, 'send'):
            return answer
        return self.finish(answer)

    def finish(self, coroutine: Any) -> Any:
        """Let a coroutine end in the nodes' executor."""
        task = self.begin(coroutine)
        self.bench.until(task.done, 'end of the coroutine')
        return task.result()

    def begin(self, coroutine: Any) -> Any:
        """Let a coroutine begin in the nodes' executor."""

        async def run() -> Any:
            return await coroutine

        return self.bench._executor.create_task(run)

    def state(self) -> int:
        return int(self.call('GetSimulationState').state.state)

    def set_state(self, state: int) -> tuple[int, str]:
        response = self.call('SetSimulationState', state=SimulationState(state=state))
        return response.result.result, response.result.error_message


class Goal:
    """Stands for rclpy's goal handle."""

    def __init__(self, steps: int) -> None:
        self.request = SimulateSteps.Goal(steps=steps)
        self.is_cancel_requested = False
        self.feedback: list[tuple[int, int]] = []
        self.ended = ''

    def publish_feedback(self, feedback: Any) -> None:
        self.feedback.append((feedback.completed_steps, feedback.remaining_steps))

    def succeed(self) -> None:
        self.ended = 'succeeded'

    def abort(self) -> None:
        self.ended = 'aborted'

    def canceled(self) -> None:
        self.ended = 'canceled'


def words(**parameters: object) -> list[str]:
    both = {'start_paused': 'true', 'start_timeout': 0.0, **parameters}
    return [
        '-r',
        '__ns:=/crane',
        *(word for k, v in both.items() for word in ('-p', f'{k}:={v}')),
    ]


def test_features() -> None:
    with bench(*words()) as b:
        features = Rig(b).call('GetSimulatorFeatures').features
    assert features.features == [8, 10, 12, 20, 21, 22, 24, 25, 26, 31, 32, 33]
    assert 'a step is one sample' in features.custom_info


def test_features_of_an_older_version() -> None:
    known = {k: v for k, v in FEATURES.items() if k != 'STEP_SIMULATION_ACTION'}
    older = {
        k: v
        for k, v in TYPES.items()
        if k in ('Result', 'SimulationState', 'GetSimulatorFeatures', 'GetSimulationState')
    }
    older['SimulatorFeatures'] = message(
        'SimulatorFeatures', known, features=list, custom_info=str
    )
    response = TYPES['GetSimulatorFeatures'].Response()
    StandardInterface(SimpleNamespace(), older).get_simulator_features(None, response)
    assert response.features.features == [24]


def test_states() -> None:
    with bench(*words()) as b:
        rig = Rig(b)
        assert rig.state() == PAUSED
        assert rig.set_state(PAUSED) == (101, 'the simulation is in this state already')
        assert rig.set_state(PLAYING) == (OK, '')
        assert rig.state() == PLAYING
        b.until(lambda: rig.plant.sample > 3, 'running')
        assert rig.set_state(PAUSED) == (OK, '')
        assert rig.plant.sample > 3
        assert rig.set_state(STOPPED) == (OK, '')
        assert (rig.state(), rig.plant.sample) == (STOPPED, 0)
        assert rig.set_state(PAUSED) == (OK, '')
        assert rig.state() == PAUSED
        code, text = rig.set_state(4)
        assert code == UNSUPPORTED
        assert text.startswith('state = 4, allowed: 0 (stopped), 1 (playing)')
        assert rig.set_state(QUITTING) == (OK, '')
        assert rig.state() == QUITTING
        assert rig.set_state(PLAYING)[0] == INCORRECT
        assert rig.call('ResetSimulation').result.result == INCORRECT
        b.until(rig.plant.done.done, 'end')


def test_a_stopped_simulation_is_resumed_by_its_own_service() -> None:
    with bench(*words()) as b:
        rig = Rig(b)
        rig.set_state(STOPPED)
        assert b.call(Trigger, 'plant/resume').success
        assert rig.state() == PLAYING


def test_steps_need_a_pause() -> None:
    with bench(*words()) as b:
        rig = Rig(b)
        for state, text in ((PLAYING, 'playing'), (STOPPED, 'stopped')):
            rig.set_state(state)
            before = rig.plant.sample
            result = rig.call('StepSimulation').result
            assert result.result == FAILED
            assert result.error_message == f'the simulation is {text}: pause it before stepping'
            assert rig.plant.sample == before or state == PLAYING
        rig.set_state(PAUSED)
        assert rig.call('StepSimulation', steps=0).result.result == FAILED
        assert rig.call('StepSimulation').result.result == OK
        assert rig.plant.sample == 1
        assert rig.call('StepSimulation', steps=250).result.result == OK
        assert (rig.plant.sample, rig.state()) == (251, PAUSED)


def test_steps_before_the_start() -> None:
    with bench(*words(start_timeout=60.0, listeners=5)) as b:
        plant = b.add(Toy)
        interface = add_standard_services(plant, lambda: ({}, []))
        assert interface is None
        rig = Rig.__new__(Rig)
        simulated = SimpleNamespace(ended=False, started=False, paused=True, sample=0)
        standard = StandardInterface(simulated, TYPES)
        coroutine = standard.step_simulation(
            TYPES['StepSimulation'].Request(), TYPES['StepSimulation'].Response()
        )
        rig.bench = b
        result = rig.finish(coroutine).result
    assert (result.result, result.error_message) == (
        INCORRECT,
        'the simulation has not begun: it waits for other nodes',
    )


def test_equal_steps_after_a_reset_give_equal_bits() -> None:
    with bench(*words()) as b:
        rig = Rig(b)
        states = []
        for _ in range(3):
            rig.call('StepSimulation', steps=137)
            states.append(rig.plant.state)
            assert rig.call('ResetSimulation', scope=255).result.result == OK
            assert (rig.plant.state, rig.plant.sample) == ((0.1, 0.0), 0)
    assert states[0] == states[1] == states[2] != (0.1, 0.0)


@pytest.mark.parametrize(
    ('scope', 'code', 'state', 'sample'),
    [
        (0, OK, False, False),
        (1, OK, True, False),
        (2, OK, False, True),
        (3, OK, False, False),
        (7, OK, False, False),
        (255, OK, False, False),
        (4, UNSUPPORTED, True, True),
        (8, FAILED, True, True),
        (9, FAILED, True, True),
    ],
)
def test_scopes_of_a_reset(scope: int, code: int, state: bool, sample: bool) -> None:
    with bench(*words()) as b:
        rig = Rig(b)
        rig.call('StepSimulation', steps=5)
        before = rig.plant.state
        result = rig.call('ResetSimulation', scope=scope).result
        assert (result.result, bool(result.error_message)) == (code, code != OK)
        assert rig.plant.state == (before if state else (0.1, 0.0))
        assert rig.plant.sample == (5 if sample else 0)


def test_the_action() -> None:
    with bench(*words()) as b:
        rig = Rig(b)
        goal = Goal(4)
        result = rig.finish(rig.interface.simulate_steps(goal))
        assert (goal.ended, result.result.result) == ('succeeded', OK)
        assert goal.feedback == [(1, 3), (2, 2), (3, 1), (4, 0)]
        rig.set_state(PLAYING)
        goal = Goal(4)
        result = rig.finish(rig.interface.simulate_steps(goal))
        assert (goal.ended, result.result.result, goal.feedback) == ('aborted', FAILED, [])


INTERRUPTIONS = {
    'cancel': ('canceled', 'the goal was cancelled'),
    'resume': ('aborted', 'the simulation was resumed'),
    'play': ('aborted', 'the simulation was resumed'),
    'pause': ('aborted', 'the simulation was paused'),
    'stop': ('aborted', 'the simulation was paused'),
    'reset': ('aborted', 'the simulation was reset'),
    'quit': ('aborted', 'the simulation was paused'),
    'end': ('aborted', 'the simulation has ended'),
}


@pytest.mark.parametrize('how', INTERRUPTIONS)
def test_the_action_is_interrupted(how: str) -> None:
    end, reason = INTERRUPTIONS[how]
    with bench(*words(duration=1.0 if how == 'end' else 0.0)) as b:
        rig = Rig(b)
        goal = Goal(10**9)
        task = rig.begin(rig.interface.simulate_steps(goal))
        b.until(lambda: len(goal.feedback) > 5, 'feedback')
        states = {'play': PLAYING, 'pause': PAUSED, 'stop': STOPPED, 'quit': QUITTING}
        if how == 'cancel':
            goal.is_cancel_requested = True
            rig.interface.cancel_steps(goal)
        elif how in states:
            assert rig.set_state(states[how]) == (OK, '')
        elif how == 'reset':
            assert rig.call('ResetSimulation').result.result == OK
        elif how == 'resume':
            rig.plant.simulation.resume()
        if how in ('quit', 'end'):
            # The node's process ends with this future: the result must be there before.
            b.until(rig.plant.done.done, 'end of the node')
        else:
            b.until(task.done, 'end of the action')
        assert task.done()
        assert goal.ended == end
        assert task.result().result.result == FAILED
        text = task.result().result.error_message
        assert text.endswith(f'steps were not simulated: {reason}')
        made = len(goal.feedback)
        b.until(lambda: rig.plant.sample > 3 or how in ('stop', 'reset', 'quit'))
        assert len(goal.feedback) == made


def test_steps_that_fail_get_their_response_before_the_node_ends() -> None:
    with bench(*words()) as b:
        rig = Rig(b)
        goal = Goal(10**9)
        task = rig.begin(rig.interface.simulate_steps(goal))
        b.until(lambda: len(goal.feedback) > 5, 'feedback')

        def diverge(*_: float) -> tuple[float, float]:
            raise LongreachError('the pendulum diverges')

        rig.plant.machine.advance = diverge
        b.until(rig.plant.done.done, 'end of the node')
        assert task.done()
        assert task.result().result.error_message.endswith(
            'steps were not simulated: the pendulum diverges'
        )
        assert goal.ended == 'aborted'
        with pytest.raises(LongreachError, match='the pendulum diverges'):
            spin_until(b._executor, rig.plant.done)


def test_other_requests_while_steps_are_made() -> None:
    with bench(*words()) as b:
        rig = Rig(b)
        goal = Goal(10**9)
        task = rig.begin(rig.interface.simulate_steps(goal))
        b.until(lambda: len(goal.feedback) > 5, 'feedback')
        result = rig.call('StepSimulation').result
        assert result.result == FAILED
        assert result.error_message.startswith('steps of another request are being simulated')
        other = Goal(3)
        assert rig.finish(rig.interface.simulate_steps(other)).result.result == FAILED
        assert (other.ended, other.feedback) == ('aborted', [])
        # Neither does the end of another goal stop these steps.
        rig.interface.cancel_steps(other)
        assert not task.done()
        assert not b.call(Trigger, 'plant/step').success
        assert rig.call('GetEntities', filters=EntityFilters()).entities == ['crane']
        assert (rig.state(), rig.call('GetEntityState', entity='crane').result.result) == (2, OK)
        made = [done for done, _ in goal.feedback]
        assert made == list(range(1, len(made) + 1))
        goal.is_cancel_requested = True
        rig.interface.cancel_steps(goal)
        assert rig.call('StepSimulation', steps=2).result.result == OK
        b.until(task.done, 'end of the action')
        assert goal.ended == 'canceled'
        assert rig.plant.sample == len(goal.feedback) + 2


def test_two_requests_of_steps_at_once() -> None:
    with bench(*words()) as b:
        rig = Rig(b)
        kind = TYPES['StepSimulation']
        tasks = [
            rig.begin(rig.interface.step_simulation(kind.Request(steps=50), kind.Response()))
            for _ in range(4)
        ]
        b.until(lambda: all(task.done() for task in tasks), 'responses')
        codes = sorted(task.result().result.result for task in tasks)
        assert codes == [OK, FAILED, FAILED, FAILED]
        assert rig.plant.sample == 50


def test_a_goal_that_is_cancelled_before_it_runs_makes_no_steps() -> None:
    with bench(*words()) as b:
        rig = Rig(b)
        goal = Goal(10**9)
        goal.is_cancel_requested = True
        rig.interface.cancel_steps(goal)
        result = rig.finish(rig.interface.simulate_steps(goal))
        assert (goal.ended, result.result.result, rig.plant.sample) == ('canceled', FAILED, 0)


def test_entities_are_listed_at_ten_times_real_time() -> None:
    with bench(*words(start_paused='false', real_time_factor=10.0)) as b:
        rig = Rig(b)
        for _ in range(50):
            assert rig.call('GetEntities', filters=EntityFilters()).entities == ['crane']
            assert rig.call('GetEntityState', entity='crane').result.result == OK
            b.until(lambda: rig.plant.sample > 0, 'samples')
        assert rig.state() == PLAYING


def test_entities() -> None:
    robot, thing = EntityCategory(category=1), EntityCategory(category=0)
    with bench(*words()) as b:
        rig = Rig(b)

        def found(**filters: Any) -> tuple[int, list[str]]:
            response = rig.call('GetEntities', filters=EntityFilters(**filters))
            assert bool(response.result.error_message) == (response.result.result != OK)
            return response.result.result, response.entities

        assert found() == (OK, ['crane'])
        assert found(filter='^cr.*') == (OK, ['crane'])
        assert found(filter='boom') == (OK, [])
        for classes in ('^[[:alpha:]]{5}$', '^c[^[:digit:][:upper:]]*$', r'^[]\[:lower:]-]+$'):
            assert found(filter=classes) == (OK, ['crane'])
        for undefined in ('(', r'\w+', '(?:crane)', 'c.*?', '[[:letter:]]', '[[.c.]]'):
            assert found(filter=undefined) == (FAILED, [])
        assert found(categories=[thing, robot]) == (OK, ['crane'])
        assert found(categories=[thing]) == (OK, [])
        assert found(tags=TagsFilter(tags=['red'])) == (UNSUPPORTED, [])
        corner, centre = Vector3(), Vector3(x=3.0, y=4.0)
        for bounds, expected in (
            (Bounds(type=1, points=[corner, centre]), (UNSUPPORTED, [])),
            (Bounds(type=3, points=[centre, Vector3(x=5.0)]), (OK, ['crane'])),
            (Bounds(type=3, points=[centre, Vector3(x=4.9)]), (OK, [])),
            (Bounds(type=3, points=[centre]), (FAILED, [])),
            (Bounds(type=3, points=[centre, Vector3(x=math.nan)]), (FAILED, [])),
        ):
            assert found(bounds=bounds) == expected
        info = rig.call('GetEntityInfo', entity='crane')
        assert (info.result.result, info.info.category.category) == (OK, 1)
        rig.call('StepSimulation', steps=3)
        state = rig.call('GetEntityState', entity='crane')
        assert state.result.result == OK
        assert state.state.header.frame_id == 'crane/world'
        assert state.state.header.stamp.nanosec == 30_000_000
        assert state.state.pose.orientation.w == 1.0
        both = rig.call('GetEntitiesStates')
        assert (both.result.result, both.entities) == (OK, ['crane'])
        assert both.states[0].header == state.state.header
        moved = rig.call('SetEntityState', entity='crane', set_pose=True)
        assert moved.result.result == UNSUPPORTED
        assert 'crane stands on the ground and cannot be moved' in moved.result.error_message
        for kind in ('GetEntityInfo', 'GetEntityState', 'SetEntityState'):
            result = rig.call(kind, entity='car').result
            assert result.result == NOT_FOUND
            assert result.error_message == "entity = 'car', allowed: crane"


def test_the_action_server(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        simulation_interfaces,
        'ActionServer',
        lambda *arguments, **named: made.append((*arguments, named)),
    )
    with bench(*words()) as b:
        plant = b.add(Toy)
        only = {k: v for k, v in TYPES.items() if k not in SERVICES or k == 'GetSimulatorFeatures'}
        plant.create_service = lambda *_, **__: None
        add_standard_services(plant, lambda: (only, []))
        ((node, kind, name, execute, named),) = made
        assert (node, kind, name) == (plant, SimulateSteps, '~/simulate_steps')
        b.until(lambda: plant.simulation.started, 'start')
        goal = Goal(10**9)
        coroutine = execute(goal)
        coroutine.send(None)
        goal.is_cancel_requested = True
        assert named['cancel_callback'](goal) is CancelResponse.ACCEPT
        with pytest.raises(StopIteration):
            coroutine.send(None)
        assert goal.ended == 'canceled'


# --- what is installed -------------------------------------------------------------------------


def install(monkeypatch: pytest.MonkeyPatch, names: dict[str, Any]) -> None:
    """Let the package be there with these types."""
    kinds = {'msg': [], 'srv': [], 'action': []}  # type: dict[str, list[str]]
    for name in names:
        kind = 'srv' if name in SERVICES else 'action' if name == 'SimulateSteps' else 'msg'
        kinds[kind].append(name)
    monkeypatch.setitem(
        sys.modules, 'simulation_interfaces', python_types.ModuleType('simulation_interfaces')
    )
    for kind, members in kinds.items():
        module = python_types.ModuleType(f'simulation_interfaces.{kind}')
        for name in members:
            setattr(module, name, names[name])
        monkeypatch.setitem(sys.modules, f'simulation_interfaces.{kind}', module)


def test_without_the_package_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'simulation_interfaces', None)
    assert installed_types() == ({}, [])


def test_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, TYPES)
    types, missing = installed_types()
    assert types == TYPES
    assert missing == []


def test_what_a_version_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {'SimulateSteps', 'GetEntitiesStates'}
    install(monkeypatch, {k: v for k, v in TYPES.items() if k not in without})
    types, missing = installed_types()
    assert set(missing) == without
    assert types == {k: v for k, v in TYPES.items() if k not in without}


def test_without_the_message_of_an_entity_there_are_no_entities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, {k: v for k, v in TYPES.items() if k != 'EntityCategory'})
    types, missing = installed_types()
    assert not [name for name in types if name in SERVICES and 'Entit' in name]
    assert {'EntityCategory', 'GetEntities', 'SetEntityState'} <= set(missing)


def test_what_is_missing_is_said(capfd: Any) -> None:
    with bench(*words()) as b:
        plant = b.add(Toy)
        add_standard_services(plant, lambda: ({}, ['SimulateSteps']))
    said = ''.join(capfd.readouterr())
    assert 'the installed simulation_interfaces lacks SimulateSteps: left out' in said


def test_a_real_service_waits_for_its_steps() -> None:
    # A generated type with the same shape as far as a coroutine and its executor are concerned.
    with bench(*words()) as b:
        plant = b.add(Toy)
        b.until(lambda: plant.simulation.started, 'start')

        async def step(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            done = Future()
            plant.simulation.step_many(30, lambda left, _: done.set_result(left))
            response.success = not await done
            return response

        plant.create_service(Trigger, '~/step_thirty', step)
        assert b.call(Trigger, 'plant/step_thirty').success
        assert plant.sample == 30
        # A client that is destroyed before its response.
        client = b.driver.create_client(Trigger, 'plant/step_thirty')
        b.until(client.service_is_ready, 'service')
        client.call_async(Trigger.Request())
        b.driver.destroy_client(client)
        b.until(lambda: plant.sample == 60, 'steps without a client')
        assert b.call(Trigger, 'plant/step_thirty').success
        assert plant.sample == 90
