"""Commands that talk to a boom that runs: what it does then, and what they refuse."""

import re

import numpy as np
import pytest
from longreach_msgs.msg import ValveCommand

from longreach_boom.model import Load
from longreach_boom.nodes import ControllerNode, PlantNode
from longreach_boom.spec import BOOM
from longreach_dynamics.errors import InputError, LongreachError
from longreach_node.testing import bench
from longreach_tools import options
from longreach_tools.cli import _Parser
from longreach_tools.machine_command import configure


def parsed(*words):
    """Return the arguments of a command."""
    parser = _Parser(prog='boom')
    configure(BOOM, parser)
    return parser.parse_args([str(word) for word in words])


def run(*words):
    """Run a command, here."""
    arguments = parsed(*words)
    arguments.run(arguments)


SITE = np.radians((70.0, -50.0, -35.0, -30.0))


class Rig:
    """A boom that runs, and somebody at a command line."""

    def __init__(self, b):
        self.bench = b
        self.plant = b.add(PlantNode)

    def begin(self, *words):
        """Begin a command beside the boom."""
        arguments = parsed(*words)
        return self.bench.begin(arguments.run, arguments)

    def do(self, *words):
        """Run a command while the boom works."""
        self.bench.end(self.begin(*words))

    def controlled(self):
        """Return a controller that holds the boom."""
        controller = self.bench.add(ControllerNode)
        self.bench.until(lambda: controller._state is not None, 'a controlled boom')
        return controller


@pytest.fixture
def rig(tmp_path):
    """A boom in the site pose, in real time, in its usual namespace."""
    file = tmp_path / 'rest.yaml'
    file.write_text('duration: 1.0\npose: site\n')
    settings = tmp_path / 'parameters.yaml'
    settings.write_text(f'/boom/plant: {{ros__parameters: {{scenario: {file}}}}}')
    with bench('-r', '__ns:=/boom', '--params-file', str(settings)) as b:
        yield Rig(b)


def test_loads_come_and_go(rig, capsys):
    rig.do('attach', 90)
    rig.do('attach', 20.5, '--beam', 'beam_2', '--position', 3)
    assert rig.plant.state.loads == (Load(90.0, 3, 9.0), Load(20.5, 1, 3.0))
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith('90 kg on beam_4 at 9 m from ')
    assert second.startswith('20.5 kg on beam_2 at 3 m from ')
    rig.do('release-load')
    assert rig.plant.state.loads == ()
    assert capsys.readouterr().out.startswith('110.5 kg released at ')
    with pytest.raises(LongreachError, match=r'^/boom/plant/release_load: the boom holds nothing'):
        rig.do('release-load')


def test_valves_move_and_close(rig, capsys):
    plant, b = rig.plant, rig.bench
    told = b.listen(ValveCommand, '/boom/valve_command')
    command = rig.begin('valves', '-0.5,0,0.25,1', '--duration', 0.7)
    b.until(lambda: plant.command == (-0.5, 0.0, 0.25, 1.0), 'open valves')
    begun = plant.sample
    b.until(lambda: plant.command == (0.0,) * 4, 'closed valves')
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


def test_as_many_spools_as_cylinders(rig):
    with pytest.raises(InputError, match=r'^command has 2 values, allowed: 4, one for each'):
        rig.do('valves', '0.5,0')


def reference(controller, later):
    """Return the angles that a controller will want at a time from now on."""
    return controller._state.trajectory.at(controller._state.time + later).angles


def test_joints_move(rig, capsys):
    controller = rig.controlled()
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


def test_a_move_that_the_controller_refuses(rig):
    controller = rig.controlled()
    error = "^/boom/trajectory: trajectory ignored: trajectory has the joint 'arm'"
    with pytest.raises(LongreachError, match=error):
        rig.do('move', '1.2', '--joints', 'arm', '--time', 2)
    assert reference(controller, 3.0) == pytest.approx(SITE, abs=1e-3)


@pytest.mark.parametrize(
    ('words', 'error'),
    [
        (
            ('attach', 90),
            '^no service /north/plant/attach_load after 0.2 s; .* launch boom',
        ),
        (('valves', '0,0,0,0'), '^no plant listens to /north/valve_command after 0.2 s'),
        (('move', '0', '--time', 1), '^no controller listens to /north/trajectory after 0.2 s'),
        (('move', '70,-50,0,0', '--time', 1), r'angles up to 70 rad, allowed: \[-2 pi, 2 pi\]'),
        (('move', '1,2', '--time', 1, '--joints', 'beam_1'), '2 angles, allowed: 1, one for'),
        (('move', '1', '--time', 1e9), r'time = 1000000000 s, allowed: \(0, 1e\+06\] s'),
        (('attach', 0), '0, allowed: above 0'),
        (('attach', 90, '--position', -1), '-1, allowed: 0 or more'),
        (('valves', '0.5,2'), r'2, allowed: \[-1, 1\]'),
        (('move', '0.5'), 'required: --duration'),
    ],
)
def test_what_cannot_be_or_where_nobody_is(words, error, monkeypatch, capsys):
    monkeypatch.setattr(options, 'ANSWER', 0.2)
    with pytest.raises((LongreachError, SystemExit)) as caught:
        run(*words, '--namespace', 'north')
    assert re.search(error, capsys.readouterr().err or str(caught.value))
