"""Commands that talk to a boom that runs: what it does then, and what they refuse."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
import yaml
from longreach_msgs.msg import ValveCommand

from longreach_boom.controller_node import ControllerNode
from longreach_boom.model import Load
from longreach_boom.plant_node import PlantNode
from longreach_boom.spec import BOOM
from longreach_boom.state import BoomCommand, closed_valves
from longreach_dynamics.errors import LongreachError
from longreach_dynamics.machine import BY_SCENARIO
from longreach_node.testing import Bench, bench
from longreach_tools.machine_command import configure

SITE = np.radians((70.0, -50.0, -35.0, -30.0))


def run(*words: object) -> None:
    """Run a command, here."""
    parser = argparse.ArgumentParser(prog='boom')
    configure(BOOM, parser)
    arguments = parser.parse_args([str(word) for word in words])
    arguments.run(arguments)


class Rig:
    """A boom that runs, and somebody at a command line."""

    def __init__(self, b: Bench) -> None:
        self.bench = b
        self.plant = b.add(PlantNode)

    def begin(self, *words: object) -> Future[None]:
        """Begin a command beside the boom."""
        return self.bench.begin(run, *words, '--timeout', 10)

    def hasty(self, *words: object) -> None:
        """Run a command that waits in vain, but long enough to find the plant."""
        self.bench.end(self.bench.begin(run, *words, '--timeout', 4))

    def do(self, *words: object) -> None:
        """Run a command while the boom works."""
        self.bench.end(self.begin(*words))


@contextlib.contextmanager
def running(directory: Path, **parameters: object) -> Iterator[Rig]:
    """Let a boom run in its usual namespace that nobody drives."""
    file = directory / 'parameters.yaml'
    file.write_text(yaml.safe_dump({'/boom/plant': {'ros__parameters': parameters}}))
    words = ('-r', '__ns:=/boom', '--params-file', str(file))
    with bench(*words) as b:
        yield Rig(b)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A boom in the site pose, in real time."""
    file = tmp_path / 'rest.yaml'
    file.write_text('duration: 1.0\npose: site\n')
    with running(tmp_path, scenario=str(file)) as rig:
        yield rig


