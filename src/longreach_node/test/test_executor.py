"""The executor of the nodes: the same callbacks as rclpy's own, and no growth."""

import gc
import itertools
import statistics
import time

import pytest
import rclpy
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.context import Context
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from longreach_node import executor as module
from longreach_node.entry import spin_until
from longreach_node.executor import NodeExecutor, node_executor

DEADLINE = 30.0


@pytest.fixture
def context():
    context = Context()
    rclpy.init(context=context)
    yield context
    context.try_shutdown()


class Rig:
    """Nodes in a NodeExecutor."""

    def __init__(self, context):
        self.context = context
        self.executor = NodeExecutor(context=context)
        self.node = self.add('toy')

    def add(self, name):
        node = Node(name, context=self.context)
        self.executor.add_node(node)
        return node

    def until(self, condition, wait=0.05):
        end = time.monotonic() + DEADLINE
        while not condition():
            self.executor.spin_once(wait)
            assert time.monotonic() < end, condition

    def turns(self, count=20):
        for _ in range(count):
            self.executor.spin_once(0.005)


@pytest.fixture
def rig(context):
    rig = Rig(context)
    yield rig
    rig.executor.shutdown()
    rig.node.destroy_node()


def steady():
    return Clock(clock_type=ClockType.STEADY_TIME)


def test_what_comes_and_goes_while_it_spins(rig):
    ticks = []
    first = rig.node.create_timer(0.001, lambda: ticks.append('first'), clock=steady())
    rig.until(lambda: 'first' in ticks)
    rig.node.create_timer(0.001, lambda: ticks.append('second'), clock=steady())
    rig.until(lambda: 'second' in ticks)
    rig.node.destroy_timer(first)
    rig.turns(1)
    ticks.clear()
    rig.until(lambda: len(ticks) >= 10)
    assert set(ticks) == {'second'}
    # Cancelled, it does not run; reset, it does.
    for timer in rig.node.timers:
        timer.cancel()
    ticks.clear()
    rig.turns()
    assert ticks == []
    for timer in rig.node.timers:
        timer.reset()
    rig.until(lambda: ticks)


def test_what_is_removed_or_shut_down_is_not_called(rig):
    ticks = []
    other = rig.add('other')
    other.create_timer(0.001, lambda: ticks.append(1), clock=steady())
    rig.until(lambda: ticks)
    rig.executor.remove_node(other)
    ticks.clear()
    rig.turns()
    other.destroy_node()
    rig.turns()
    assert ticks == []
    rig.node.create_timer(0.001, lambda: ticks.append(1), clock=steady())
    rig.until(lambda: ticks)
    rig.executor.shutdown()
    ticks.clear()
    rig.executor.spin_once()
    assert ticks == []


def test_services_and_clients(rig):
    def answer(_, response):
        response.message = 'done'
        return response

    rig.node.create_service(Trigger, 'serve', answer)
    client = rig.node.create_client(Trigger, 'serve')
    rig.until(client.service_is_ready)
    # A timer that is always due does not starve them.
    rig.node.create_timer(1e-4, lambda: None, clock=steady())
    for _ in range(3):
        future = client.call_async(Trigger.Request())
        rig.until(future.done)
        assert future.result().message == 'done'


def test_events_of_subscriptions_come_through(rig):
    # As a waitable: rclpy's loop calls it.
    events = []
    wanted = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    rig.node.create_subscription(
        Float64,
        'number',
        lambda _: None,
        wanted,
        event_callbacks=SubscriptionEventCallbacks(
            incompatible_qos=lambda event: events.append(event.total_count)
        ),
    )
    rig.turns(3)
    rig.node.create_publisher(Float64, 'number', 10)
    rig.until(lambda: events)
    assert events == [1]


def test_guard_conditions_and_tasks(rig):
    calls = []
    guard = rig.node.create_guard_condition(lambda: calls.append('guard'))
    rig.turns(3)
    guard.trigger()
    rig.until(lambda: calls == ['guard'])

    # Both at once: rclpy's loop takes the task, and must not lose the guard condition.
    guard.trigger()
    task = rig.executor.create_task(lambda: calls.append('task'))
    rig.until(lambda: len(calls) == 3)
    assert task.done()
    assert sorted(calls) == ['guard', 'guard', 'task']


def test_a_task_waits_for_a_future_without_a_busy_loop(rig):
    future = Future()
    ended = []

    async def wait():
        ended.append(await future)

    async def on_timer():
        ended.append(0)

    rig.executor.create_task(wait)
    rig.turns(5)
    before = time.process_time()
    rig.executor.spin_once(0.3)
    assert time.process_time() - before < 0.15
    assert ended == []
    timer = rig.node.create_timer(0.001, on_timer, clock=steady())
    rig.until(lambda: ended)
    timer.cancel()
    future.set_result(7)
    rig.until(lambda: 7 in ended)


@pytest.mark.parametrize('error', [ValueError, ExternalShutdownException])
def test_errors_in_callbacks_and_the_end_of_the_context_come_through(rig, error):
    def fail():
        if error is ValueError:
            raise ValueError
        rig.context.try_shutdown()

    rig.node.create_timer(0.001, fail, clock=steady())
    with pytest.raises(error):
        rig.until(lambda: False)


def test_one_that_lacks_what_is_needed_is_replaced(context, monkeypatch):
    assert type(node_executor(context)) is NodeExecutor
    monkeypatch.setattr(module, '_METHODS', ('_take_nothing',))
    assert type(node_executor(context)) is SingleThreadedExecutor


def test_nothing_grows_from_turn_to_turn(rig):
    known = []

    def note():
        gc.collect()
        known.append(len(gc.get_objects()))

    # rclpy 7.1's spin_until_future_complete adds a callback at each turn.
    done = Future()
    added = []
    count = iter(range(1000))

    def tick():
        turn = next(count, None)
        if turn in range(100, 901, 200):
            note()
            added.append(len(done._callbacks))
        if turn is None and not done.done():
            done.set_result(None)

    rig.node.create_timer(1e-4, tick, clock=steady())
    spin_until(rig.executor, done)
    assert len(set(added)) == 1
    # Once what other tests have left may go meanwhile: not in most parts.
    assert abs(statistics.median(b - a for a, b in itertools.pairwise(known))) < 25


def test_a_task_goes_on_after_the_callback_that_it_waited_for(rig):
    awaited, ends = Future(), []

    async def wait():
        await awaited
        ends.append(1)

    rig.executor.create_task(wait)
    rig.turns()
    timer = rig.node.create_timer(0.001, lambda: awaited.set_result(None), clock=steady())
    rig.until(awaited.done)
    timer.cancel()
    rig.until(lambda: ends, DEADLINE)


def test_a_slow_timer_does_not_let_a_queue_grow(rig):
    heard = []
    publisher = rig.node.create_publisher(Float64, 'number', 1000)
    rig.node.create_subscription(Float64, 'number', lambda m: heard.append(m.data), 1000)
    rig.until(lambda: publisher.get_subscription_count() == 1)
    waiting = []

    def tick():
        """Publish more than one message in each turn, as a plant that catches up makes them."""
        waiting.append(10 * len(waiting) - len(heard))
        for _ in range(10):
            publisher.publish(Float64())

    # It is always due.
    rig.node.create_timer(1e-9, tick, clock=steady())
    rig.until(lambda: len(waiting) == 50)
    assert max(waiting) <= 20
