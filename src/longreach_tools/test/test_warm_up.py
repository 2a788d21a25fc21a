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
import os, signal, sys, threading
from longreach_node.entry import machine_node
from numba.core import event
sys.argv[0] = sys.argv.pop()
threading.Timer(float(sys.argv.pop()), os.kill, (os.getpid(), signal.SIGINT)).start()
with event.install_recorder('numba:compile') as recorder:
    try:
        machine_node()
    except SystemExit as end:
        assert not end.code
print(*{e.data['dispatcher'].py_func.__qualname__ for _, e in recorder.buffer})
"""
_NODES: dict[str, list[str]] = {}
for _one in entry_points(group='console_scripts'):
    if _one.value.endswith(':machine_node') and _one.name in ('plant', 'controller'):
        package = _one.dist.name.replace('-', '_')
        _NODES.setdefault(package, []).append(f'{package}/{_one.name}')


@pytest.mark.slow
@pytest.mark.parametrize('package', _NODES)
def test_running_nodes_compile_nothing(package):
    pytest.importorskip('rclpy')
    environment = os.environ | {'ROS_DOMAIN_ID': os.environ['LONGREACH_TEST_QUIET_DOMAIN']}
    options = {'stdout': subprocess.PIPE, 'text': True, 'env': environment}
    # Again where the first run filled the cache, or a loaded machine ended it at its start.
    for seconds in ('8', '30', '60'):
        calls = [[sys.executable, '-c', _RUN, seconds, node] for node in _NODES[package]]
        started = [subprocess.Popen(call, **options) for call in calls]
        found = [one.communicate()[0].strip() or one.returncode for one in started]
        if not any(found):
            break
    assert not any(found), found
