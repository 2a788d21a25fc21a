"""Moving pictures of recordings: the machine in its pose, traces, what is refused."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import Point
from longreach_msgs.msg import CraneCommand, Terrain
from PIL import Image
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA, String
from visualization_msgs.msg import Marker, MarkerArray

from longreach_tools.plot._movie import _extent, _holding, _pauses
from longreach_tools.plot._picture import Picture, Strip, spans
from longreach_tools.plot._scene import read_scene
from longreach_tools.testing import Outcome, write_bag

NANOSECONDS = 1_000_000_000
DESCRIPTION = """<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base"/>
  <link name="slide"><visual>
    <origin xyz="0 0 0.5"/><geometry><box size="0.2 0.2 1"/></geometry><material name="red"/>
  </visual></link>
  <link name="arm"><visual>
    <origin xyz="1 0 0" rpy="0 1.5707963267948966 0"/>
    <geometry><cylinder radius="0.1" length="2"/></geometry>
  </visual></link>
  <link name="ball"><visual><geometry><sphere radius="0.3"/></geometry></visual></link>
  <joint name="slide" type="prismatic"><parent link="base"/><child link="slide"/>
    <axis xyz="2 0 0"/><limit lower="0" upper="1" effort="1" velocity="1"/></joint>
  <joint name="turn" type="continuous"><parent link="slide"/><child link="arm"/>
    <origin xyz="0 0 1"/><axis xyz="0 -1 0"/></joint>
  <joint name="follow" type="continuous"><parent link="arm"/><child link="ball"/>
    <origin xyz="2 0 0"/><axis xyz="0 -1 0"/>
    <mimic joint="turn" multiplier="-1" offset="0.5"/></joint>
