"""Benchmarks of machines over ROS, by commands: lockstep, real time, starting times."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench_table import Row, Section, measure

LAUNCH = ('longreach', 'launch', 'crane', 'rviz:=false')
LOCKSTEP = (*LAUNCH, 'scenario:=task_c', 'lockstep:=true', 'real_time_factor:=0.0')
SAMPLE_TIME = 0.01  # of the scenario's controller [s]
DEADLINE = 120.0

PLANTS: dict[str, tuple[str, ...]] = {}
"""Launches of plants in real time, by name; those of all files ``bench_*.py``."""


class BenchmarkError(Exception):
    """A measured command failed; the text has its last output."""


@contextlib.contextmanager
def hermetic_ros() -> Iterator[None]:
    """Give this process and its children their own ROS domain and a temporary log directory."""
    with tempfile.TemporaryDirectory(prefix='longreach-bench-') as logs:
        os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 101)
        os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
        os.environ['ROS_LOG_DIR'] = logs
        yield


def lockstep(quick: bool) -> list[Row]:
    """Measure Task C in lockstep, as fast as possible: launch file, two nodes, all messages."""
    end = 20.0 if quick else 60.0
    repeats = 1 if quick else 2
    rows = []
    _run_lockstep(0.1, False, 1)  # compiles what is not compiled yet
    for name, recorded in (('without recording', False), ('with recording', True)):
        long = _run_lockstep(end, recorded, repeats)
        # Cycles per second are without start and end, which this run has, too.
        short = _run_lockstep(1.0, recorded, repeats)
        running = statistics.median(long) - statistics.median(short)
        rate = (end - 1.0) / SAMPLE_TIME / running
        note = f'{rate:.0f} cycles/s, {rate * SAMPLE_TIME:.1f} x real time'
        if running < 1.0:
            note = 'no rate: other work on this machine took longer than the run'
        rows.append(Row(f'{end:.0f} s, {name}', long, part=short, note=note))
    return rows


def _run_lockstep(duration: float, recorded: bool, repeats: int) -> tuple[float, ...]:
    """Return the durations of the whole command, from start to exit [s]."""
    times: list[float] = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix='longreach-bench-') as directory:
            command = [*LOCKSTEP, f'duration:={duration}']
            command += [f'record:={Path(directory) / "bag"}'] * recorded
            taken, _ = measure(lambda words=command: _call(words), 1, warm=False)  # type: ignore[misc]
            times += taken
    return tuple(times)


def starts(quick: bool) -> list[Row]:
    """Measure starting times, from the call to the end or to the first message."""
    repeats = 2 if quick else 3
    python = sys.executable
    commands = {
        'python3 -c pass': [python, '-c', 'pass'],
        'import rclpy': [python, '-c', 'import rclpy'],
        'import longreach_crane.simulation': [python, '-c', 'import longreach_crane.simulation'],
        'longreach --help': ['longreach', '--help'],
        'longreach launch crane --show-args': ['longreach', 'launch', 'crane', '--show-args'],
        'longreach crane c13r --task b': ['longreach', 'crane', 'c13r', '--task', 'b'],
    }
    rows = [
        Row(name, measure(lambda words=words: _call(words), repeats)[0])  # type: ignore[misc]
        for name, words in commands.items()
    ]
    times = tuple(_first_message() for _ in range(repeats))
    rows.append(Row('longreach launch crane to first sensors message', times))
    return rows


def plants(quick: bool) -> list[Row]:
    """Measure the processor time of plants per second of real time, with all outputs published."""
    rows = []
    for name, command in PLANTS.items():
        # Compiles the kernels.
        _call((*command, 'duration:=0.5'))
        # Without start and end, which both runs have.
        short, long = 4.0, 9.0 if quick else 12.0
        spent = [_processor_time((*command, f'duration:={end}')) for end in (short, long)]
        share = (spent[1] - spent[0]) / (long - short)
        rows.append(Row(name, (share,), note=f'{100.0 * share:.0f} % of a core'))
    return rows


def _processor_time(command: Sequence[str]) -> float:
    """Return the processor time of a command and its children, from start to exit [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _call(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _call(command: Sequence[str]) -> None:
    """Run a command to its end."""
    text = ' '.join(command)
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchmarkError(f'{text} did not end within {DEADLINE:.0f} s') from error
    if done.returncode:
        raise BenchmarkError(f'{text} ended with {done.returncode}:\n{done.stdout[-2000:]}')


def _first_message() -> float:
    """Return the time from starting the launch file in real time to the first sample [s]."""
    # Imported here: the other sections also run without ROS.
    import rclpy
    from longreach_msgs.msg import CraneSensors
    from rclpy.context import Context
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rclpy.utilities import try_shutdown

    from longreach_node.middleware import use_dds_profile

    # As Longreach's own nodes and commands: a participant with Fast DDS' defaults finds a new one
    # only after up to 3 s.
    use_dds_profile()
    context = Context()
    rclpy.init(context=context)
    node = rclpy.create_node('bench', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    arrivals: list[float] = []
    node.create_subscription(
        CraneSensors,
        '/crane/sensors',
        lambda _: arrivals.append(time.perf_counter()),
        QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
        raw=True,
    )
    started = time.perf_counter()
    process = subprocess.Popen(LAUNCH, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not arrivals and time.perf_counter() - started < DEADLINE:
            if process.poll() is not None:
                raise BenchmarkError(f'{" ".join(LAUNCH)} ended with {process.returncode}')
            executor.spin_once(timeout_sec=0.1)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(DEADLINE)
        executor.shutdown()
        node.destroy_node()
        try_shutdown(context=context)
    if not arrivals:
        raise BenchmarkError(f'no message on /crane/sensors within {DEADLINE:.0f} s')
    return arrivals[0] - started


SECTIONS = {
    'c': Section('Lockstep over ROS, launch to exit', lockstep, 'of 1 s'),
    'd': Section('Starting times', starts),
    'g': Section('One second of plants in real time, 1 ms steps', plants),
}
