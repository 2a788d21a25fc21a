"""
The services of simulation_interfaces, with stand-ins of the generated types.

The stand-ins have the fields and constants of versions 1.5 and 2.1, and refuse any other name.
"""

import dataclasses
import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import simulation_rig
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import Trigger

from longreach_dynamics.errors import LongreachError
from longreach_node import simulation
from longreach_node.standard_interface import SERVICES, add_standard_services, installed_types
from longreach_node.testing import bench


def message(name, constants='', **fields):
    """Return a class with fields, each a factory of its default, and constants ``A=0 B=1``."""
    cls = dataclasses.make_dataclass(
        name,
        [(key, Any, dataclasses.field(default_factory=make)) for key, make in fields.items()],
        slots=True,
    )
    for word in constants.split():
        key, value = word.split('=')
        setattr(cls, key, int(value))
    return cls


def service(request, response, on_request='', on_response=''):
    return SimpleNamespace(
        Request=message('Request', on_request, **request),
        Response=message('Response', on_response, **response),
    )


Result = message(
    'Result',
    'RESULT_FEATURE_UNSUPPORTED=0 RESULT_OK=1 RESULT_NOT_FOUND=2 RESULT_INCORRECT_STATE=3'
    ' RESULT_OPERATION_FAILED=4',
    result=int,
    error_message=str,
)
UNSUPPORTED, OK, NOT_FOUND, INCORRECT, FAILED = range(5)
SimulationState = message(
    'SimulationState', 'STATE_STOPPED=0 STATE_PLAYING=1 STATE_PAUSED=2 STATE_QUITTING=3', state=int
)
STOPPED, PLAYING, PAUSED, QUITTING = range(4)
FEATURES = (
    'ENTITY_CATEGORIES=8 SIMULATION_RESET=20 SIMULATION_RESET_TIME=21 SIMULATION_RESET_STATE=22'
    ' SIMULATION_STATE_GETTING=24 SIMULATION_STATE_SETTING=25 SIMULATION_STATE_PAUSE=26'
    ' STEP_SIMULATION_SINGLE=31 STEP_SIMULATION_MULTIPLE=32'
)
SimulatorFeatures = message('SimulatorFeatures', FEATURES, features=list, custom_info=str)
TYPES = {
    'Result': Result,
    'SimulationState': SimulationState,
    'SimulatorFeatures': SimulatorFeatures,
    'GetSimulatorFeatures': service({}, {'features': SimulatorFeatures}),
    'GetSimulationState': service({}, {'state': SimulationState, 'result': Result}),
    'SetSimulationState': service(
        {'state': SimulationState}, {'result': Result}, '', 'ALREADY_IN_TARGET_STATE=101'
    ),
    'StepSimulation': service({'steps': lambda: 1}, {'result': Result}),
    'ResetSimulation': service(
        {'scope': int},
        {'result': Result},
        'SCOPE_DEFAULT=0 SCOPE_TIME=1 SCOPE_STATE=2 SCOPE_SPAWNED=4 SCOPE_ALL=255',
    ),
}


class Rig(simulation_rig.Rig):
    """A simulation on a node without middleware, and its services."""

    def __init__(self, monkeypatch, **settings):
        # Each look at the clock takes longer than a turn may: one sample in a tick.
        wall = simulation_rig.Wall(5e-3)
        monkeypatch.setattr(simulation, 'time', wall)
        super().__init__(wall, **{'start_paused': True, **settings})
        self.services = {}
        self.node.create_service = lambda _, name, callback, **__: self.services.update(
            {name: callback}
        )
        interface = add_standard_services(self.node, self.simulation, lambda: TYPES)
        assert interface is not None
        self.interface = interface

    def begin(self, kind, **fields):
        """Call a service, and return the coroutine that waits for its response."""
        callback = self.services[f'~/{SERVICES[kind]}']
        return callback(TYPES[kind].Request(**fields), TYPES[kind].Response())

    def call(self, kind, **fields):
        """Call a service and return its response."""
        return self.finish(self.begin(kind, **fields))

    def result(self, kind, **fields):
        result = self.call(kind, **fields).result
        assert bool(result.error_message) == (result.result != OK)
        return result.result, result.error_message

    def set_state(self, state):
        return self.result('SetSimulationState', state=SimulationState(state=state))

    def state(self):
        return int(self.call('GetSimulationState').state.state)

    def finish(self, coroutine):
        """Return the result of a coroutine that waits for samples."""
        for _ in range(1000):
            try:
                coroutine.send(None)
            except StopIteration as stop:
                return stop.value
            self.tick()
        raise AssertionError('the coroutine does not end')

    def ticks(self, count):
        for _ in range(count):
            self.tick()


@pytest.fixture
def rig(monkeypatch):
    return Rig(monkeypatch)


def test_features(rig):
    features = rig.call('GetSimulatorFeatures').features
    assert features.features == [20, 21, 22, 24, 25, 26, 31, 32]
    assert 'a step is one sample' in features.custom_info


def test_states(rig):
    assert rig.state() == PAUSED
    assert rig.set_state(PAUSED) == (101, 'the simulation is in this state already')
    assert rig.set_state(PLAYING) == (OK, '')
    assert rig.state() == PLAYING
    rig.ticks(10)
    assert rig.set_state(PAUSED) == (OK, '')
    assert rig.simulation.sample > 3
    assert rig.set_state(STOPPED) == (OK, '')
    assert (rig.state(), rig.simulation.sample) == (STOPPED, 0)
    rig.simulation.resume()
    assert rig.state() == PLAYING
    rig.set_state(STOPPED)
    assert rig.set_state(PAUSED) == (OK, '')
    assert rig.state() == PAUSED
    code, text = rig.set_state(4)
    assert code == UNSUPPORTED
    assert text.startswith('state = 4, allowed: 0 (stopped), 1 (playing)')
    assert rig.set_state(QUITTING) == (OK, '')
    assert rig.state() == QUITTING
    assert rig.simulation.quitting
    assert rig.set_state(PLAYING)[0] == INCORRECT
    assert rig.result('ResetSimulation')[0] == INCORRECT
    assert rig.result('StepSimulation') == (INCORRECT, 'the simulation has ended')


