"""The robot description: a second forward kinematics closes the linkage's loops in its frames."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from longreach_excavator.description import ROOT_FRAME, TOOTH_FRAME, robot_description
from longreach_excavator.kinematics import JOINTS, moving_joints
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.motion import RATE, SIZE
from longreach_machine.description import parse_description

NO_FORCES = {f'force_{name}': 0.0 for name in CYLINDERS}


def at(frame, place):
    """Return a place of a link's plane in the root frame, (3,)."""
    here = complex(place)
    return np.asarray((frame @ [here.real, 0.0, here.imag, 1.0])[:3])


@pytest.fixture(scope='module', params=range(6))
def some_excavator(request, standard, resized, random_excavator):
    """The installed excavator, a small and a large one of its shape, and others."""
    if request.param < 3:
        fine = standard.with_value('soil.terrain.cell', 0.04)
        return resized(fine, (1.0, 0.3, 2.5)[request.param])
    other = random_excavator(np.random.default_rng(request.param))
    counted = zip(other.cylinders, (3, 1, 2), strict=True)
    return other.replace(cylinders=tuple(c.replace(count=count) for c, count in counted))


def tree(excavator):
    return ElementTree.fromstring(robot_description(excavator))


def numbers(element, path, name, default=''):
    found = element.find(path)
    text = default if found is None else found.attrib.get(name, default)
    return np.array([float(word) for word in text.split()])


def some_states(excavator, count, seed):
    """Return moving states in poses within the strokes, their ends among them."""
    random = np.random.default_rng(seed)
    low, high = excavator.joint_limits().T
    y = np.zeros((count, SIZE))
    shares = np.vstack([np.zeros(3), np.ones(3), random.uniform(size=(count - 2, 3))])
    y[:, :RATE] = low + shares * (high - low)
    y[:, RATE : 2 * RATE] = random.normal(size=(count, 3))
    return y


def placed(excavator, robot, y):
    """Return the frames (4, 4) of all links."""
    sample = moving_joints(excavator, y, NO_FORCES)
    return robot.place(dict(zip(sample.names, sample.positions, strict=True)))


def test_links_are_where_their_angles_put_them(some_excavator):
    robot = parse_description(robot_description(some_excavator))
    for y in some_states(some_excavator, 5, 1):
        found = placed(some_excavator, robot, y)
        joint, angle = 0j, 0.0
        links = (some_excavator.boom, some_excavator.arm, some_excavator.bucket)
        for name, link, theta in zip(CYLINDERS, links, y[:RATE], strict=True):
            angle += theta
            way = complex(math.cos(angle), math.sin(angle))
            rotation, origin = found[name][:3, :3], found[name][:3, 3]
            np.testing.assert_allclose(origin, [joint.real, 0.0, joint.imag], atol=1e-9)
            np.testing.assert_allclose(rotation[:, 0], [way.real, 0.0, way.imag], atol=1e-9)
            np.testing.assert_allclose(rotation[:, 1], [0.0, 1.0, 0.0], atol=1e-12)
            joint += link.length * way
        tooth = at(found[TOOTH_FRAME], 0.0)
        np.testing.assert_allclose(tooth, [joint.real, 0.0, joint.imag], atol=1e-9)


def test_loops_close(some_excavator):
    robot, pins = parse_description(robot_description(some_excavator)), some_excavator.pins()
    for y in some_states(some_excavator, 40, 2):
        found = placed(some_excavator, robot, y)
        K = at(found['lever'], pins.lk)
        meet = {
            'boom_cylinder_barrel': at(found[ROOT_FRAME], pins.e),
            'boom_cylinder_rod': at(found['boom'], pins.b),
            'arm_cylinder_barrel': at(found['boom'], pins.i),
            'arm_cylinder_rod': at(found['arm'], pins.f),
            'bucket_cylinder_barrel': at(found['arm'], pins.j),
            'bucket_cylinder_rod': K,
            'lever': at(found['arm'], pins.l),
            'rod': K,
        }
        for name, place in meet.items():
            np.testing.assert_allclose(at(found[name], 0.0), place, rtol=0.0, atol=1e-9)
        end, pin = at(found['rod'], pins.pk), at(found['bucket'], pins.p)
        np.testing.assert_allclose(end, pin, rtol=0.0, atol=1e-9)


