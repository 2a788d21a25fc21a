"""Where pages look: at all machines, whatever the size of their pictures, unless moved by hand."""

import contextlib
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from longreach_boom.description import robot_description
from longreach_boom.parameters import load_boom
from longreach_crane.description import robot_description as crane_description
from longreach_crane.parameters import load_machinery
from longreach_machine.markers import Marker, Markers
from longreach_view.drawing import CUBE, LINE_LIST, TEXT, TRIANGLE_LIST, Drawing
from longreach_view.scene import _BELOW, _FIELD_OF_VIEW, PANEL_WIDTH, Scene
from longreach_view.server import open_server, stop_server
from longreach_view.world import Estimate, Lens, Machine, Mounting

BOOM, CRANE = robot_description(load_boom(), ''), crane_description(load_machinery().crane, '')


@pytest.fixture
def scene():
    server, clients = open_server('127.0.0.1', 0), {}
    server.get_clients = lambda: clients
    yield Scene(server)
    stop_server(server)


def page(scene, width, height):
    """Return a page that is told where to look, as viser has it before its panel is there."""
    camera = SimpleNamespace(
        image_width=width, image_height=height, position=np.ones(3), look_at=np.zeros(3)
    )
    client = SimpleNamespace(client_id=7, camera=camera, atomic=contextlib.nullcontext)
    scene.look(client)
    scene._server.get_clients()[7] = client
    return client


def bounds(scene, name=''):
    """Return the lowest and highest coordinates of what a page sees of a machine, or of all."""
    corners = scene.corners(name)
    return corners.min(axis=0), corners.max(axis=0)


def corners(client, box):
    """Return where the corners of a box are in the picture, -1 to 1 across and up."""
    camera = client.camera
    forward = camera.look_at - camera.position
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    places = np.array([[box[i][0], box[j][1], box[k][2]] for i, j, k in np.ndindex(2, 2, 2)])
    seen = places - camera.position
    scale = np.tan(0.5 * _FIELD_OF_VIEW) * (seen @ forward)
    aspect = camera.image_width / camera.image_height
    return seen @ right / scale / aspect, seen @ np.cross(right, forward) / scale


def machine(name, text):
    one = Machine(name)
    one.describe(text)
    return one


def test_a_machine_without_samples_any_more_is_hidden(scene):
    crane = machine('crane', CRANE)
    for positions, visible in (({}, True), ({'car_joint': 1.0}, True), ({}, False)):
        crane.positions = positions
        scene.update(crane)
        assert scene._machines['crane', False].frame.visible == visible


def test_what_is_drawn_in_links_is_drawn_anew_with_another_description(scene):
    boom = machine('', BOOM)
    link = sorted(boom.robot.place({}))[3]
    boom.estimate_frame, boom.tracks = link, {'a': [np.zeros(3), np.ones(3)]}
    boom.estimates = {'a': Estimate(np.zeros(3), 1e-4 * np.eye(3), tracked=True)}
    boom.mountings = {'cam': Mounting(link, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))}
    boom.lenses = {'cam': Lens(1.0, 1.3)}
    scene.update(boom)
    nodes = scene._server.scene._handle_from_node_name
    before = set(nodes)
    boom.describe(BOOM.replace('</robot>', '<!-- other --></robot>'))
    for k in range(2):
        boom.estimates['a'] = Estimate(np.full(3, 0.1 * k), 1e-4 * np.eye(3), tracked=True)
        scene.update(boom, 'stale')
    assert set(nodes) == before


def test_a_page_that_gets_its_panel_late_still_sees_a_larger_machine_that_came_before(scene):
    scene.update(machine('crane', CRANE))
    client = page(scene, 1000, 700)
    scene.update(machine('boom', BOOM))
    client.camera.image_width -= PANEL_WIDTH
    across, _ = corners(client, bounds(scene))
    assert np.abs(across).max() > 1.0, 'cut, as it was told before'
    scene.fit_pages()
    across, up = corners(client, bounds(scene))
    assert 0.7 < max(np.abs(across).max(), np.abs(up).max()) < 1.0
    # The panel is beside it, also when the picture is as narrow as that of a small window.
    assert np.abs(up + up[::-1]).max() < 0.2


def bent(one, name, length):
    """Let a machine draw one of its links bent, by one triangle."""
    corners = np.array([[0.0, 0.0, 0.0], [length, 0.0, 0.0], [0.0, 0.0, 1.0]])
    draw(one, TRIANGLE_LIST, name=name, points=corners)