@pytest.mark.slow
def test_loads_come_and_go(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    rig.do('attach', 90)
    rig.do('attach', 20.5, '--beam', 'beam_2', '--position', 3)
    assert rig.plant.state.loads == (Load(90.0, 3, 9.0), Load(20.5, 1, 3.0))
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith('90 kg on beam_4 at 9 m from ')
    assert second.startswith('20.5 kg on beam_2 at 3 m from ')
    rig.do('release-load')
    assert rig.plant.state.loads == ()
    assert capsys.readouterr().out.startswith('110.5 kg released at ')
    with pytest.raises(LongreachError, match=r'^/boom/plant/release_load: no load hangs on'):
        rig.do('release-load')


@pytest.mark.parametrize(
    ('words', 'error'),
    [
        ((90, '--beam', 'arm'), "'arm', allowed: beam_1"),
        ((90, '--position', 100), r'position = 100\.0 m, allowed: \[0, 9\] m'),
        ((1e7,), r'mass = 10000000\.0, allowed: \(0'),
    ],
)
def test_a_load_that_the_boom_refuses(rig: Rig, words: tuple[object, ...], error: str) -> None:
    with pytest.raises(LongreachError, match=error):
        rig.do('attach', *words)
    assert rig.plant.state.loads == ()


def test_valves_move_and_close(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    plant, b = rig.plant, rig.bench
    told: list[ValveCommand] = b.listen(ValveCommand, '/boom/valve_command')
    command = rig.begin('valves', '-0.5,0,0.25,1', '--duration', 0.7)
    b.until(lambda: plant.command == BoomCommand((-0.5, 0.0, 0.25, 1.0)), 'open valves')
    begun = plant.sample
    b.until(lambda: plant.command == closed_valves(4), 'closed valves')
    rig.bench.end(command)
    b.settle()
    spools = [tuple(message.spool) for message in told]
    assert set(spools[:-1]) == {(-0.5, 0.0, 0.25, 1.0)}
    assert spools[-1] == (0.0, 0.0, 0.0, 0.0)
    # No faster than 50 Hz, and without a pause as long as command_timeout.
    assert 3 <= len(spools) <= 36
    assert plant.sample > begun
    assert told[0].name == ['cylinder_1', 'cylinder_2', 'cylinder_3', 'cylinder_4']
    assert capsys.readouterr().out == (
        'valves at -0.5, 0, 0.25, 1 for 0.7 s over /boom/valve_command, then closed\n'
    )


def is_open(plant: PlantNode) -> bool:
    """Tell whether a command has opened a valve."""
    return plant.command is not BY_SCENARIO and any(plant.command.spools)


def controlled(rig: Rig) -> ControllerNode:
    """Return a controller that holds the boom."""
    controller = rig.bench.add(ControllerNode)
    rig.bench.until(lambda: controller._state is not None, 'a controlled boom')
    return controller


def reference(controller: ControllerNode, later: float) -> np.ndarray:
    """Return the angles that a controller will want at a time from now on."""
    return controller._state.trajectory.at(controller._state.time + later).angles


def test_joints_move(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    controller = controlled(rig)
    rig.do('move', '68,-50,-33,-28', '--degrees', '--time', 4.5)
    assert reference(controller, 5.0) == pytest.approx(np.radians((68.0, -50.0, -33.0, -28.0)))
    rig.do('move', '-0.6,1.2', '--joints', 'beam_3,beam_1', '--time', 60)
    wanted = controller._state.trajectory
    assert wanted.duration - controller._state.time == pytest.approx(60.0, abs=5.0)
    final = reference(controller, 100.0)
    assert final[[0, 2]] == pytest.approx([1.2, -0.6])
    # The others stay where the reference was.
    assert final[1] == pytest.approx(SITE[1], abs=1e-3)
    assert capsys.readouterr().out.splitlines()[0] == (
        'the controller accepted a trajectory of 4.5 s on /boom/trajectory'
    )


@pytest.mark.parametrize(
    ('words', 'error'),
    [
        (('3,0,0,0',), 'trajectory ignored: '),
        (('1.2,0.1',), 'trajectory ignored: trajectory has 2 positions in point 0, allowed: 4'),
        (('1.2', '--joints', 'arm'), "trajectory ignored: trajectory has the joint 'arm'"),
    ],
)
def test_a_move_that_the_controller_refuses(rig: Rig, words: tuple[str, ...], error: str) -> None:
    controller = controlled(rig)
    with pytest.raises(LongreachError, match=f'^/boom/trajectory: {error}'):
        rig.do('move', *words, '--time', 2)
    assert reference(controller, 3.0) == pytest.approx(SITE, abs=1e-3)


@pytest.mark.parametrize(
    ('words', 'error'),
    [
        (('attach', 0), '0, allowed: above 0'),
        (('attach', math.nan), 'nan, allowed: finite'),
        (('attach', 90, '--position', -1), '-1, allowed: 0 or more'),
        (('valves', '0.5,2'), '2, allowed: [-1, 1]'),
        (('valves', '0.5,nan'), 'nan, allowed: finite'),
        (('valves', '0.5,,0'), "'0.5,,0', allowed: numbers separated by commas"),
        (('valves', '0.5', '--duration', 0), '0, allowed: above 0'),
        (('move', '0.5'), 'required: --duration'),
        (('move', '0.5,far', '--time', 1), "'0.5,far', allowed: numbers separated by commas"),
        (('move', '0.5', '--time', 'inf'), 'inf, allowed: finite'),
        (('move', '0.5', '--time', 1, '--joints', 'a,'), "'a,', allowed: names"),
        (('pause', '--timeout', 0), '0, allowed: above 0'),
    ],
)
def test_bad_words(
    capsys: pytest.CaptureFixture[str], words: tuple[object, ...], error: str
) -> None:
    with pytest.raises(SystemExit) as end:
        run(*words)
    assert end.value.code == 2
    assert error in capsys.readouterr().err
