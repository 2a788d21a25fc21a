"""The shipped launch files of the machines, started as a user would, from the outside."""

import signal
from pathlib import Path

import pytest
from longreach_msgs.msg import ValveCommand
from sensor_msgs.msg import JointState, Joy
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_excavator.machine import CLOSED
from longreach_harvester.parameters import default_file
from longreach_node import qos
from longreach_node.testing import bench
from longreach_symbolic.links import default_file as default_links
from longreach_tools.testing import DEADLINE, Outcome, contents, launch

# Of each machine: samples per second, what each of them is published on, and the drawing, with the
# samples from one to the next.
RATE = {'boom': 200, 'crane': 100, 'excavator': 50, 'harvester': 100, 'links': 200}
STREAMS = {
    'boom': ('joint_states', 'hydraulics', 'strain', 'marker_truth'),
    'crane': ('sensors', 'joint_states', 'command', 'status'),
    'excavator': ('joint_states', 'hydraulics', 'reactions', 'soil_force'),
    'harvester': ('joint_states', 'hydraulics'),
    'links': ('joint_states',),
}
DRAWN = {'boom': ('shape', 7), 'excavator': ('forces', 2), 'links': ('shape', 7)}
REALISTIC = default_file().parent / 'harvester_realistic.yaml'
CONTROLLED = ('controller:=true', 'lockstep:=true')
VARIANT = ('--brake', 'rigid', '--output', 'next_cycle')


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('machine', 'scenario', 'duration', 'words', 'options'),
    [
        ('harvester', 'tip', 3.0, CONTROLLED, ()),
        # Alone as fast as it can, with a controller that leaves valves closed, under control.
        ('boom', 'load_release', 1.5, ('lockstep:=true',), ()),
        ('boom', 'wave', 3.0, ('lockstep:=true', 'sensors:=typical'), ()),
        ('boom', 'load_release', 5.0, ('controller:=false',), ()),
        ('crane', 'task_c', 25.0, ('brake:=rigid', 'output:=next_cycle'), VARIANT),
        ('crane', 'task_c', 60.0, (), ()),
        ('crane', 'task_c', 20.0, ('model:=linear', 'lockstep:=true'), ('--model', 'linear')),
        # The operator's station is there, and leaves the scenario alone.
        ('excavator', 'dig_20kpa', 1.0, (), ()),
        ('excavator', 'free_swing', 2.0, (), ()),
        ('excavator', 'cycle', 9.5, (), ()),
        ('harvester', 'sine', 3.0, (), ()),
        ('harvester', 'tip', 2.0, (*CONTROLLED, 'sensors:=typical'), ('--sensors', 'typical')),
        ('harvester', 'open_loop', 9.0, ('model:=reduced',), ('--model', 'reduced')),
        ('harvester', 'tip', 5.0, ('switching:=false',), ('--switching', 'off')),
        ('harvester', 'open_loop', 4.0, (f'file:={REALISTIC}',), ('--file', REALISTIC)),
        ('links', 'circle', 3.0, (), ()),
        ('links', 'swing', 3.0, ('controller:=false',), ()),
        # Other numbers need no compilation.
        ('links', 'circle', 3.0, ('file:=mine.yaml',), ('--file', 'mine.yaml')),
    ],
)
def test_a_bag_equals_the_library(
    tmp_path, capsys, monkeypatch, machine, scenario, duration, words, options
):
    monkeypatch.chdir(tmp_path)
    Path('mine.yaml').write_text(default_links().read_text().replace('2.94', '1.5'))
    fast = ('real_time_factor:=0.0', f'duration:={duration}', 'record:=bag')
    with launch(machine, tmp_path, f'scenario:={scenario}', *fast, *words) as running:
        assert running.wait() == 0, running.text()
    called = ('compare', 'bag', '--scenario', scenario, '--format', 'json')
    found = Outcome(capsys, machine, *called, *options).json
    assert found['same']
    assert found['compared_until'] == duration
    samples = round(duration * RATE[machine]) + 1
    differences = found['differences']
    # Put together anew from joint angles, in another order than the library's.
    tips = [name for name in differences if machine == 'boom' and name.startswith('tip_')]
    assert max((differences.pop(name) for name in tips), default=0.0) < 1e-13
    assert set(differences.values()) == {0.0, samples}
    every = [k * 1_000_000_000 // RATE[machine] for k in range(samples)]
    recorded = contents(tmp_path / 'bag')
    # On a slow machine the plant asks again: then samples are there more than once.
    topics = {
        topic.removeprefix(f'/{machine}/'): sorted({stamp for stamp, _ in messages})
        for topic, messages in recorded.items()
    }
    for topic in STREAMS[machine]:
        assert topics[topic] == every, topic
    if machine in DRAWN:
        # As many as the rate allows, none is lost.
        topic, step = DRAWN[machine]
        assert topics[topic] == every[::step]
    if machine == 'boom':
        # The load that is released at 0 s is gone in the next sample.
        assert topics['load'] == every[: 2 if scenario == 'load_release' else 1]
        commanded = every if 'lockstep:=true' in words else []
        assert topics.get('valve_command', []) == commanded
    if (machine, duration) == ('crane', 60.0):
        # One report a second from each of the two, and one at the emergency.
        assert len(recorded['/diagnostics']) == 61 + 61 + 1
    assert ('terrain' in topics) == (scenario == 'cycle')
    assert 'cylinder_command' not in topics


@pytest.mark.slow
def test_in_real_time_a_trajectory_by_hand_moves_the_boom(tmp_path):
    with launch('boom', tmp_path, 'scenario:=hold') as running, bench(deadline=DEADLINE) as b:
        joints = b.listen(JointState, '/boom/joint_states')
        b.until(lambda: len(joints) > 20, 'running boom')
        publisher = b.publisher(JointTrajectory, '/boom/trajectory', qos.SET_POINT)
        begun = joints[-1].position[0]
        point = JointTrajectoryPoint(positions=[begun - 0.02])
        point.time_from_start.sec = 2
        wanted = JointTrajectory(joint_names=['beam_1_joint'], points=[point])

        def moved():
            # Again: a controller that has not begun does not take it.
            if len(joints) % 600 == 1:
                publisher.publish(wanted)
            return joints[-1].position[0] < begun - 0.01

        publisher.publish(wanted)
        b.until(moved, 'motion')
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 0, running.text()


@pytest.mark.slow
def test_in_real_time_a_person_drives_the_excavator(tmp_path):
    with launch('excavator', tmp_path, 'scenario:=none') as running, bench(deadline=DEADLINE) as b:
        joints = b.listen(JointState, '/excavator/joint_states')
        commands = b.listen(ValveCommand, '/excavator/cylinder_command')
        b.until(lambda: len(joints) > 20, 'running excavator')
        sticks = b.publisher(Joy, '/excavator/joy', qos.SET_POINT)
        assert not commands
        begun = joints[-1].position[0]

        def raised():
            # Right stick back; a joystick repeats itself.
            sticks.publish(Joy(axes=[0.0, 0.0, 0.0, 0.0, -1.0]))
            return joints[-1].position[0] > begun + 0.05

        b.until(raised, 'motion')
        b.until(lambda: tuple(commands[-1].spool) == CLOSED.spools, 'stop without a joystick')
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 0, running.text()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('machine', 'argument', 'error'),
    [
        ('boom', 'scenario:=dance', 'boom_dance.yaml cannot be read: No such file'),
        ('excavator', 'file:=nowhere.yaml', 'nowhere.yaml cannot be read: No such file'),
        ('links', 'arm:=arm.yaml', 'the digital control loop is unstable: spectral radius'),
    ],
)
def test_a_plant_that_refuses_ends_it_with_its_exit_code(tmp_path, machine, argument, error):
    arm = '{drives: [{gain: 125, rate_gain: 25}], sample_time: 0.001}'
    (tmp_path / 'arm.yaml').write_text(arm)
    alone = 'operator:=false' if machine == 'excavator' else 'controller:=false'
    with launch(machine, tmp_path, argument, alone) as running:
        assert running.wait() == 2
        assert error in running.text()
