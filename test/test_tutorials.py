"""The tutorials of docs/tutorials do what they say, as a reader would run them."""

from __future__ import annotations

import errno
import importlib.util
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from longreach_crane.machine import Command, Crane
from longreach_crane.model import FREE, Constants, Inputs, right_hand_side
from longreach_crane.parameters import load_machinery
from longreach_tools import cli
from longreach_tools.bag import read_bag
from longreach_tools.testing import DEADLINE, Outcome, launch

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


@pytest.mark.slow
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
        [sys.executable, '-c', program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert 'the crane stops at 3.000 m' in done.stdout
    assert (tmp_path / 'out' / 'library.png').stat().st_size > 10_000


# --- a machine of your own ------------------------------------------------------------------

PENDULUM = TUTORIALS / 'pendulum'


@pytest.fixture(scope='module')
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the tutorial's package under another name, built as an overlay."""
    place = tmp_path_factory.mktemp('workspace')
    assert cli.main(['new', 'my_swing', '--out', str(place / 'src')]) == 0
    done = subprocess.run(['colcon', 'build', '--symlink-install'], cwd=place, capture_output=True)
    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()
    return place


def in_workspace(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command where the workspace is sourced."""
    return subprocess.run(
        ['bash', '-c', '. install/local_setup.bash && exec "$@"', 'bash', *words],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


def test_own_machine_has_at_most_155_lines() -> None:
    files = [
        path for path in PENDULUM.rglob('*') if path.suffix in ('.py', '.xml', '.yaml', '.cfg')
    ]
    lines = [line for path in files for line in path.read_text().splitlines() if line.strip()]
    assert len(lines) <= 155


def test_own_node_can_be_interrupted_while_it_imports() -> None:
    # The handlers of signals are installed when its console script is called.
    script = re.search(r"'plant = ([\w.]+):(\w+)'", (PENDULUM / 'setup.py').read_text())
    assert script
    program = f'from {script[1]} import {script[2]}; import sys; '
    program += 'sys.exit(" ".join({"rclpy", "numba"} & {*sys.modules}))'
    done = subprocess.run(
        [sys.executable, '-c', program], cwd=PENDULUM, capture_output=True, text=True
    )
    assert done.stderr.strip() == ''


@pytest.mark.slow
def test_own_machine_runs_and_draws(workspace: Path) -> None:
    done = in_workspace(
        workspace, 'longreach', 'my_swing', 'run', '--csv', 'p.csv', '--plot', 'p.png'
    )
    assert done.returncode == 0, done.stderr
    table = np.genfromtxt(workspace / 'p.csv', delimiter=',', names=True)
    # It is lifted while the valve is open, and the oil holds it before and after.
    lifted = table['phi'][-1] - table['phi'][0]
    assert 0.1 < lifted < 1.0
    assert np.ptp(table['phi'][table['time'] <= 1.0]) < 1e-3
    assert (workspace / 'p.png').stat().st_size > 10_000
    for words, shown in (
        (('urdf', '--prefix', 'a/'), 'a/arm'),
        (('sweep', 'mass', '400:600:2', '--processes', '1'), 'highest'),
        (('run', '--set', 'length=2.5', '--duration', '1'), 'duration'),
    ):
        done = in_workspace(workspace, 'longreach', 'my_swing', *words)
        assert (done.returncode, shown in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    ('words', 'error'),
    [
        (('My-swing',), "name = 'My-swing', allowed: small letters, digits and _"),
        (('crane',), 'longreach crane is there already'),
        (('machine',), 'longreach machine is there already'),
        (('bringup',), 'longreach bringup is there already'),
        (('lift',), 'its package would have LIFT twice'),
        (('false',), 'its package would have False twice'),
        (('other', '--out', '/proc'), '--out /proc cannot be written'),
        (('other', '--out', 'new/src'), '--out new/src cannot be written: No space left'),
        (('there',), 'longreach_there exists'),
    ],
)
def test_a_package_that_cannot_be_written_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    error: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path('src/longreach_there').mkdir(parents=True)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, 'write_text', full)
    Outcome(capsys, 'new', *words).refused(error)
    assert [path.name for path in Path().rglob('*')] == ['src', 'longreach_there']


@pytest.mark.slow
def test_own_machine_over_ros_is_the_library_run(workspace: Path) -> None:
    file = 'src/longreach_my_swing/my_swing.launch.xml'
    launched = in_workspace(workspace, 'longreach', 'launch', file, 'duration:=2.0', 'record:=bag')
    assert launched.returncode == 0, launched.stderr
    same = in_workspace(workspace, 'longreach', 'my_swing', 'compare', 'bag')
    assert (same.returncode, 'the recording is this run' in same.stdout) == (0, True), same.stderr
    numbers = workspace / 'src/longreach_my_swing/longreach_my_swing/config/my_swing.yaml'
    original = numbers.read_text()
    numbers.write_text(original.replace('mass: 500.0', 'mass: 501.0'))
    try:
        other = in_workspace(workspace, 'longreach', 'my_swing', 'compare', 'bag')
    finally:
        numbers.write_text(original)
    assert other.returncode == 1
    assert 'the recording is not this run' in other.stderr


def test_pressure_feedback_stops_the_harvester() -> None:
    script = loaded('harvester_damping')
    machine = script.machine_of_scenario()
    without, damped = (np.ptp(script.rates(machine, gain)[300:]) for gain in (0.0, script.GAIN))
    assert without > 0.1
    assert damped < 0.01 * without


def test_a_schedule_serves_a_crane_that_hoists() -> None:
    """Matrices of the mean length do not bring the load to rest at a short cable; others do."""
    script = loaded('crane_hoisting')
    machinery = script.machinery_of_the_example()
    fixed, scheduled = (script.arrivals(script.run(machinery, way)) for way in (False, True))
    assert math.isinf(fixed[1])
    assert max(scheduled) < 12.0


def test_the_crane_that_does_not_hoist_is_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    script = loaded('crane_hoisting')
    machinery = script.machinery_of_the_example()
    monkeypatch.setattr(script, 'AMPLITUDE', 0.0)
    crane = machinery.crane.replace(cable_length=script.MEAN)
    x, expected = np.array([40.0, 0.1, 0.5, 0.3, -0.2]), np.empty(5)
    p = Constants.of(crane)
    right_hand_side(0.0, x, Inputs(60.0, 0.0, p.d_c, FREE), p, expected)
    assert script.rates(0.0, x, 60.0, machinery) == pytest.approx(expected, rel=1e-12)


def test_a_load_that_is_hoisted_keeps_its_angular_momentum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without gravity, friction and a car that moves, m_l r^2 alpha' stays."""
    script = loaded('crane_hoisting')
    given = script.machinery_of_the_example()
    crane = given.crane.replace(car_mass=1e9, gravity=1e-9, load_friction=0.0)
    monkeypatch.setattr(script, 'PERIOD', 20.0)
    x, span = np.array([0.0, 0.0, 0.0, 0.1, 0.05]), (0.0, 8.0)
    arguments = (0.0, given.replace(crane=crane))
    found = solve_ivp(script.rates, span, x, args=arguments, rtol=1e-9, atol=1e-12)
    r = [script.cable(time)[0] for time in found.t]
    assert np.square(r) * found.y[4] == pytest.approx(0.05 * r[0] ** 2, rel=1e-4)
    assert min(r) < 0.5 * r[0]


def test_links_reach_a_target_within_limits() -> None:
    script = loaded('links_limits')
    over, late, torques = [], [], []
    for predictive in (False, True):
        angles, given = script.run(predictive)
        off = np.degrees(angles - script.TARGET)
        over.append(off.max())
        late.append(np.flatnonzero(np.abs(off).max(axis=1) > 1.0)[-1])
        torques.append(given.max(axis=0))
    assert over[1] < 0.5 < 2.0 < over[0]
    assert late[1] < 0.7 * late[0]
    assert torques[1] == pytest.approx(torques[0], rel=1e-3)
