"""A node's process: how it ends, whenever it is told to, and with what exit code."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DEADLINE = 20.0

# The modules of the toy node; {body} runs in its constructor.
NODE = """
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Float64
from longreach_dynamics.errors import InputError, LongreachError

class Toy(Node):
    def __init__(self):
        super().__init__('toy')
        {body}
        self.publisher = self.create_publisher(Float64, 'number', 10)
        self.create_timer(0.001, self.tick)
    def tick(self):
        {tick}
        self.publisher.publish(Float64(data=1.0))
"""
# Sends the process itself a signal at a named point.
AT_A_POINT = """
import os, signal, sys, time
point, number = sys.argv[1], int(sys.argv[2])
def reached(name):
    if name == point:
        os.kill(os.getpid(), number)
        # Lets rclpy's thread for signals act before the next line runs.
        time.sleep(0.05)
class Finder:
    def find_spec(name, *_):
        reached(f'import of {name}')
sys.meta_path.insert(0, Finder)
if point.startswith('import'):
    from longreach_node.entry import node_entry
    node_entry('toy:Toy')()
import rclpy
begin, make = rclpy.init, rclpy.Context.init
def make_context(*args, **kwargs):
    reached('inside init')
    make(*args, **kwargs)
def initialise(**options):
    reached('before init')
    begin(**options)
    reached('after init')
rclpy.Context.init, rclpy.init = make_context, initialise
import toy
toy.reached = reached
from longreach_node.entry import node_entry
node_entry('toy:Toy')()
"""


def process(directory, program, *words):
    return subprocess.Popen(
        [sys.executable, '-c', program, *words],
        cwd=directory,
        env={**os.environ, 'PYTHONPATH': f'{directory}:{os.environ.get("PYTHONPATH", "")}'},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def toy(directory, body='pass', tick='pass'):
    (directory / 'toy.py').write_text(NODE.format(body=body, tick=tick))


def output(running):
    try:
        return running.communicate(timeout=DEADLINE)[0]
    except subprocess.TimeoutExpired:
        running.kill()
        raise


def wait_for_handlers(running):
    """Wait until the process catches SIGTERM: Python itself only catches SIGINT."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        status = Path(f'/proc/{running.pid}/status').read_text()
        caught = int(status.split('SigCgt:')[1].split()[0], 16)
        if caught >> (signal.SIGTERM - 1) & 1:
            return
    raise AssertionError('no handlers')


RUN = "from longreach_node.entry import node_entry; node_entry('toy:Toy')()"


@pytest.mark.parametrize('name', ['SIGINT', 'SIGTERM'])
@pytest.mark.parametrize(
    'point',
    [
        'import of ctypes',
        'import of importlib.resources',
        'before init',
        'inside init',
        'after init',
        'constructor begins',
        'constructor',
        'callback',
    ],
)
def test_a_signal_at_any_point_ends_it_cleanly(tmp_path, point, name):
    text = NODE.format(body="reached('constructor')", tick="reached('callback')")
    text = text.replace(
        "super().__init__('toy')", "reached('constructor begins'); super().__init__('toy')"
    )
    (tmp_path / 'toy.py').write_text(text)
    running = process(tmp_path, AT_A_POINT, point, str(getattr(signal, name).value))
    assert output(running) == ''
    assert running.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize('signals', [['SIGINT'], ['SIGTERM'], ['SIGINT', 'SIGINT']])
def test_signals_at_random_moments(tmp_path, signals):
    # From the first import of the node's modules until well into its work.
    toy(tmp_path)
    moments = random.Random(str(signals))
    for delay in (0.0, *(moments.uniform(0.0, 0.4) for _ in range(3))):
        running = process(tmp_path, RUN)
        wait_for_handlers(running)
        time.sleep(delay)
        for name in signals:
            running.send_signal(getattr(signal, name))
            time.sleep(moments.uniform(0.0, 0.01))
        assert (output(running), running.returncode) == ('', 0), delay


@pytest.mark.parametrize(
    ('moment', 'kind', 'code', 'name'),
    [('body', 'InputError', 2, 'longreach'), ('tick', 'LongreachError', 1, 'toy')],
)
def test_a_known_failure_is_one_line(tmp_path, moment, kind, code, name):
    toy(tmp_path, **{moment: f'raise {kind}("step = 0, allowed: more")'})
    running = process(tmp_path, RUN)
    (line,) = output(running).splitlines()
    assert running.returncode == code
    assert 'FATAL' in line
    assert line.endswith(f'[{name}]: step = 0, allowed: more')


@pytest.mark.parametrize('moment', ['body', 'tick'])
def test_a_signal_ends_a_long_calculation(tmp_path, moment):
    # An hour of it, in a constructor or a callback.
    work = "print('at work', flush=True); import time; time.sleep(3600.0)"
    toy(tmp_path, **{moment: work})
    running = process(tmp_path, RUN)
    assert running.stdout is not None
    assert running.stdout.readline() == 'at work\n'
    running.terminate()
    assert (output(running), running.returncode) == ('', 0)


def test_an_unknown_failure_keeps_its_traceback(tmp_path):
    toy(tmp_path, tick='raise RuntimeError("a mistake in the program")')
    running = process(tmp_path, RUN)
    text = output(running)
    assert running.returncode == 1
    assert 'Traceback' in text
    assert 'RuntimeError: a mistake in the program' in text


@pytest.mark.parametrize(
    'more',
    [
        '',
        # As rclpy where the middleware hangs: the interpreter's lock is kept.
        '; import ctypes; self.destroy_node = lambda: ctypes.PyDLL(None).sleep(3600)',
    ],
)
def test_it_ends_when_the_node_is_done(tmp_path, more):
    toy(tmp_path, body=f'self.done = Future(){more}', tick='self.done.set_result(None)')
    running = process(tmp_path, RUN)
    assert (output(running), running.returncode) == ('', 0)


@pytest.mark.parametrize(
    ('words', 'domain', 'error'),
    [
        (['--ros-args', '-p', 'lockstep'], '', 'arguments after --ros-args cannot be used'),
        ([], 'abc', 'ROS_DOMAIN_ID = abc, allowed: whole numbers from 0 to 232'),
    ],
)
def test_what_ros_cannot_read_is_bad_input(tmp_path, monkeypatch, words, domain, error):
    monkeypatch.setenv('ROS_DOMAIN_ID', domain)
    toy(tmp_path)
    running = process(tmp_path, RUN, *words)
    text = output(running)
    assert running.returncode == 2
    assert error in text
    assert 'Traceback' not in text
