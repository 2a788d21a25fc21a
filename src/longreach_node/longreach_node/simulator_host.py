"""Start, ticks and end of a simulator node, its /clock and /diagnostics."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from rclpy.duration import Duration
from rosgraph_msgs.msg import Clock

from longreach_dynamics.errors import LongreachError
from longreach_node import diagnostics, qos
from longreach_node.clock import steady_clock
from longreach_node.companions import Companions
from longreach_node.discovery import Discovery, Start
from longreach_node.simulation import PAUSED_CLOCK
from longreach_node.simulator_parameters import SimulatorParameters
from longreach_node.stamps import seconds_to_nanoseconds, stamp_of

if TYPE_CHECKING:
    from longreach_node.simulator import SimulatorNode

# How often to look for connections before the first sample, and at the graph [s of wall time].
_START_PERIOD, _GRAPH_PERIOD = 0.02, 2.0
# Warnings with as many equal letters are of one kind.
_ALIKE = 7
# Longest wait for listeners to each topic [s].
_PATIENCE = 2.0


class SimulatorHost:
    """
    The node's part of a :class:`~longreach_node.simulation.Simulation`.

    Parameters
    ----------
    node : SimulatorNode
        Its ``simulation`` is made before the first tick.
    settings : SimulatorParameters
    description : str
        Machine and settings, for the log.
    """

    def __init__(
        self, node: SimulatorNode[Any, Any], settings: SimulatorParameters, description: str
    ) -> None:
        self._node = node
        self._discovery = Discovery(node)
        self._start = Start(node, self._discovery, settings, description)
        self._companions = Companions(node, settings.companions)
        self.quitting = False
        self._error: LongreachError | None = None
        self._doubled = ''
        self._looked = self._asked = 0.0
        self._warned: dict[str, float] = {}
        self._clock = (
            node.create_publisher(Clock, '/clock', qos.CLOCK) if settings.publish_clock else None
        )
        self._diagnostics = diagnostics.Diagnostics(node, 'simulation')
        node.outputs.append(self._diagnostics.publisher)
        self._timer = node.create_timer(_START_PERIOD, self._tick, clock=steady_clock())

    def _tick(self) -> None:
        """Begin, go on or end."""
        node, now = self._node, time.monotonic()
        if node.done.done():
            return
        if now - self._looked > _GRAPH_PERIOD:
            self._looked = now
            self._look_at_graph()
        if self.quitting:
            self._end()
        elif not node.simulation.started:
            if self._start.is_due(now, node.links, node.outputs, node.watchers):
                node.simulation.start()
                self._start.tell()
        elif not node.simulation.finished:
            node.simulation.tick(now)
        elif now - self._asked > PAUSED_CLOCK:
            self._end_after_others(now)

    def _look_at_graph(self) -> None:
        """Warn of a second publisher of /clock, and of a node of the same name."""
        doubled = self._discovery.doubled('/clock' if self._clock is not None else '')
        if doubled and doubled != self._doubled:
            self._node.get_logger().warning(doubled)
        self._doubled = doubled

    # --- called by the simulation ------------------------------------------------------------

    def publish_sample(self) -> None:
        """Publish everything about the present sample."""
        node = self._node
        nanoseconds = seconds_to_nanoseconds(node.time)
        self.publish_clock()
        if node.sample % max(1, round(node.settings.publish_rate)) == 0:
            self._report(nanoseconds)
        node.publish_sample(nanoseconds)

    def _report(self, nanoseconds: int) -> None:
        """Publish diagnostics."""
        node, incidents = self._node, self._node.simulation.incidents
        problems = [p for p in (self._doubled, incidents.recent(time.monotonic())) if p]
        level = diagnostics.WARN if problems else diagnostics.OK
        values = {'time': node.time, 'sample': node.sample, **incidents.counts}
        text = '; '.join(problems) or 'running'
        self._diagnostics.publish(stamp_of(nanoseconds), level, text, values)

    def publish_again(self) -> None:
        """Publish the present sample again."""
        self._node.publish_again(seconds_to_nanoseconds(self._node.time))

    def publish_clock(self) -> None:
        """Publish simulation time, unless ``publish_clock`` is false."""
        if self._clock is not None:
            now = stamp_of(seconds_to_nanoseconds(self._node.time))
            self._clock.publish(Clock(clock=now))

    def publish_drawing(self) -> None:
        """Publish the drawing of the present sample, unless that has been done."""
        self._node.publish_drawing(seconds_to_nanoseconds(self._node.time))

    def set_period(self, period: float) -> None:
        """Tick every ``period`` seconds of wall time from now on."""
        self._timer.timer_period_ns = seconds_to_nanoseconds(period)
        self._timer.reset()

    def flush(self) -> None:
        """Wait until everything has been received, but not for long."""
        for publisher in (*self._node.outputs, *(p for p, _ in self._node.links)):
            publisher.wait_for_all_acked(Duration(seconds=_PATIENCE))

    def has_ended(self) -> bool:
        """Return whether the process was told to end."""
        return not self._node.context.ok()

    def warn(self, text: str, interval: float = 1.0) -> None:
        """
        Write a warning to the log, unless one that begins alike was written a moment ago.

        rclpy's own throttle takes half a millisecond for each text that it does not write.

        Parameters
        ----------
        text : str
        interval : float
            Shortest time between two of them [s of wall time].
        """
        kind, now = text[:_ALIKE], time.monotonic()
        if now - self._warned.get(kind, -math.inf) > interval:
            self._warned[kind] = now
            self._node.get_logger().warning(text)

    def on_end(self) -> None:
        """End after the last sample."""
        self.set_period(PAUSED_CLOCK)
        self._companions.tell()
        missing = self._companions.missing()
        waits = f'; waiting for {missing} other simulations' if missing else ''
        self._node.get_logger().info(f'finished at {self._node.time:g} s{waits}')
        self._end_after_others(time.monotonic())

    def _end_after_others(self, now: float) -> None:
        """End unless others still simulate, or work on what was simulated."""
        self._asked = now
        if not self._companions.missing() and not any(
            self._discovery.hears(name, publisher) for publisher, name in self._node.watchers
        ):
            self._end()

    def fail(self, error: LongreachError) -> None:
        """End with an error, once the requests of steps have their responses."""
        self._error = error
        self.quit()

    def quit(self) -> None:
        """End soon, without waiting for other nodes."""
        self.quitting = True
        self.set_period(PAUSED_CLOCK)

    def _end(self) -> None:
        """End the process, unless a response is still to be sent: it is tried again."""
        standard = self._node.standard
        if standard is not None and standard.answering:
            return
        if self._error is not None:
            self._node.done.set_exception(self._error)
        else:
            self._node.done.set_result(None)