def draw(one, kind, name='', frame='boom_base', place=(0, 0, 0), points=(), text=''):
    """Let a machine draw a marker."""
    marker = Marker(
        0, frame, name, 0, kind, 0, np.array(place, float), np.array([1.0, 0, 0, 0]),
        np.ones(3), np.ones(4), np.reshape(points, (-1, 3)), np.zeros((0, 4)), text,
    )  # fmt: skip
    one.drawings.setdefault('/boom/shape', Drawing()).add(Markers([marker]))


def test_machines_of_similar_names_with_frames_of_one_name_keep_their_own(scene):
    machines = [machine(name, BOOM) for name in ('a/b', 'a_b', '', 'machine', 'ground')]
    for one in machines:
        draw(one, LINE_LIST, points=np.eye(3)[:2])
    for one in [*machines, *machines]:
        scene.update(one)
    nodes = [n for n in scene._server.scene._handle_from_node_name if 'boom_shape' in n]
    frames = [one.frame.name for one in scene._machines.values()]
    assert [sum(node.startswith(f'{frame}/') for node in nodes) for frame in frames] == [1] * 5


def test_machines_stand_side_by_side(scene):
    for name in 'abcde':
        scene.update(machine(name, BOOM if name == 'b' else CRANE))
    boxes = {name: bounds(scene, name) for name in 'abcde'}
    for one, two in itertools.combinations(boxes.values(), 2):
        # A metre and more between them, in x or in y.
        apart = np.maximum(one[0] - two[1], two[0] - one[1])[:2]
        assert apart.max() > 1.0
    assert boxes['b'][0][1] > max(boxes[name][1][1] for name in 'acde'), 'the highest is behind'
    assert np.ptp(bounds(scene), axis=0)[0] < 1.3 * np.ptp(boxes['b'], axis=0)[0]


def test_a_stale_machine_is_said_to_be_so_beside_its_name(scene):
    for note, text in (('', 'boom'), ('stale', 'boom · stale'), ('', 'boom')):
        scene.update(machine('boom', BOOM), note)
        (shown,) = scene._machines.values()
        assert shown.label.text == text


def test_markers_in_known_and_unknown_frames_are_shown_and_the_unknown_are_named(scene):
    boom = machine('boom', BOOM)
    for name, frame, text in (('a', 'boom_base', 'A'), ('b', 'map', 'B'), ('a', 'boom_base', 'C')):
        draw(boom, TEXT, name, frame, text=text)
        scene.update(boom)
    (shown,) = scene._machines.values()
    drawn = [node for figures in shown._drawings.values() for node in figures._nodes.values()]
    assert {node.text for node in drawn} == {'B', 'C'}
    assert scene.unplaced == {'boom': ['map']}


def test_markers_that_are_lost_are_hidden_until_they_are_found(scene):
    camera = Machine('vision', estimate_frame='map')
    estimate = Estimate(np.zeros(3), np.diag([1e-8, 0.0, 4e-8]), tracked=True)
    camera.tracks = {name: [np.zeros(3), np.ones(3)] for name in 'ab'}
    for found in ('ab', 'a', '', 'ab'):
        camera.estimates = dict.fromkeys(found, estimate)
        scene.update(camera)
        (shown,) = scene._machines.values()
        visible = {key[-1] for key, node in shown._markers.items() if node.visible}
        assert visible == set(found)
    # Standard deviations, 10 times enlarged.
    (a, _) = (node for key, node in shown._markers.items() if key.startswith('ellipse'))
    assert sorted(a.scale) == pytest.approx([1e-4, 1e-3, 2e-3])


def test_bent_beams_replace_straight_ones(scene):
    boom = machine('boom', robot_description(load_boom(), 'boom/'))
    scene.update(boom)
    (shown,) = scene._machines.values()

    def straight(link):
        return [node.visible for node in shown._of_link[link]]

    assert all(straight('beam_1'))
    bent(boom, 'beam_1', 1.0)
    scene.update(boom)
    assert not any(straight('beam_1'))
    assert all(straight('beam_2'))
    boom.drawings['/boom/shape'].clear()
    scene.update(boom)
    assert all(straight('beam_1'))


def test_the_second_recording_is_drawn_bent_and_transparent(scene):
    boom = machine('boom', BOOM)
    bent(boom, 'beam_1', 1.0)
    scene.update(boom, ghost=True)
    (shown,) = scene._machines.values()
    ((drawn,),) = [list(figures._nodes.values()) for figures in shown._drawings.values()]
    assert drawn.opacity == pytest.approx(0.25)
    assert len(np.unique(drawn.batched_colors, axis=0)) == 1


