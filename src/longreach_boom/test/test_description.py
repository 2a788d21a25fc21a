"""The robot description: a second forward kinematics finds the bent boom in its frames."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from longreach_boom.description import half_height, robot_description
from longreach_boom.kinematics import point_motion, swing_angles, swing_joints, swing_ratios
from longreach_boom.machine import Boom
from longreach_boom.model import boom_bases, constants_of
from longreach_boom.parameters import Distribution
from longreach_boom.scenario import Scenario
from longreach_boom.state import BoomState
from longreach_machine.description import parse_description


def tree(boom):
    return ElementTree.fromstring(robot_description(boom))


def numbers(element, path, name):
    return np.array([float(word) for word in element.find(path).attrib[name].split()])


def frames(boom, positions):
    """Return rotation and origin of each link in the root frame, from the URDF alone."""
    placed = parse_description(robot_description(boom)).place(positions)
    return {name: (frame[:3, :3], frame[:3, 3]) for name, frame in placed.items()}


def middle(boom):
    return boom.joint_limits().mean(axis=1)


def bent(boom, random):
    """Return coordinates of a bent boom and the positions of its joints."""
    N, F = boom.size, boom.ritz.functions
    machine = Boom(boom, Scenario(duration=1.0, pose_deg=tuple(np.degrees(middle(boom)))))
    low, high = boom.joint_limits().T
    angles = low + random.uniform(0.05, 0.95, N) * (high - low)
    lengths = np.array([beam.length for beam in boom.beams])
    h = random.normal(size=(F, N)) * 0.02 * lengths
    q = np.concatenate([angles, h.ravel()])
    y = np.concatenate([q, random.normal(size=q.size), np.full(2 * N, 1e7), np.zeros(N)])
    state = BoomState(y, np.zeros(N, dtype=np.int64))
    sample = machine.joint_sample(state, (0.0,) * N)
    positions = dict(zip(sample.names, sample.positions, strict=True))
    swings = swing_angles(boom, angles).tolist()
    return q, positions | dict(zip(swing_joints(boom), swings, strict=True))


@pytest.fixture(params=range(8))
def some_boom(request, boom, random_boom):
    """The installed boom, and others of 1 to 5 beams with cylinders of both kinds."""
    if request.param == 0:
        return boom
    random = np.random.default_rng(request.param)
    return random_boom(random, 1 + request.param % 5, functions=1 + request.param % 3)


def test_frames_are_where_the_bent_boom_is(some_boom):
    random = np.random.default_rng(5)
    for _ in range(3):
        q, positions = bent(some_boom, random)
        found = frames(some_boom, positions)
        # The end hose hangs down.
        np.testing.assert_allclose(found['end_hose'][0], np.eye(3), rtol=0.0, atol=1e-9)
        for index, beam in enumerate(some_boom.beams):
            root = point_motion(some_boom, q, 0.0 * q, index, 0.0)
            tip = point_motion(some_boom, q, 0.0 * q, index, beam.length)
            h = q[some_boom.size + index :: some_boom.size]
            slope = float(h @ boom_bases(some_boom)[index].at(0.0, 1))
            # A pinned beam starts with a slope of its own: its frame is the line of its supports.
            assert (slope == 0.0) == (beam.support == 0.0)
            expected = {
                beam.name: (root.position, root.inclination - slope),
                f'{beam.name}_end': (tip.position, root.inclination - slope),
                f'{beam.name}_tip': (tip.position, tip.inclination),
            }
            for name, ((x, z), angle) in expected.items():
                rotation, origin = found[name]
                np.testing.assert_allclose(origin, [x, 0.0, z], rtol=0.0, atol=1e-9)
                direction = [math.cos(angle), 0.0, math.sin(angle)]
                np.testing.assert_allclose(rotation[:, 0], direction, rtol=0.0, atol=1e-9)
                np.testing.assert_allclose(rotation[:, 1], [0.0, 1.0, 0.0], rtol=0.0, atol=1e-12)


def test_swinging_cylinders_end_at_their_beams(some_boom):
    random = np.random.default_rng(6)
    for _ in range(3):
        q, positions = bent(some_boom, random)
        found = frames(some_boom, positions)
        for index, cylinder in enumerate(some_boom.cylinders):
            if cylinder.linkage.kind != 'triangle':
                continue
            rotation, origin = found[some_boom.beams[index].name]
            eye = origin + rotation @ [cylinder.linkage.far, 0.0, 0.0]
            np.testing.assert_allclose(found[f'{cylinder.name}_rod'][1], eye, atol=1e-9)
            pin = found[f'{cylinder.name}_barrel'][1]
            length = cylinder.linkage.retracted + cylinder.linkage.position(q[index])
            assert np.linalg.norm(eye - pin) == pytest.approx(length, rel=1e-12)


def test_swing_ratios_are_derivatives(some_boom):
    angles, step = middle(some_boom), 1e-6
    after, before = (swing_angles(some_boom, angles + d) for d in (step, -step))
    slopes = (after - before) / (2.0 * step)
    np.testing.assert_allclose(swing_ratios(some_boom, angles), slopes, rtol=1e-6, atol=1e-9)


def test_joints_are_those_of_joint_states(some_boom):
    _, positions = bent(some_boom, np.random.default_rng(7))
    joints = {j.attrib['name']: j for j in tree(some_boom).findall('joint')}
    moving = {name for name, joint in joints.items() if joint.attrib['type'] != 'fixed'}
    assert moving == positions.keys()
    for beam, cylinder in zip(some_boom.beams, some_boom.cylinders, strict=True):
        joint = joints[f'{beam.name}_joint']
        assert numbers(joint, 'axis', 'xyz').tolist() == [0.0, -1.0, 0.0]
        limits = [numbers(joint, 'limit', name)[0] for name in ('lower', 'upper')]
        assert limits == pytest.approx(cylinder.linkage.angles(cylinder.stroke), rel=1e-11)
        stroke = numbers(joints[cylinder.name], 'limit', 'upper')
        assert stroke == pytest.approx(cylinder.stroke, rel=1e-11)
    assert joints['end_hose_joint'].attrib['type'] == 'continuous'
    for name in moving - {'end_hose_joint'}:
        low, high = (numbers(joints[name], 'limit', end)[0] for end in ('lower', 'upper'))
        assert low <= positions[name] <= high
        assert all(numbers(joints[name], 'limit', end)[0] >= 0.0 for end in ('effort', 'velocity'))


def test_masses_are_those_of_the_beams(some_boom):
    root, constants = tree(some_boom), constants_of(some_boom)
    carrying = [link for link in root.findall('link') if link.find('inertial') is not None]
    assert [link.attrib['name'] for link in carrying] == [beam.name for beam in some_boom.beams]
    for i, link in enumerate(carrying):
        mass = numbers(link, 'inertial/mass', 'value')[0]
        centre = numbers(link, 'inertial/origin', 'xyz')[0]
        along, across, third = (
            numbers(link, 'inertial/inertia', name)[0] for name in ('ixx', 'iyy', 'izz')
        )
        assert mass == pytest.approx(constants.mass[i], rel=1e-11)
        assert mass * centre == pytest.approx(constants.moment[i], rel=1e-11)
        assert across + mass * centre**2 == pytest.approx(constants.inertia[i], rel=1e-10)
        assert across == third
        assert 0.0 < along <= 2.0 * across


def test_half_height_is_the_gain_of_the_gauge_and_goes_with_the_section(boom):
    for beam in boom.beams:
        gauge = beam.strain_gauge
        assert half_height(beam, gauge.position) == pytest.approx(gauge.gain, rel=1e-12)
    # A quarter of the height has a sixty-fourth of I, for sections whose height alone changes.
    tapered = boom.beams[1].replace(second_moment=Distribution(root=6.4e-4, tip=1e-5, exponent=3))
    heights = half_height(tapered, np.array([0.0, tapered.length]))
    assert heights[1] == pytest.approx(heights[0] / 4.0, rel=1e-12)