def test_joints_are_those_of_joint_states(some_excavator):
    joints = {j.attrib['name']: j for j in tree(some_excavator).findall('joint')}
    moving = {name for name, joint in joints.items() if joint.attrib['type'] != 'fixed'}
    assert moving == set(JOINTS)
    ends = some_excavator.joint_limits()
    for k, cylinder in enumerate(some_excavator.cylinders):
        joint, piston = (joints[f'{cylinder.name}_{part}'] for part in ('joint', 'cylinder'))
        assert numbers(joint, 'axis', 'xyz').tolist() == [0.0, -1.0, 0.0]
        for moved, span in ((joint, ends[k].tolist()), (piston, [0.0, cylinder.stroke])):
            limits = [numbers(moved, 'limit', name)[0] for name in ('lower', 'upper')]
            assert limits == pytest.approx(span, abs=1e-10)
        force = some_excavator.oil.supply_pressure * cylinder.head_area
        assert numbers(piston, 'limit', 'effort')[0] == pytest.approx(force, rel=1e-9)


def test_positions_are_within_limits_and_turn_without_a_jump(some_excavator):
    joints = {j.attrib['name']: j for j in tree(some_excavator).findall('joint')}
    lower, upper = (
        np.array([numbers(joints[name], 'limit', end)[0] for name in JOINTS])
        for end in ('lower', 'upper')
    )
    states = some_states(some_excavator, 2, 3)
    between = np.linspace(states[0], states[1], 400)
    positions = np.array([moving_joints(some_excavator, y, NO_FORCES).positions for y in between])
    assert np.all(positions >= lower - 1e-9)
    assert np.all(positions <= upper + 1e-9)
    # As long as a step of the joints is small, so is that of all that they turn.
    assert np.abs(np.diff(positions, axis=0)).max() < 0.3
    # Limits of angles are not a turn away, nor so wide that they say nothing.
    assert np.all(np.abs(lower + upper) <= 2.0 * math.pi)
    assert np.all((upper - lower)[2 * RATE :] < math.pi)


def test_velocities_are_the_rates_of_positions(some_excavator):
    step = 1e-6
    for y in some_states(some_excavator, 20, 4)[2:]:
        sides = []
        for way in (-1.0, 1.0):
            moved = y.copy()
            moved[:RATE] += way * step * y[RATE : 2 * RATE]
            sides.append(np.array(moving_joints(some_excavator, moved, NO_FORCES).positions))
        rates = (sides[1] - sides[0]) / (2.0 * step)
        sample = moving_joints(some_excavator, y, NO_FORCES)
        np.testing.assert_allclose(sample.velocities, rates, rtol=1e-6, atol=1e-7)


def test_cylinders_and_joints_do_the_same_work(some_excavator):
    forces = {'force_boom': 3e5, 'force_arm': -2e5, 'force_bucket': 1e5}
    for y in some_states(some_excavator, 10, 5):
        sample = moving_joints(some_excavator, y, forces)
        power = np.array(sample.efforts) * sample.velocities
        assert sample.names == JOINTS
        assert sample.efforts[RATE : 2 * RATE] == tuple(forces.values())
        np.testing.assert_allclose(power[:RATE], power[RATE : 2 * RATE], rtol=1e-12)
        # What else turns is not driven.
        assert not power[2 * RATE :].any()


def test_rods_are_never_seen_to_leave_their_barrels(some_excavator):
    root = tree(some_excavator)
    for cylinder in some_excavator.cylinders:
        spans = {}
        for part in ('barrel', 'rod'):
            link = root.find(f"link[@name='{cylinder.name}_cylinder_{part}']")
            visuals = link.findall('visual')
            tubes = [one for one in visuals if numbers(one, 'origin', 'rpy')[1] != 0.0]
            sides = [numbers(tube, 'origin', 'xyz')[1] for tube in tubes]
            # Side by side, and the same way on both sides of the middle.
            assert len(set(sides)) == len(tubes) == cylinder.count
            assert sum(sides) == pytest.approx(0.0, abs=1e-12)
            length = numbers(tubes[0], 'geometry/cylinder', 'length')[0]
            centre = numbers(tubes[0], 'origin', 'xyz')[0]
            spans[part] = centre - length / 2.0, centre + length / 2.0
        assert spans['barrel'][0] == pytest.approx(0.0, abs=1e-9)
        assert cylinder.retracted > spans['barrel'][1]
        assert cylinder.retracted + spans['rod'][0] >= -1e-9
        if cylinder.stroke < 0.9 * cylinder.retracted:
            assert cylinder.extended + spans['rod'][0] < spans['barrel'][1]
