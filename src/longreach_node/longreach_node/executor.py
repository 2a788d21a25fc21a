"""
The executor of the nodes: single-threaded, with a wait set that is kept between turns.

rclpy's SingleThreadedExecutor builds a new wait set, a coroutine and a task for each callback, and
wakes itself twice for each. That costs several times what a callback of a 200 Hz node costs. Here
the list of entities is collected only when it has changed, and timers, subscriptions, services and
guard conditions are called directly. All else (clients, waitables such as actions and QoS events,
tasks, coroutines as callbacks) is left to rclpy's own loop.

This relies on methods of rclpy that are not public. :func:`node_executor` therefore returns
rclpy's own executor where one of them is missing.
"""

from __future__ import annotations

import inspect
from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import (
    ConditionReachedException,
    Executor,
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
    TimeoutException,
)
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.waitable import NumberOfEntities

# Most messages of a subscription that are taken in one turn. With one, as in rclpy, a queue grows
# without end where a timer's callback takes long: commands to a plant that catches up with real
# time were seconds old when they were read.
_MOST_TAKEN = 100

# Kinds of entities, in the order of NumberOfEntities.
_KINDS = ('subscription', 'guard_condition', 'timer', 'client', 'service')

# What is used of rclpy 7.1 beyond its public interface.
_METHODS = (
    '_take_timer',
    '_take_subscription',
    '_take_service',
    '_take_guard_condition',
    'wait_for_ready_callbacks',
)
_FIELDS = ('_tasks', '_context', '_guard', '_sigint_gc', '_is_shutdown')


def node_executor(context: Context | None = None) -> Executor:
    """Return a :class:`NodeExecutor`, or rclpy's own where this version of rclpy differs."""
    if all(hasattr(SingleThreadedExecutor, name) for name in _METHODS):
        executor = NodeExecutor(context=context)
        if all(hasattr(executor, name) for name in _FIELDS):
            return executor
    return SingleThreadedExecutor(context=context)