@pytest.mark.parametrize(
    'marker',
    [
        {'kind': LINE_LIST, 'points': [(0, 0, 0), (99, 0, 0)]},
        {'kind': CUBE, 'place': (98.5, 0, 0)},
        {'kind': TEXT, 'place': (99, 0, 0), 'text': 'tip'},
    ],
    ids=['line', 'box', 'text'],
)
def test_pages_make_room_for_what_is_first_drawn(scene, marker):
    boom = machine('boom', BOOM)
    scene.update(boom)
    before = bounds(scene)[1][0]
    draw(boom, **marker)
    assert scene.update(boom)
    assert bounds(scene)[1][0] == 99.0 > before
    draw(boom, TEXT, place=(200, 0, 0))
    assert not scene.update(boom), 'they rest afterwards'


def test_pages_follow_a_machine_that_moves_out_of_the_picture(scene):
    boom = machine('boom', BOOM)
    boom.positions = dict.fromkeys(boom.robot.joints, 0.0)
    scene.update(boom)
    client = page(scene, 1000, 700)
    boom.positions['beam_1_joint'] = 1.5  # rad, up
    scene.update(boom)
    reached = boom.robot.bounds(boom.positions)
    assert np.abs(corners(client, reached)[1]).max() > 1.0
    scene.fit_pages()
    moved = client.camera.position
    assert np.abs(corners(client, reached)).max() < 1.0
    scene.fit_pages()
    assert client.camera.position is moved, 'rests while it has room'


def test_cameras_are_in_the_picture(scene):
    boom, camera = machine('boom', BOOM), Machine('vision')
    camera.mountings = {'left': Mounting('boom_base', np.array([5.0, -40.0, 2.0]), np.eye(4)[0])}
    camera.lenses = {'left': Lens(0.5, 1.3)}
    scene.update(boom)
    before = bounds(scene)
    scene.update(camera)
    assert bounds(scene)[0][1] < -40.0 < before[0][1]


def test_narrow_pages_have_room_for_texts_at_the_sides_and_look_above_the_panel(scene):
    client = page(scene, 390, 844)
    for _ in range(2):
        # Of the empty scene, too.
        across, up = corners(client, bounds(scene))
        # Half of a text of nine letters.
        assert np.abs(across).max() < 1.0 - 2.0 * 30.0 / 390.0
        assert up.min() > 2.0 * _BELOW - 1.0
        scene.update(machine('boom', BOOM))


def test_a_page_that_overwrites_where_it_is_to_look_is_asked_again(scene):
    scene.update(machine('crane', CRANE))
    client = page(scene, 390, 844)
    wanted = client.camera.position
    client.camera.position = np.ones(3)
    scene.fit_pages()
    np.testing.assert_allclose(client.camera.position, wanted)


def test_a_page_that_is_moved_by_hand_stays(scene):
    client = page(scene, 1000, 700)
    client.camera.position = client.camera.position + 0.5
    place, client.camera.image_width = client.camera.position, 600
    scene.fit_pages()
    assert client.camera.position is place
    # What was on its way when it was told to look is not moved by hand.
    client.camera.position = np.ones(3)
    scene.fit_pages()
    assert np.abs(client.camera.position - 1.0).max() > 1.0


@pytest.mark.parametrize('nonsense', ['wide', 0, None, float('nan')])
def test_pages_with_nonsense_cameras_are_left_alone(scene, nonsense):
    client = page(scene, 1000, 700)
    client.camera.image_width, client.camera.position = nonsense, np.array(nonsense)
    scene.fit_pages()
    scene.look(client)


def test_the_name_of_a_high_machine_is_in_the_picture(scene):
    scene.update(machine('crane', CRANE))
    (shown,) = scene._machines.values()
    client = page(scene, 1600, 500)
    name = shown.frame.position + np.array(shown.label.position)
    _, up = corners(client, (name, name))
    # The text itself is some 20 pixels high.
    assert up.max() + 2.0 * 20.0 / 500.0 < 1.0


def test_what_stands_on_the_ground_has_a_shadow_and_what_hangs_has_none(scene):
    scene.update(machine('boom', BOOM))
    scene.update(machine('crane', CRANE))
    boom, crane = (
        sum('shadow' in node.name for node in shown._origins) for shown in scene._machines.values()
    )
    assert boom > 1
    assert crane == 0
