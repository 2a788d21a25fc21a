"""The robot description: dynamics by Pinocchio, joints that close the loops of the cylinders."""

from xml.etree import ElementTree

import numpy as np
import pytest
from harvesters import STANDARD, changed, hanging, scenario

from longreach_harvester.bodies import HEAD, HEAD_RATE, accelerations, hanging_terms
from longreach_harvester.description import drawn_cylinders, robot_description
from longreach_harvester.machine import Harvester
from longreach_harvester.model import WIDTH
from longreach_harvester.parameters import HEAD_JOINTS, JOINTS

pinocchio = pytest.importorskip('pinocchio')


def rigid(parameters):
    """Return Pinocchio's model of the description without the drawn cylinders."""
    root = ElementTree.fromstring(robot_description(parameters).encode())
    for element in list(root):
        if any(word in element.get('name', '') for word in ('_barrel', '_rod', '_cylinder')):
            root.remove(element)
    model = pinocchio.buildModelFromXML(ElementTree.tostring(root, encoding='unicode'))
    model.gravity.linear = np.array([0.0, 0.0, -parameters.gravity])
    return model


@pytest.mark.parametrize('parameters', [STANDARD, changed(), hanging()])
def test_accelerations_are_those_of_pinocchio(parameters):
    model, bodies = rigid(parameters), parameters.bodies()
    data, random = model.createData(), np.random.default_rng(6)
    names = JOINTS + (HEAD_JOINTS if parameters.hangs else ())
    assert list(model.names)[1:] == list(names)
    for _ in range(20):
        q = random.uniform((-3, -1.0, -2.4, -3.0, -1.3), (3, 1.4, 0.3, 3.0, 1.3))
        v, torque = random.uniform(-2, 2, 5), random.uniform(-1e5, 1e5, 5)
        circles = [(np.cos(q[i]), np.sin(q[i])) for i in (0, 3, 4)]
        place = np.r_[circles[0], q[1:3]]
        if not parameters.hangs:
            expected = pinocchio.aba(model, data, place, v[:3], torque[:3])
            found = accelerations(q[:3], v[:3], *torque[:3], bodies)
        else:
            y = np.zeros(WIDTH)
            y[:3], y[HEAD : HEAD + 2], y[3:6] = q[:3], q[3:], v[:3]
            y[HEAD_RATE : HEAD_RATE + 2] = v[3:]
            M, h = np.empty((5, 5)), np.empty(5)
            hanging_terms(y, bodies, M, h)
            expected = pinocchio.aba(model, data, np.r_[place, circles[1], circles[2]], v, torque)
            found = np.linalg.solve(M, torque - h)
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_head_that_hangs_is_in_the_joints():
    machine = Harvester(hanging(), scenario())
    sample = machine.joint_sample(machine.initial_state(), (0.0, 0.0, 0.0))
    angles = dict(zip(sample.names, sample.positions, strict=True))
    down = angles['boom'] + angles['stick'] + angles['head_pitch']
    assert down == pytest.approx(-np.pi / 2)
    assert angles['head_roll'] == 0.0
    model = pinocchio.buildModelFromXML(robot_description(hanging()))
    assert set(list(model.names)[1:]) == set(sample.names)


def test_rods_meet_the_links_and_rates_are_derivatives():
    machine = Harvester(STANDARD, scenario(boom=[[0, 0.3]], stick=[[0, -0.4]]))
    state = machine.advance(machine.initial_state(), (0.1, 0.3, -0.4), 0.0, 0.6)
    model = pinocchio.buildModelFromXML(robot_description(STANDARD))
    data, q = model.createData(), pinocchio.neutral(model)
    sample = machine.joint_sample(state, (0.0, 0.0, 0.0))
    for name, angle in zip(sample.names, sample.positions, strict=True):
        joint = model.joints[model.getJointId(name)]
        place = [np.cos(angle), np.sin(angle)] if joint.nq == 2 else [angle]
        q[joint.idx_q : joint.idx_q + joint.nq] = place
    pinocchio.framesForwardKinematics(model, data, q)
    for name, far, rod_angle in (('boom', 0.45, 0.0), ('stick', 0.4, -0.4)):
        link = data.oMf[model.getFrameId(name, pinocchio.BODY)]
        pin = link.act(far * np.array([np.cos(rod_angle), 0.0, np.sin(rod_angle)]))
        rod = data.oMf[model.getFrameId(f'{name}_rod_link', pinocchio.BODY)].translation
        assert rod == pytest.approx(pin, abs=1e-9)
    step = 1e-6
    ahead = state._replace(y=np.r_[state.y[:3] + step * state.y[3:6], state.y[3:]])
    later = machine.joint_sample(ahead, (0.0, 0.0, 0.0))
    rates = (np.array(later.positions) - sample.positions) / step
    assert np.array(sample.velocities) == pytest.approx(rates, rel=1e-4, abs=1e-7)
    assert np.abs(sample.velocities[3:]).min() > 1e-3


def test_linkages_without_a_triangle():
    rocker = {'kind': 'rocker', 'lever': 0.4, 'shape': 0.0, 'offset': 0.2}
    cylinder = STANDARD.boom_cylinder.replace(linkage=rocker)
    machine = STANDARD.replace(boom_cylinder=cylinder)
    assert drawn_cylinders(machine) == ('stick',)
    assert 'boom_barrel' not in robot_description(machine)
    assert np.isfinite(Harvester(machine, scenario()).initial_state().y).all()
