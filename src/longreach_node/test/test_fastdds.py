"""The profiles of Fast DDS: it reads them without a word, and does what they say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

CONFIG = Path(__file__).resolve().parents[1] / 'config'
USUAL, IMAGES = 'fastdds.xml', 'fastdds_images.xml'
SEGMENT = 64 << 20

# A node, and the shared memory that its process has.
NODE = """
import rclpy
from rclpy.node import Node
rclpy.init()
node = Node('node')
print(open('/proc/self/maps').read())
node.destroy_node()
rclpy.shutdown()
"""
# Images of 5 MB from one process to another, best effort, and the numbers of those that arrive.
IMAGE = """
import array, sys, time
import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import UInt8MultiArray
rclpy.init()
node = Node(sys.argv[1])
profile = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
end = time.monotonic() + 20.0
if sys.argv[1] == 'camera':
    publisher = node.create_publisher(UInt8MultiArray, 'image', profile)
    image = array.array('B', bytes(5_000_000))
    while not publisher.get_subscription_count() and time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.02)
    # Until somebody has all that was wanted, and ends both.
    while publisher.get_subscription_count() and time.monotonic() < end:
        image[0] += 1
        publisher.publish(UInt8MultiArray(data=image))
        rclpy.spin_once(node, timeout_sec=0.05)
else:
    numbers = []
    add = lambda message: numbers.append(message.data[0])
    node.create_subscription(UInt8MultiArray, 'image', add, profile)
    while len(numbers) < 20 and time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.1)
    print(*numbers)
node.destroy_node()
rclpy.shutdown()
"""


# The profile for the version of Fast DDS that is installed.
CHOOSE = 'from longreach_node.middleware import use_dds_profile; use_dds_profile({!r})\n'


def begin(program, profile, *words):
    return subprocess.Popen(
        [sys.executable, '-c', CHOOSE.format(profile) + program, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def needs_shared_memory():
    shared = Path('/dev/shm')
    if not shared.is_dir() or shutil.disk_usage(shared).free < 2 * SEGMENT:
        pytest.skip('/dev/shm is too small for the segment')


@pytest.mark.parametrize(
    ('profile', 'low', 'high'), [(USUAL, 1, 8 << 20), (IMAGES, SEGMENT, 2 * SEGMENT)]
)
def test_a_node_takes_the_segment_of_its_profile(profile, low, high):
    needs_shared_memory()
    output, errors = begin(NODE, profile).communicate(timeout=60)
    assert errors == ''
    found = re.findall(r'^(\w+)-(\w+) .*/dev/shm/(?:fastrtps|fastdds)_', output, re.MULTILINE)
    assert low <= max(int(end, 16) - int(begin, 16) for begin, end in found) < high


def test_large_images_pass_where_only_the_camera_has_the_segment():
    needs_shared_memory()
    camera, tracker = begin(IMAGE, IMAGES, 'camera'), begin(IMAGE, USUAL, 'tracker')
    try:
        output, errors = tracker.communicate(timeout=60)
        # It ends when nobody listens; a killed one would leave its segment behind.
        camera.communicate(timeout=60)
    finally:
        camera.kill()
        tracker.kill()
    assert (camera.returncode, errors) == (0, '')
    numbers = [int(word) for word in output.split()]
    assert len(numbers) == 20
    # With the usual segment more than half of them are lost.
    assert numbers[-1] - numbers[0] < 25


def without_transports(path):
    root = ElementTree.parse(path).getroot()
    space = '{http://www.eprosima.com}'
    for parent in list(root.iter()):
        for name in ('transport_descriptors', 'userTransports', 'useBuiltinTransports'):
            for child in parent.findall(space + name):
                parent.remove(child)
    return [(element.tag, (element.text or '').strip()) for element in root.iter()]


def test_the_profiles_differ_in_their_transports_only():
    assert without_transports(CONFIG / USUAL) == without_transports(CONFIG / IMAGES)
