"""What all nodes that answer samples do; their samples are in test_samples."""

from sensor_msgs.msg import JointState
from simulation_rig import Wall

from longreach_node import cycle_node, diagnostics
from longreach_node.cycle_node import CycleNode
from longreach_node.testing import bench


class Listener(CycleNode):
    """A node that answers nothing."""

    hydraulics = False

    def __init__(self):
        super().__init__('listener')
        self.listen('listener', 0.01, lockstep=False)

    def run_cycle(self, stamp, joints, hydraulics):
        return None

    def state_text(self):
        return 'listening'


def test_each_silence_is_said_once(monkeypatch, capfd):
    wall = Wall()
    monkeypatch.setattr(cycle_node, 'time', wall)
    with bench() as b:
        node = b.add(Listener)
        capfd.readouterr()
        said = []

        def after(seconds):
            wall.seconds += seconds
            node._watch()
            said.append(''.join(capfd.readouterr()))
            return said[-1]

        assert after(4.9) == ''
        assert 'nothing on /joint_states for 5 s: no publisher; is the plant running' in after(0.2)
        assert after(60.0) == ''
        publisher = b.publisher(JointState, 'joint_states')
        publisher.publish(JointState())
        b.until(lambda: node._has_heard, 'message')
        assert 'first message on /joint_states' in after(0.0)
        assert '1 publisher(s); is the simulation paused' in after(5.1)
        publisher.publish(JointState())
        b.until(lambda: not node._is_silent, 'message')
        assert '/joint_states again, after 5.1 s of silence' in after(0.0)


def test_a_warning_does_not_hide_another(monkeypatch, capfd):
    wall = Wall()
    monkeypatch.setattr(diagnostics, 'time', wall)
    with bench() as b:
        node = b.add(Listener)
        capfd.readouterr()

        def said(*texts):
            for text in texts:
                node.warn(text)
            return ''.join(capfd.readouterr())

        first = said('sample of 1 s', 'sample of 2 s', 'target ignored')
        assert ('1 s' in first, '2 s' in first, 'target' in first) == (True, False, True)
        wall.seconds += 1.1
        assert 'sample of 3 s' in said('sample of 3 s')
