"""Kernels are compiled once: a process that starts later loads them from the cache."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

# What numba compiles while all warm-ups run; what is loaded from the cache is no such event.
_COMPILED = """
from numba.core import event
from importlib.metadata import entry_points
warm_ups = [point.load() for point in entry_points(group='longreach.warm_up')]
with event.install_recorder('numba:compile') as recorder:
    for warm_up in warm_ups:
        warm_up()
print(*{e.data['dispatcher'].py_func.__qualname__ for _, e in recorder.buffer})
"""


def test_the_second_start_compiles_nothing():
    found = ''
    for _ in range(2):
        call = [sys.executable, '-c', _COMPILED]
        found = subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()
        if not found:
            break
    assert found == ''


# A node that is ended by Ctrl-C after some seconds.
_RUN = """
import importlib, os, signal, sys, threading
from numba.core import event
module, name = sys.argv.pop().split(':')
node = getattr(importlib.import_module(module), name)
threading.Timer(6.0, os.kill, (os.getpid(), signal.SIGINT)).start()
with event.install_recorder('numba:compile') as recorder:
    try:
        node()
    except SystemExit as end:
        assert not end.code
print(*{e.data['dispatcher'].py_func.__qualname__ for _, e in recorder.buffer})
"""
_NODES = [
    one.value
    for one in entry_points(group='console_scripts')
    if one.value.startswith('longreach_') and one.name in ('plant', 'controller')
]


@pytest.mark.slow
@pytest.mark.parametrize('node', _NODES)
def test_a_running_node_compiles_nothing(node):
    pytest.importorskip('rclpy')
    environment = os.environ | {'ROS_DOMAIN_ID': os.environ['LONGREACH_TEST_QUIET_DOMAIN']}
    call = [sys.executable, '-c', _RUN, node]
    for _ in range(2):
        done = subprocess.run(call, capture_output=True, text=True, check=True, env=environment)
        found = done.stdout.splitlines()[-1]
        if not found:
            break
    assert found == ''
