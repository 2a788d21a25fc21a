"""The robot description: its rigid links have the mass matrix and weight of the equations."""

import numpy as np
import pytest

from longreach_links.description import robot_description
from longreach_symbolic.generated import evaluator
from longreach_symbolic.links import load_links

pinocchio = pytest.importorskip('pinocchio')


@pytest.mark.parametrize('place', [0.0, -0.3])
def test_straight_links_are_those_of_pinocchio(place):
    links = load_links()
    links = links.replace(links=[link.replace(lumped_place=place) for link in links.links])
    model = pinocchio.buildModelFromXML(robot_description(links))
    model.gravity.linear = np.array([0.0, 0.0, -links.gravity])
    data, random = model.createData(), np.random.default_rng(3)
    evaluate = evaluator(links)
    assert list(model.names)[1:] == ['joint_1', 'joint_2']
    for theta in random.uniform(-3.0, 3.0, (5, 2)):
        q = np.concatenate((theta, np.zeros(4)))
        found = evaluate(q, np.zeros(6))
        circles = np.ravel(np.stack((np.cos(theta), np.sin(theta)), axis=1))
        mass = np.triu(pinocchio.crba(model, data, circles))
        np.testing.assert_allclose(mass, np.triu(found.mass_matrix[:2, :2]), rtol=1e-9)
        weight = pinocchio.computeGeneralizedGravity(model, data, circles)
        np.testing.assert_allclose(weight, found.gravity_and_stiffness[:2], rtol=1e-9)
        frame = model.getFrameId('tip')
        pinocchio.framesForwardKinematics(model, data, circles)
        x, y, z = data.oMf[frame].translation
        assert (x, z) == pytest.approx(
            tuple(
                sum(
                    link.length * turn(angle)
                    for link, angle in zip(links.links, np.cumsum(theta), strict=True)
                )
                for turn in (np.cos, np.sin)
            )
        )
        assert y == pytest.approx(0.0, abs=1e-12)
