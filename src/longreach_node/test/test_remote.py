"""What commands share when they talk to nodes that run."""

import pytest
from rcl_interfaces.msg import Log
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from longreach_dynamics.errors import InputError, LongreachError
from longreach_node import qos
from longreach_node.remote import remote
from longreach_node.stamps import stamp_of
from longreach_node.testing import bench


class Station(Node):
    """Listens, answers, and logs."""

    def __init__(self, name='station'):
        super().__init__(name, namespace='far')
        self.heard = []
        self.mood = True
        self.create_subscription(Float64, 'number', self._on_number, qos.SET_POINT)
        self.create_service(Trigger, '~/go', self._on_go)

    def _on_number(self, message):
        self.heard.append(message.data)
        self.get_logger().info(f'heard {message.data}')

    def _on_go(self, _, response):
        response.success, response.message = self.mood, 'gone' if self.mood else 'too late'
        return response


def talk(b, words, timeout=10.0):
    return b.end(b.begin(run, words, timeout))


def run(words, timeout):
    with remote('visitor', 'far', timeout, 'longreach launch station') as far:
        return words(far)


@pytest.fixture
def b():
    with bench() as tests:
        yield tests


def test_a_message_is_delivered(b):
    station = b.add(Station)

    def words(far):
        publisher = far.publisher(Float64, 'number', qos.SET_POINT, 'station')
        far.deliver(publisher, Float64(data=3.0))
        return str(publisher.topic_name)

    assert talk(b, words) == '/far/number'
    b.until(lambda: station.heard, 'number')
    assert station.heard == [3.0]
    # It has left.
    b.until(lambda: b.driver.count_publishers('/far/number') == 0, 'end of the publisher')


def test_a_recorder_is_not_who_was_looked_for(b):
    b.add(lambda: Station('recorder'))
    with pytest.raises(LongreachError) as caught:
        talk(b, lambda far: far.publisher(Float64, 'number', qos.SET_POINT, 'station'), 0.3)
    assert str(caught.value) == (
        'no station listens to /far/number after 0.3 s; start one with longreach launch station,'
        ' in the same ROS_DOMAIN_ID, or name its --namespace'
    )


def test_a_service_answers_refuses_or_is_not_there(b):
    station = b.add(Station)
    assert talk(b, lambda far: far.call(Trigger, 'station/go')) == 'gone'
    station.mood = False
    with pytest.raises(LongreachError, match=r'^/far/station/go: too late$'):
        talk(b, lambda far: far.call(Trigger, 'station/go'))
    with pytest.raises(LongreachError, match=r'^no service /far/station/come after 0\.3 s; start'):
        talk(b, lambda far: far.call(Trigger, 'station/come'), 0.3)


def test_a_service_that_hangs(b):
    b.add(Station)
    with remote('visitor', 'far', 10.0, 'longreach launch station') as far:
        far.until(far.node.create_client(Trigger, 'station/go').service_is_ready, 'no service')
        far.timeout = 0.3
        # Nobody lets the bench work.
        with pytest.raises(LongreachError, match=r'^no answer from /far/station/go after 0\.3 s$'):
            far.call(Trigger, 'station/go')


def logged(far, name, number):
    """Return what a station logs of a number."""
    log = far.log_of(name)
    publisher = far.publisher(Float64, 'number', qos.SET_POINT, name)
    far.deliver(publisher, Float64(data=number))
    far.until(lambda: log, 'no log')
    far.spin(0.2)
    return log


def test_the_log_of_one_node_is_heard(b):
    station, other = b.add(Station), b.add(lambda: Station('other'))
    # Both log what they hear.
    assert talk(b, lambda far: logged(far, 'station', 1.0)) == ['heard 1.0']
    assert station.heard == other.heard == [1.0]
    with pytest.raises(LongreachError, match=r'^no log of nobody on /rosout after 0\.3 s$'):
        talk(b, lambda far: far.log_of('nobody'), 0.3)


class LateClock(Station):
    """Logs with the stamps of a computer whose clock is an hour behind."""

    def __init__(self):
        super().__init__('late')
        self._lines = self.create_publisher(Log, '/rosout', qos.LATCHED_STREAM)

    def _on_number(self, message):
        stamp = stamp_of(self.get_clock().now().nanoseconds - 3_600_000_000_000)
        self._lines.publish(Log(name='far.late', msg=f'heard {message.data}', stamp=stamp))


def test_the_log_of_another_computer_is_heard_and_old_lines_are_not(b):
    b.add(LateClock)
    assert talk(b, lambda far: logged(far, 'late', 1.0)) == ['heard 1.0']
    assert talk(b, lambda far: logged(far, 'late', 2.0)) == ['heard 2.0']


OTHERS = 'commands {topic}, too; stop it'


def command(far, duration):
    publisher = far.sole_publisher(Float64, 'command', OTHERS)
    far.repeat(publisher, Float64(data=1.0), duration, Float64(data=0.0), OTHERS)


class Plant(Station):
    """Listens to commands, in the quality of service in which they are sent."""

    def __init__(self):
        super().__init__('plant')
        self.create_subscription(Float64, 'command', self._on_number, qos.STREAM)


def test_a_command_is_repeated_and_taken_back(b):
    plant = b.add(Plant)
    talk(b, lambda far: command(far, 0.3))
    b.until(lambda: plant.heard[-1:] == [0.0], 'last command')
    assert set(plant.heard[:-1]) == {1.0}
    # 50 Hz, or slower where the machine is busy.
    assert 2 <= len(plant.heard) <= 16


def test_only_one_commands(b):
    plant = b.add(Plant)
    begun = b.begin(run, lambda far: command(far, 1000.0), 10.0)
    b.until(lambda: plant.heard, 'commands')
    b.publisher(Float64, '/far/command')
    with pytest.raises(LongreachError, match=r'^driver commands /far/command, too; stop it$'):
        b.end(begun)
    b.until(lambda: plant.heard[-1] == 0.0, 'last command')
    count = len(plant.heard)
    with pytest.raises(LongreachError, match=r'^driver commands /far/command, too; stop it$'):
        talk(b, lambda far: command(far, 1000.0))
    assert len(plant.heard) == count


def test_a_plant_that_goes(b):
    plant = b.add(Plant)
    begun = b.begin(run, lambda far: command(far, 1000.0), 10.0)
    b.until(lambda: plant.heard, 'commands')
    b.remove(plant)
    with pytest.raises(LongreachError, match=r'^/far/command: the plant has gone$'):
        b.end(begun)


def test_time_that_moves_on_or_stands_still(b):
    samples = b.driver.create_publisher(JointState, '/far/joint_states', qos.STREAM)
    stamps = iter(range(10**9))
    moving = b.driver.create_timer(0.01, lambda: samples.publish(sample(next(stamps))))

    def wait(far):
        return far.moving_sample(JointState, 'joint_states', 'toy', 'wake it')

    assert talk(b, wait).name == ['arm']
    b.driver.destroy_timer(moving)
    b.driver.create_timer(0.01, lambda: samples.publish(sample(7)))
    error = r'^/far/joint_states: the time of the toy stands still after 0\.5 s; wake it$'
    with pytest.raises(LongreachError, match=error):
        talk(b, wait, 0.5)


def sample(stamp):
    message = JointState(name=['arm'])
    message.header.stamp = stamp_of(stamp)
    return message


@pytest.mark.parametrize('namespace', ['a b', 'far/', 'x//y', '9'])
def test_a_namespace_that_cannot_be(namespace):
    with (
        pytest.raises(InputError, match=f'^namespace {namespace!r} must not '),
        remote('visitor', namespace, 1.0, ''),
    ):
        pass