def test_steps_need_a_pause(rig):
    for state, text in ((PLAYING, 'playing'), (STOPPED, 'stopped')):
        rig.set_state(state)
        refusal = f'the simulation is {text}: pause it before stepping'
        assert rig.result('StepSimulation') == (FAILED, refusal)
    rig.set_state(PAUSED)
    assert rig.result('StepSimulation', steps=0) == (FAILED, 'steps = 0, allowed: 1 or more')
    assert rig.result('StepSimulation') == (OK, '')
    assert rig.simulation.sample == 1
    assert rig.result('StepSimulation', steps=250) == (OK, '')
    assert (rig.simulation.sample, rig.state()) == (251, PAUSED)
    rig.simulation.started = False
    text = 'the simulation has not begun: it waits for other nodes'
    assert rig.result('StepSimulation') == (INCORRECT, text)


@pytest.mark.parametrize(
    ('scope', 'code', 'state', 'sample'),
    [
        (0, OK, False, False),
        (1, OK, True, False),
        (2, OK, False, True),
        (7, OK, False, False),
        (255, OK, False, False),
        (4, UNSUPPORTED, True, True),
        (9, FAILED, True, True),
    ],
)
def test_scopes_of_a_reset(rig, scope, code, state, sample):
    rig.call('StepSimulation', steps=5)
    before = rig.simulation.state
    assert rig.result('ResetSimulation', scope=scope)[0] == code
    assert rig.simulation.state == (before if state else 0.0)
    assert rig.simulation.sample == (5 if sample else 0)


def diverge(*_):
    raise LongreachError('the pendulum diverges')


INTERRUPTIONS = {
    'resume': 'the simulation was resumed',
    PLAYING: 'the simulation was resumed',
    PAUSED: 'the simulation was paused',
    STOPPED: 'the simulation was paused',
    QUITTING: 'the simulation was paused',
    'reset': 'the simulation was reset',
    'end': 'the simulation has ended',
    'diverge': 'the pendulum diverges',
}


@pytest.mark.parametrize('how', INTERRUPTIONS)
def test_steps_are_interrupted(monkeypatch, how):
    rig = Rig(monkeypatch, duration=0.05 if how == 'end' else 0.0)
    coroutine = rig.begin('StepSimulation', steps=10**9)
    coroutine.send(None)
    rig.ticks(5)
    assert (rig.simulation.sample, rig.interface.answering) == (5, 1)
    if isinstance(how, int):
        assert rig.set_state(how) == (OK, '')
    elif how == 'reset':
        assert rig.result('ResetSimulation') == (OK, '')
    elif how == 'resume':
        rig.simulation.resume()
    elif how == 'diverge':
        rig.simulation.machine.advance = diverge
        rig.tick()
    rig.ticks(how == 'end')
    result = rig.finish(coroutine).result
    text = f'{10**9 - 5} steps were not simulated: {INTERRUPTIONS[how]}'
    assert (result.result, result.error_message) == (FAILED, text)
    assert rig.interface.answering == 0


def test_other_requests_while_steps_are_made(rig):
    coroutine = rig.begin('StepSimulation', steps=10)
    coroutine.send(None)
    rig.ticks(5)
    code, text = rig.result('StepSimulation')
    assert code == FAILED
    assert text.startswith('steps of another request are being simulated')
    assert rig.simulation.step_once() != ''
    assert rig.state() == PAUSED
    rig.ticks(5)
    assert rig.finish(coroutine).result.result == OK
    assert rig.simulation.sample == 10


# --- what is installed -------------------------------------------------------------------------


def test_types_are_those_of_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, 'simulation_interfaces', ModuleType('simulation_interfaces'))
    modules = {kind: ModuleType(kind) for kind in ('msg', 'srv')}
    for kind, module in modules.items():
        monkeypatch.setitem(sys.modules, f'simulation_interfaces.{kind}', module)
    for name, found in TYPES.items():
        setattr(modules['srv' if name in SERVICES else 'msg'], name, found)
    assert installed_types() == TYPES


def test_without_the_package_there_is_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, 'simulation_interfaces', None)
    node = Mock()
    assert add_standard_services(node, Mock()) is None
    (said,) = node.get_logger().info.call_args.args
    assert said == 'simulation_interfaces is not installed: its services are left out'


def test_a_real_service_waits_for_its_steps():
    # A generated type with the same shape as far as a coroutine and its executor are concerned.
    with bench() as b:
        node = b.add(lambda: Node('plant'))
        waiting = []

        async def step(_, response):
            waiting.append(Future())
            response.success = await waiting[-1]
            return response

        node.create_service(Trigger, '~/step', step)
        node.create_timer(0.01, lambda: [f.set_result(True) for f in waiting if not f.done()])
        assert b.call(Trigger, 'plant/step').success
        # A client that is destroyed before its response.
        client = b.driver.create_client(Trigger, 'plant/step')
        b.until(client.service_is_ready, 'service')
        client.call_async(Trigger.Request())
        b.driver.destroy_client(client)
        b.until(lambda: len(waiting) == 2 and waiting[1].done(), 'steps without a client')
        assert b.call(Trigger, 'plant/step').success