</robot>"""


def stamped(message, time, frame=''):
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(time, NANOSECONDS)
    message.header.frame_id = frame
    return message


def rows(start=0):
    """Return messages of the arm: in 2 s it slides by 1 m and turns by a quarter."""
    found = []
    for k in range(21):
        time = start + k * NANOSECONDS // 10
        share = k / 20
        state = JointState(name=['slide', 'turn'], position=[share, share * math.pi / 2.0])
        state.velocity, state.effort = [0.5, 1.0], [0.0, 0.0]
        found.append(('joint_states', time, stamped(state, time)))
        command = CraneCommand(force=1.0, brake=k > 10)
        found.append(('command', time, stamped(command, time)))
    return found


def described(path, found, text=DESCRIPTION):
    """Write a bag of messages of the arm, from its description on."""
    return write_bag(path, 'arm', [('robot_description', found[0][1], String(data=text)), *found])


@pytest.fixture
def arm(tmp_path):
    return described(tmp_path / 'run', rows())


def test_scene_is_drawn_in_the_pose_of_the_time(arm):
    scene = read_scene(arm, '')
    assert scene.source == f'/arm/robot_description of {arm}'
    units = {name: joint.units for name, joint in scene.robot.joints.items()}
    assert units['slide'] == ('m', 'm/s', 'N')
    assert units['turn'] == ('rad', 'rad/s', 'N m')
    # Half way between two samples, at 45 degrees and 0.5 m.
    parts = {tuple(color): corners for corners, color, _ in scene.outlines(1.0)}
    box = parts[1.0, 0.0, 0.0, 1.0]
    assert [*box.min(axis=0), *box.max(axis=0)] == pytest.approx([0.4, 0.0, 0.6, 1.0])
    grey = [corners for corners, color, _ in scene.outlines(1.0) if color[0] == 0.6]
    far = max(corners[:, 0].max() for corners in grey)
    assert far == pytest.approx(0.5 + 2.0 / math.sqrt(2.0) + 0.3, abs=0.01)


def triangle(x, y):
    return [Point(x=x, y=y, z=0.0), Point(x=x + 1.0, y=y, z=0.0), Point(x=x, y=y, z=1.0)]


def test_bent_beams_and_ground_replace_and_join_the_machine(tmp_path):
    found = rows()
    for k in (0, 1):
        marker = stamped(Marker(ns='arm', type=Marker.TRIANGLE_LIST), k * NANOSECONDS, 'x/base')
        # Both sides of a beam; the near one is drawn.
        marker.points = triangle(5.0 + k, -0.1) + triangle(50.0, 0.1)
        marker.colors = [ColorRGBA(g=1.0, a=1.0)] * 6
        found.append(('shape', k * NANOSECONDS, MarkerArray(markers=[marker])))
    soil = Terrain(start=2.0, cell=0.5, firm=[0.0, -1.0, 0.0], loose=[0.0, 0.25, 0.0])
    found.append(('terrain', 0, stamped(soil, 0, 'base')))
    scene = read_scene(described(tmp_path / 'run', found), 'joint_states')
    assert [part.link for part in scene.bent[0][1]] == ['arm']
    # As a plant publishes its description: names have a prefix.
    text = DESCRIPTION.replace('name="arm"><vis', 'name="x/arm"><vis')
    text = text.replace('link="arm"', 'link="x/arm"')
    again = described(tmp_path / 'again', found, text)
    assert [part.link for part in read_scene(again, 'joint_states').bent[0][1]] == ['x/arm']
    before, after = (
        [corners for corners, color, _ in scene.outlines(time) if color == (0.0, 1.0, 0.0, 1.0)]
        for time in (0.5, 1.5)
    )
    assert before[0].tolist() == [[5.0, 0.0], [6.0, 0.0], [5.0, 1.0]]
    assert [corners.tolist() for corners in after] == [[[6.0, 0.0], [7.0, 0.0], [6.0, 1.0]]]
    loose, firm = scene.ground[0][1]
    assert loose[0][:3].tolist() == [[2.0, 0.0], [2.5, -0.75], [3.0, 0.0]]
    assert firm[0][3:].tolist() == [[3.0, -1.5], [2.5, -1.5], [2.0, -1.5]]


def test_markers_have_poses_and_frames_and_hide_only_what_they_replace(tmp_path):
    def marker(name, frame, time=0, **fields):
        found = stamped(Marker(ns=name, type=Marker.TRIANGLE_LIST, **fields), time, frame)
        found.points = triangle(0.0, -0.1)
        found.color.b = 1.0
        return found

    moved, unknown, arrow = marker('other', 'arm'), marker('slide', 'x'), Marker(ns='ball', id=1)
    moved.pose.position.x = 3.0
    # A quarter turn to the left, seen along y.
    moved.pose.orientation.y, moved.pose.orientation.w = -math.sqrt(0.5), math.sqrt(0.5)
    gone = marker('other', 'arm', NANOSECONDS, action=Marker.DELETE)
    shapes = [MarkerArray(markers=[marker('arm', 'base'), moved, unknown, arrow])]
    shapes.append(MarkerArray(markers=[gone]))
    found = [('shape', k, message) for k, message in enumerate(shapes)]
    scene = read_scene(described(tmp_path / 'run', rows() + found), '')
    assert [{part.link for part in parts} for _, parts in scene.bent] == [{'arm', None}, {'arm'}]
    blue = [c for c, color, _ in scene.outlines(0.0) if color == (0.0, 0.0, 1.0, 1.0)]
    assert blue[0].tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert blue[1] == pytest.approx(np.array([[3.0, 1.0], [3.0, 2.0], [2.0, 1.0]]))
    # The slide, the ball and one triangle.
    assert len(scene.outlines(1.0)) == 3


def test_joints_are_interpolated_and_other_entries_ignored(tmp_path):
    found = []
    for k in range(6):
        state = JointState(name=['slide', 'strain'], position=[0.1 * k, 7.0])
        if k % 2:
            state = JointState(name=['turn'], position=[math.nan if k == 3 else 0.1 * k])
        found.append(('joint_states', k, stamped(state, k * NANOSECONDS)))
        found.append(('joint_command', k, stamped(state, k * NANOSECONDS)))
    scene = read_scene(described(tmp_path / 'run', found), '')
    assert (scene.topic, scene.ignored) == ('/arm/joint_states', ['strain'])
    assert scene.positions['slide'] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.4])
    assert scene.positions['turn'] == pytest.approx([0.1, 0.1, 0.2, 0.3, 0.4, 0.5])


def test_a_state_is_shown_from_its_first_sample_to_its_last():
    time = np.arange(5.0)
    strip = Strip('brake', spans(time, np.array([0, 1, 0, 1, 1]) > 0), written=True)
    picture = Picture('', '', (), [strip], (), ('run',))
    shown = [bool(_holding(picture, at, alarm=False)) for at in (0.0, 1.0, 1.9, 2.0, 3.0, 4.0)]
    assert shown == [False, True, True, False, True, True]


@pytest.mark.parametrize(('rate', 'pauses'), [(8.0, [120, 130]), (30.0, [30, 40]), (50.0, [20])])
def test_pictures_of_a_gif_keep_the_rate(rate, pauses):
    found = _pauses(101, rate, 10)
    assert sorted(set(found)) == pauses
    assert sum(found) == pytest.approx(101e3 / rate, abs=5.0)


def test_all_pictures_are_within_the_axes():
    def outlines(time):
        return [(np.array([[0.0, 0.0], [1.0, 5.0 if time == 71 else 1.0]]), (), False)]

    scene = SimpleNamespace(outlines=outlines)
    assert _extent(scene, range(100)) == pytest.approx((-0.2, 1.2, -0.2, 5.2))


def test_gif_moves_and_traces_grow(arm, tmp_path, capsys):
    out = tmp_path / 'a.gif'
    words = ('command.force', 'joint_states.position[turn]', '--size', '320x200', '--rate', '5')
    done = Outcome(capsys, 'animate', arm, *words, '--out', out)
    assert done.code == 0, done.err
    assert '11 pictures, 2.2 s' in done.out
    with Image.open(out) as image:
        assert (image.n_frames, image.size, image.info['duration']) == (11, (320, 200), 200)
        pictures = []
        for k in range(image.n_frames):
            image.seek(k)
            pictures.append(np.asarray(image.convert('RGB'), dtype=int))
    # The machine is left, the traces are right: ink of a trace only grows, the machine moves.
    ink = [int((one[:, 190:].sum(axis=2) < 700).sum()) for one in pictures]
    assert ink == sorted(ink)
    assert ink[-1] > ink[0] + 50
    for one, other in itertools.pairwise(pictures):
        assert (np.abs(one[30:, :160] - other[30:, :160]).sum(axis=2) > 100).any()


@pytest.mark.parametrize('ending', ['mp4', 'webm'])
def test_video_has_the_pictures(arm, tmp_path, capsys, ending):
    cv2 = pytest.importorskip('cv2', reason='videos are written by OpenCV')
    out = tmp_path / f'a.{ending}'
    words = ('--size', '320x200', '--to', '0.4', '--no-traces')
    done = Outcome(capsys, 'animate', arm, '--out', out, *words)
    assert done.code == 0, done.err
    # Which browsers play.
    assert b'vp09' in out.read_bytes() or b'V_VP9' in out.read_bytes()
    video = cv2.VideoCapture(str(out))
    read = [picture for ok, picture in iter(video.read, (False, None)) if ok]
    assert [one.shape for one in read] == [(200, 320, 3)] * 11
    # The box is red: channels in the right order.
    red = (read[0][:, :, 2] > 190) & (read[0][:, :, :2].max(axis=2) < 90)
    assert red.sum() > 50


def test_webp_of_twice_the_size_and_resolution_has_text_of_twice_the_size(arm, tmp_path, capsys):
    heights = []
    for scale, dpi in ((1, 100), (2, 200), (2, 100)):
        out = tmp_path / f'{scale}_{dpi}.webp'
        words = ('--size', f'{320 * scale}x{200 * scale}', '--dpi', dpi, '--to', '0.4')
        done = Outcome(capsys, 'animate', arm, '--out', out, *words)
        assert done.code == 0, done.err
        with Image.open(out) as image:
            assert (image.n_frames, image.size) == (5, (320 * scale, 200 * scale))
            clock = np.asarray(image.convert('L'))[: 20 * scale, : 60 * scale]
        heights.append(np.ptp(np.flatnonzero((clock < 128).any(axis=1))) + 1)
    assert heights[1] == pytest.approx(2 * heights[0], abs=2)
    assert heights[2] == pytest.approx(heights[0], abs=1)


def test_speed_and_window_select_the_pictures_from_the_first_sample_on(tmp_path, capsys):
    bag = described(tmp_path / 'run', rows(start=1_700_000_000 * NANOSECONDS))
    words = ('--size', '200x120', '--from', '0.5', '--to', '1.5', '--speed', '2')
    done = Outcome(capsys, 'animate', bag, '--out', tmp_path / 'a.gif', *words)
    assert '6 pictures, 0.6 s' in done.out
    assert not done.err


def test_motion_where_states_are_missing_is_said_to_be_interpolated(tmp_path, capsys):
    found = [row for row in rows() if not 0.4e9 < row[1] < 1.2e9]
    bag = described(tmp_path / 'run', found)
    words = ('--out', tmp_path / 'a.gif', '--size', '200x120', '--rate', '2', '--no-traces')
    said = '/arm/joint_states: no states from 0.40 to 1.20 s; motion there is interpolated'
    assert said in Outcome(capsys, 'animate', bag, *words).err
    assert not Outcome(capsys, 'animate', bag, *words, '--from', '1.3').err


REFUSED = {
    'rate': (['--out', 'a.gif', '--rate', '60'], '--rate 60, allowed for .gif: up to 50'),
    'file': (['--out', 'a.gif', '--file', 'b.yaml'], '--file, allowed with the traces of'),
    'suffix': (['--out', 'a.avi'], "a.avi has the extension 'avi', allowed: gif, webp, mp4, webm"),
    'size': (['--out', 'a.gif', '--size', '301x200'], 'even numbers from 100 to 4000'),
    'frames': (['--out', 'a.gif', '--speed', '0.0001'], 'pictures, allowed: 5000'),
    'order': (['--out', 'a.gif', '--from', '2', '--to', '1'], 'allowed: from < to'),
    'dpi': (['--out', 'a.gif', '--dpi', '1e9'], '--dpi: 1e9, allowed: 20 to 1000'),
    'window': (['--out', 'a.gif', '--from', '7'], 'are at 0 to 2 s'),
    'topic': (['--out', 'a.gif', '--joints', 'command'], 'has no states of joints'),
    'urdf': (['--out', 'a.gif', '--urdf', 'b.urdf'], 'b.urdf'),
    'both': (['command.force', '--no-traces', '--out', 'a.gif'], 'signals and --no-traces'),
    'field': (['command.forc', '--out', 'a.gif'], 'similar: force'),
}


@pytest.mark.parametrize('name', REFUSED)
def test_bad_input_is_one_line_and_leaves_nothing(name, arm, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, text = REFUSED[name]
    Outcome(capsys, 'animate', arm, *words).refused(text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['run']


def test_a_machine_without_description_is_refused(tmp_path, capsys):
    bag = write_bag(tmp_path / 'run', 'arm', rows())
    out = tmp_path / 'a.gif'
    done = Outcome(capsys, 'animate', bag, '--out', out)
    done.refused('no description of the machine with the joints slide, turn; give its URDF')
    (tmp_path / 'arm.urdf').write_text(DESCRIPTION)
    words = ('--urdf', tmp_path / 'arm.urdf', '--size', '200x120', '--to', '0.3')
    assert Outcome(capsys, 'animate', bag, '--out', out, *words).code == 0