class NodeExecutor(SingleThreadedExecutor):
    """SingleThreadedExecutor that keeps its wait set and calls callbacks directly."""

    def __init__(self, *, context: Context | None = None) -> None:
        # Before rclpy's constructor, which makes wake() known to the context.
        self._stale = True
        self._delegating = False
        self._waiting_tasks: list[Any] = []
        self._held = ExitStack()
        # How it is taken, what, and how often it may be taken in this turn.
        self._pending: deque[tuple[Callable[[Any], Any], Any, int]] = deque()
        super().__init__(context=context)
        self._context_handle: Any = self.context.handle

    # --- changes of entities -------------------------------------------------------------------

    def wake(self) -> None:
        """Collect the entities anew: a node calls this when it creates or destroys one."""
        self._stale = True
        super().wake()

    def add_node(self, node: Node) -> bool:
        """Add a node whose callbacks this executor calls."""
        self._stale = True
        return super().add_node(node)

    def remove_node(self, node: Node) -> None:
        """Call no callbacks of a node any more."""
        super().remove_node(node)
        self._release()

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Stop calling callbacks."""
        self._release()
        return super().shutdown(timeout_sec)

    def _release(self) -> None:
        """Let go of all entities."""
        self._stale = True
        self._pending.clear()
        self._held.close()

    def _collect(self) -> None:
        """Make the wait set of all entities that there are now."""
        self._stale = False
        self._held.close()
        self._held = ExitStack()
        nodes = self.get_nodes()
        own = [guard for guard in (self._guard, self._sigint_gc) if guard is not None]
        # Kind of entity, how it is taken, and all there are, in the order of rclpy's loop. Clients
        # are left to rclpy.
        groups: tuple[tuple[str, Callable[[Any], Any] | None, list[Any]], ...] = (
            ('timer', self._take_ready_timer, [t for n in nodes for t in n.timers]),
            ('subscription', self._take_subscription, [s for n in nodes for s in n.subscriptions]),
            ('guard_condition', self._take_guard_condition, [g for n in nodes for g in n.guards]),
            ('guard_condition', None, own),
            ('client', None, [c for n in nodes for c in n.clients]),
            ('service', self._take_service, [s for n in nodes for s in n.services]),
        )
        handles: list[tuple[str, Any]] = []
        self._known: dict[str, dict[int, tuple[Callable[[Any], Any] | None, Any]]] = {
            kind: {} for kind, _, _ in groups
        }
        for kind, take, entities in groups:
            for entity in entities:
                try:
                    # Held while it is in the wait set: who destroys it only marks it.
                    self._held.enter_context(entity.handle)
                except InvalidHandle:
                    continue
                handles.append((kind, entity.handle))
                if entities is own:
                    # They only end the waiting.
                    continue
                # Coroutines are left to rclpy, too.
                direct = not inspect.iscoroutinefunction(getattr(entity, 'callback', None))
                self._known[kind][entity.handle.pointer] = (take if direct else None, entity)
        counts = Counter(kind for kind, _ in handles)
        total = NumberOfEntities(*(counts[kind] for kind in _KINDS))
        self._waitables = []
        for node in nodes:
            for waitable in node.waitables:
                try:
                    self._held.enter_context(waitable)
                except InvalidHandle:
                    continue
                self._waitables.append(waitable)
                total += waitable.get_num_entities()
        numbers = [getattr(total, name) for name in NumberOfEntities.__slots__]
        with self._context_handle:
            self._waits = _rclpy.WaitSet(*numbers, self._context_handle)
        self._adders = [(getattr(self._waits, f'add_{kind}'), handle) for kind, handle in handles]

    # --- turns ---------------------------------------------------------------------------------

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Call one callback, or wait for one, without limit if no time [s] is given."""
        if self._is_shutdown:
            return
        if not self._pending and not self._delegating:
            self._wait(timeout_sec)
        if self._pending:
            take, entity, most = self._pending.popleft()
            call = take(entity)
            if call is not None:
                if most > 1:
                    # Behind all others that are ready.
                    self._pending.append((take, entity, most - 1))
                _run(call())
        elif self._delegating:
            self._delegate()

    def _wait(self, timeout_sec: float | None) -> None:
        """Wait until something is ready, and note in ``_pending`` what."""
        if not self._context.ok():
            raise ExternalShutdownException
        if self._stale:
            self._collect()
        waits = self._waits
        waits.clear_entities()
        for add, handle in self._adders:
            add(handle)
        for waitable in self._waitables:
            waitable.add_to_wait_set(waits)
        with self._context_handle:
            waits.wait(-1 if timeout_sec is None or timeout_sec < 0.0 else int(timeout_sec * 1e9))
        if not self._context.ok():
            raise ExternalShutdownException
        for kind, known in self._known.items():
            most = _MOST_TAKEN if kind == 'subscription' else 1
            for pointer in waits.get_ready_entities(kind) if known else ():
                found = known.get(pointer)
                if found is None:
                    continue
                take, entity = found
                if take is None:
                    self._delegating = True
                else:
                    self._pending.append((take, entity, most))
        # A task that waits is tried again whenever something has happened, as in rclpy's loop.
        if self._tasks or any(waitable.is_ready(waits) for waitable in self._waitables):
            self._delegating = True

    def _take_ready_timer(self, timer: Any) -> Any:
        """Take a timer, unless it was cancelled or destroyed since it was due."""
        try:
            with timer.handle:
                if not timer.handle.is_timer_ready():
                    return None
        except InvalidHandle:
            return None
        return self._take_timer(timer)

    def _delegate(self) -> None:
        """Let rclpy's loop call one callback."""
        # It is asked again until it has none left: it consumes the triggers of guard conditions,
        # and has to handle all that it consumed.
        try:
            handler, _, _ = self.wait_for_ready_callbacks(0.0, None, _never)
        except (TimeoutException, ShutdownException, ConditionReachedException):
            # Once more where a task ended or was created: rclpy's loop has consumed the trigger
            # for a new one, and others may have waited for one that ended.
            before = self._waiting_tasks
            self._waiting_tasks = [task for task, _, _ in self._tasks if not task.done()]
            self._delegating = self._waiting_tasks != before
            return
        handler()
        handler.result()


def _never() -> bool:
    """Return False: no condition ends rclpy's loop, which begins anew for another function."""
    return False


def _run(coroutine: Any) -> None:
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError('a callback that is no coroutine waits')
