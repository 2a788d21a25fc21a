"""
Benchmarks of the view in a browser: rate, latency, processor time and memory, without a browser.

A node publishes ``joint_states`` of a crane at 100 Hz, in which the car's position tells when it
was published. A page is a websocket that reads what viser sends; what a browser needs to draw it
is not included. With ``--demo``, the times are those from the command's start to the first motion
of each machine on the page.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench_ros import BenchmarkError
from bench_table import Row, Section, of_tests

RATE = 100.0  # [Hz]
# Metres of the car for each message.
_STEP = 1e-3
_DEADLINE = 60.0
_COMMAND = [sys.executable, '-c', 'from longreach_tools.cli import console; console()', 'view']
# Parts that move on the page when a machine of ``--demo`` runs.
_MOVING = {
    'crane': '/car',
    'boom': '/beam_1',
    'excavator': '/boom',
    'harvester': '/boom',
    'markers': '',  # that cameras have measured
}


def pages(quick: bool) -> list[Row]:
    """Measure one page, and ten of which one does not read."""
    seconds = 5.0 if quick else 12.0
    return [
        _measure('one page', 1, seconds),
        _measure('ten pages, one of which does not read', 10, seconds),
        _demo(),
    ]


def _demo() -> Row:
    """Return the times from the start of ``longreach view --demo`` to the motion of machines."""
    begun = time.monotonic()
    command = [*_COMMAND, '--demo', '--port', '0', '--no-token']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as view:
        try:
            port = _port(view)
            served = time.monotonic() - begun
            motions = asyncio.run(asyncio.wait_for(_first_motions(port), _DEADLINE))
        except TimeoutError:
            raise BenchmarkError('--demo: not all machines moved within a minute') from None
        finally:
            # As Ctrl-C does: the machines end, too.
            view.send_signal(signal.SIGINT)
            view.wait(_DEADLINE)
    times = {name: moment - begun for name, moment in motions.items()}
    each = ', '.join(f'{name} {seconds:.1f}' for name, seconds in times.items())
    return Row('--demo: motion', tuple(times.values()), note=f'page {served:.1f} s, {each} s')


async def _first_motions(port: int) -> dict[str, float]:
    """Return when each machine moved first on a page [s], monotonic."""
    places: dict[str, Any] = {}
    moved: dict[str, float] = {}
    pages = of_tests('view', 'test_many_pages')
    async for message in pages.messages(await pages.opened(port)):
        if message['type'] not in ('SetPositionMessage', 'SetOrientationMessage'):
            continue
        name, place = message['name'], (message.get('position'), message.get('wxyz'))
        machine = name.partition('/machine:')[2].partition('/')[0]
        machine = 'markers' if '/markers/' in name else machine
        was = places.setdefault(name + message['type'], place)
        if was != place and name.endswith(_MOVING.get(machine, '\n')):
            moved.setdefault(machine, time.monotonic())
        if len(moved) == len(_MOVING):
            break
    return moved


def _measure(name: str, count: int, seconds: float) -> Row:
    """Return the latencies of the first page, with a note on the rest."""
    with subprocess.Popen(
        [*_COMMAND, '--port', '0', '--no-token'], stdout=subprocess.PIPE, text=True
    ) as view:
        try:
            port = _port(view)
            publisher = _Publisher()
            try:
                return asyncio.run(_watch(name, port, count, seconds, view.pid, publisher))
            finally:
                publisher.close()
        finally:
            view.terminate()
            view.wait(_DEADLINE)


def _port(view: subprocess.Popen[str]) -> int:
    """Return the port that a view prints."""
    assert view.stdout is not None
    found = re.match(r'http://127\.0\.0\.1:(\d+)/', view.stdout.readline())
    if not found:
        raise BenchmarkError('longreach view printed no address')
    return int(found[1])


async def _watch(
    name: str, port: int, count: int, seconds: float, process: int, publisher: _Publisher
) -> Row:
    """Open pages, publish, and read the first page."""
    opened = of_tests('view', 'test_many_pages').opened
    sockets = [await opened(port) for _ in range(count)]
    # The last page reads nothing.
    readers = [asyncio.create_task(_read(s)) for s in sockets[1 : max(1, count - 1)]]
    latencies: list[float] = []
    reading = asyncio.create_task(_read(sockets[0], publisher.sent, latencies))
    begun, first, marked = time.monotonic(), (0.0, 0.0), 0.0
    while (now := time.monotonic()) - begun < seconds + 5.0:
        publisher.publish()
        # Caches fill, and the machine is found, in the first 5 s.
        if not marked and now - begun >= 5.0:
            marked, first = now, _usage(process)
            latencies.clear()
        await asyncio.sleep(max(0.0, publisher.due - time.monotonic()))
    received, elapsed, last = len(latencies), time.monotonic() - marked, _usage(process)
    for task in (reading, *readers):
        task.cancel()
    if not received:
        raise BenchmarkError('the page received no motion')
    rate = received / elapsed
    share = (last[1] - first[1]) / elapsed
    tenth = statistics.quantiles(latencies, n=10)[-1]
    note = (
        f'{rate:.0f} motions/s of {RATE:.0f}, 90 % within {1e3 * tenth:.0f} ms,'
        f' {100.0 * share:.0f} % of a core, {last[0] - first[0]:+.1f} MB in {elapsed:.0f} s'
    )
    for socket in sockets:
        socket.transport.abort()
    return Row(name, tuple(latencies), note=note)


class _Publisher:
    """A node with the topics of a crane."""

    def __init__(self) -> None:
        import rclpy
        from sensor_msgs.msg import JointState
        from std_msgs.msg import String

        from longreach_crane.description import robot_description
        from longreach_crane.parameters import load_machinery
        from longreach_node import qos

        rclpy.init()
        self._rclpy: Any = rclpy
        self._kind: Any = JointState
        self._node: Any = rclpy.create_node('bench', namespace='crane')
        self._joints = self._node.create_publisher(JointState, 'joint_states', qos.STREAM)
        self._text = self._node.create_publisher(String, 'robot_description', qos.VISUAL)
        self._text.publish(String(data=robot_description(load_machinery().crane, 'crane/')))
        self.sent: dict[int, float] = {}
        self.due = time.monotonic()
        self._count = 0

    def publish(self) -> None:
        """Publish the next sample."""
        self._count += 1
        self.due = max(self.due + 1.0 / RATE, time.monotonic())
        message = self._kind(name=['car_joint', 'cable_joint'])
        message.position = [_STEP * self._count, 0.1]
        nanoseconds = round(1e9 * self._count / RATE)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 10**9)
        self.sent[self._count] = time.monotonic()
        self._joints.publish(message)

    def close(self) -> None:
        """Destroy the node."""
        self._node.destroy_node()
        self._rclpy.shutdown()


async def _read(
    socket: Any, sent: dict[int, float] | None = None, latencies: list[float] | None = None
) -> None:
    """Read what a page receives, and note the latency of each motion of the car [s]."""
    if sent is None or latencies is None:
        async for _ in socket:
            pass
        return
    async for message in of_tests('view', 'test_many_pages').messages(socket):
        if message['type'] == 'SetPositionMessage' and message['name'].endswith('/car'):
            count = round(message['position'][0] / _STEP)
            if count in sent:
                latencies.append(time.monotonic() - sent[count])


def _usage(process: int) -> tuple[float, float]:
    """Return resident memory [MB] and processor time [s] of a process."""
    pages = int(Path(f'/proc/{process}/statm').read_text().split()[1])
    fields = Path(f'/proc/{process}/stat').read_text().rpartition(')')[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return pages * os.sysconf('SC_PAGE_SIZE') / 1e6, ticks / os.sysconf('SC_CLK_TCK')


SECTIONS = {'v': Section('View in a browser: from a sample to the page', pages)}
