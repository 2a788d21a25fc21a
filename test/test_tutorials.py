"""The tutorials of docs/tutorials do what they say, as a reader would run them."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from longreach_crane.machine import Crane
from longreach_crane.parameters import load_machinery
from longreach_crane.state import Command
from longreach_tools.bag import read_bag
from longreach_tools.testing import DEADLINE, launch

TUTORIALS = Path(__file__).resolve().parent.parent / 'docs' / 'tutorials'
CYCLES = 500


def loaded(name: str) -> ModuleType:
    """Return a script of the tutorials as a module."""
    spec = importlib.util.spec_from_file_location(name, TUTORIALS / f'{name}.py')
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def library_run(cycles: int) -> np.ndarray:
    """Return the car's positions [m] under the tutorial's PD control, without ROS."""
    script = loaded('pd_controller')
    crane, control = Crane(load_machinery().crane), script.PD()
    state, positions = crane.initial_state(), []
    for cycle in range(cycles):
        positions.append(state.x[1])
        command = Command(control.force(state.x[1]), False)
        state = crane.advance(state, command, cycle * script.SAMPLE_TIME, script.SAMPLE_TIME)
    return np.array([*positions, state.x[1]])


def test_own_controller_is_at_most_60_lines() -> None:
    assert len((TUTORIALS / 'pd_controller.py').read_text().splitlines()) <= 60


def test_own_controller_reaches_its_set_point_with_little_overshoot() -> None:
    positions = library_run(2000)
    stated = re.search(r'# ([\d.]+) m$', (TUTORIALS / 'controller.md').read_text(), re.MULTILINE)
    assert stated
    assert f'{positions[-1]:.4f}' == stated[1]
    assert positions.max() < 3.01


def test_own_controller_in_lockstep_gives_the_library_run(tmp_path: Path) -> None:
    arguments = ['controller:=false', 'scenario:=task_b', 'lockstep:=true']
    arguments += ['real_time_factor:=0.0', f'duration:={CYCLES / 100}', 'record:=pd']
    with launch('crane', tmp_path, *arguments) as running:
        controller = subprocess.Popen([sys.executable, str(TUTORIALS / 'pd_controller.py')])
        try:
            assert running.wait() == 0, running.text()
            controller.send_signal(signal.SIGINT)
            assert controller.wait(DEADLINE) == 0
        finally:
            controller.kill()
            controller.wait()
    sensors = read_bag(tmp_path / 'pd', ['/crane/sensors'])
    recorded = [message.car_position for _, _, message in sensors]
    np.testing.assert_array_equal(recorded, library_run(CYCLES))


def test_library_script_runs_without_ros(tmp_path: Path) -> None:
    # An import of any of these would raise ModuleNotFoundError.
    program = (
        'import runpy, sys\n'
        'for name in ("rclpy", "longreach_msgs", "longreach_node", "longreach_tools"):\n'
        '    sys.modules[name] = None\n'
        f'runpy.run_path({str(TUTORIALS / "library.py")!r})\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert 'the crane stops at 3.000 m' in done.stdout
    assert (tmp_path / 'out' / 'library.png').stat().st_size > 10_000
