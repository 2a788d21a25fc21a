"""The plant as a node: commands by hand, drawings."""

import math

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from longreach_links.description import robot_description, thickness
from longreach_links.nodes import PlantNode
from longreach_links.visuals import bent_links, lumped_places
from longreach_node import qos
from longreach_node.testing import bench, setting
from longreach_symbolic.arm import designed_arm
from longreach_symbolic.basis import basis_of
from longreach_symbolic.links import chord_ends, functions_at, load_links
from longreach_symbolic.machine import BRAKES, FlexibleLinks
from longreach_symbolic.scenario import load_scenario, resting_scenario

LINKS = load_links()
SWING = """
duration: 0.4
straight: true
trajectory: [{time: 0.0, angles_deg: [40.0, -30.0]}, {time: 0.4, angles_deg: [55.0, -50.0]}]
"""


@pytest.fixture
def scenario(tmp_path):
    """A file of links that swing and move."""
    file = tmp_path / 'swing.yaml'
    file.write_text(SWING)
    return file


def machine(file):
    return FlexibleLinks(LINKS, designed_arm(LINKS), load_scenario(file, LINKS))


def test_torques_by_hand_act_and_after_a_silence_the_brakes_close(scenario):
    free = {'real_time_factor': 0.0, 'start_paused': True, 'command_timeout': 0.02}
    with bench(*setting(scenario=scenario, **free)) as b:
        joints = b.listen(JointState, 'joint_states')
        plant = b.add(PlantNode)
        b.until(lambda: joints, 'first sample')
        hand = b.publisher(JointState, 'joint_command')
        # A motor that is not named gets no torque.
        hand.publish(JointState(name=['motor_2'], effort=[1.5]))
        b.until(lambda: plant.command == (0.0, 1.5), 'command')
        one = machine(scenario)
        state = one.advance(one.initial_state(), (0.0, 1.5), 0.0, 0.005)
        assert b.call(Trigger, 'plant/step').success
        np.testing.assert_array_equal(plant.state.x, state.x)
        for name, effort in ((['elbow'], [1.0]), ([], [1.0]), (['motor_1'], [math.nan])):
            hand.publish(JointState(name=name, effort=effort))
        hand.publish(JointState(effort=[2.0, 1.0]))
        b.until(lambda: plant.command == (2.0, 1.0), 'command')
        assert sum(plant.simulation.incidents.counts.values()) == 3
        plant.simulation.resume()
        b.until(lambda: plant.command == BRAKES, 'brakes')
        b.until(lambda: np.abs(plant.machine.controller.motors(plant.state.x)[1]).max() < 1e-9)


def test_the_bent_links_are_drawn(scenario):
    given = setting(scenario=scenario, real_time_factor=0.0, duration=0.4, trail=0.2)
    with bench(*given) as b:
        shown = b.listen(MarkerArray, 'shape', qos.VISUAL)
        described = b.listen(String, 'robot_description', qos.VISUAL)
        plant = b.add(PlantNode)
        b.until(lambda: plant.done.done() and shown and described, 'end')
        state = plant.state
        plant.publish_drawing(400_000_000)
        count = len(shown)
        b.until(lambda: len(shown) > count, 'drawing')
    markers = {marker.ns: marker for marker in shown[-1].markers}
    assert set(markers) == {
        'link_1', 'link_2', 'lumped_mass_1', 'lumped_mass_2', 'desired', 'trail',
    }  # fmt: skip
    assert all(marker.header.frame_id == 'links_base' for marker in markers.values())
    ends = chord_ends(LINKS, state.x[np.newaxis, :2])[0]
    for i, end in enumerate(ends, 1):
        assert markers[f'link_{i}'].type == Marker.TRIANGLE_LIST
        corners = np.array([(p.x, p.y, p.z) for p in markers[f'link_{i}'].points])
        # Both sides; at the end of each the last corners are above and below the chord's end.
        assert len(corners) == 2 * 12 * 6
        np.testing.assert_allclose(corners[[-2, -1]].mean(axis=0)[[0, 2]], end, atol=1e-12)
        np.testing.assert_allclose(corners[:, 1].mean(), 0.0, atol=1e-12)
        assert np.linalg.norm(corners[-2] - corners[-1]) == pytest.approx(thickness(LINKS))
        centre = markers[f'lumped_mass_{i}'].pose.position
        assert (centre.x, centre.z) == pytest.approx(tuple(end), abs=1e-12)
    assert markers['trail'].type == Marker.LINE_STRIP
    assert len(markers['trail'].points) == 6
    assert markers['trail'].points[-1].z == pytest.approx(ends[-1, 1])
    assert len(markers['desired'].points) > 100
    assert described[0].data == robot_description(LINKS)
    sizes = {name: markers[f'lumped_mass_{name}'].scale.x for name in '12'}
    assert sizes['1'] > sizes['2'] > thickness(LINKS)


def test_the_trail_has_its_length_and_what_was_seen(scenario):
    """Not the straight line from where the end was when nobody looked, nor 0.4 s of drawings."""
    drawing = setting(trail=0.2, visual_rate=400.0)
    with bench(*setting(scenario=scenario, real_time_factor=0.0, duration=0.4), *drawing) as b:
        plant = b.add(PlantNode)
        b.until(plant.done.done, 'end')
        (trail,) = (m for m in plant.drawing(Header()).markers if m.ns == 'trail')
    assert len(trail.points) == 40
    end = chord_ends(LINKS, plant.state.x[np.newaxis, :2])[0, -1]
    assert {(p.x, p.z) for p in trail.points} == {tuple(end)}


@pytest.mark.parametrize('basis', ['sine', 'cubic'])
def test_functions_that_are_drawn_are_those_of_the_equations(basis):
    xi = np.linspace(-1.0, 0.0, 7)
    known = basis_of(basis, 4)
    for k, values in enumerate(functions_at(basis, 4, xi)):
        expected = [float(known.functions[k].subs(known.place, float(x))) for x in xi]
        np.testing.assert_allclose(values, expected, atol=1e-14)


def test_a_link_is_drawn_bent_to_its_left():
    links = LINKS.replace(
        links=[link.replace(lumped_place=-0.5, lumped_mass=1.0) for link in LINKS.links]
    )
    # The first one upright; its middle is 5 mm to the left, at smaller x.
    q = np.array([math.pi / 2.0, -math.pi / 2.0, -0.005, 0.0, 0.0, 0.0])
    (first, second) = bent_links(links, q, 3)
    np.testing.assert_allclose(first[1], (-0.005, 0.0, 0.2375), atol=1e-12)
    np.testing.assert_allclose(first[[0, 2]], [(0.0, 0.0, 0.0), (0.0, 0.0, 0.475)], atol=1e-12)
    np.testing.assert_allclose(second[1], (0.2175, 0.0, 0.475), atol=1e-12)
    np.testing.assert_allclose(lumped_places(links, q), [first[1], second[1]], atol=1e-12)


def test_without_a_scenario_links_rest():
    one = FlexibleLinks(LINKS, designed_arm(LINKS), resting_scenario(LINKS))
    with bench(*setting(real_time_factor=0.0, duration=0.2)) as b:
        plant = b.add(PlantNode)
        b.until(plant.done.done, 'end')
    np.testing.assert_allclose(plant.state.x, one.initial_state().x, atol=1e-9)
