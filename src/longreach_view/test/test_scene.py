"""Where pages look: at all machines, whatever the size of their pictures, unless moved by hand."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

from longreach_boom.description import robot_description
from longreach_boom.parameters import load_boom
from longreach_crane.description import robot_description as crane_description
from longreach_crane.parameters import load_machinery
from longreach_view.scene import _BELOW, _FIELD_OF_VIEW, PANEL_WIDTH, Scene
from longreach_view.server import open_server, stop_server
from longreach_view.world import Machine


@pytest.fixture
def server():
    opened = open_server('127.0.0.1', 0)
    clients = {}
    opened.get_clients = lambda: clients
    yield opened
    stop_server(opened)


def page(width, height):
    """Return a page as viser has it before its panel is there."""
    camera = SimpleNamespace(
        image_width=width, image_height=height, position=np.ones(3), look_at=np.zeros(3)
    )
    return SimpleNamespace(client_id=7, camera=camera, atomic=contextlib.nullcontext)


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


def test_a_page_that_gets_its_panel_late_still_sees_a_larger_machine_that_came_before(server):
    scene, client = Scene(server), page(1000, 700)
    scene.update(machine('crane', crane_description(load_machinery().crane, '')))
    scene.look(client, scene.bounds())
    server.get_clients()[7] = client
    scene.update(machine('boom', robot_description(load_boom(), '')))
    client.camera.image_width -= PANEL_WIDTH
    across, _ = corners(client, scene.bounds())
    assert np.abs(across).max() > 1.0, 'cut, as it was told before'
    scene.fit_pages()
    across, up = corners(client, scene.bounds())
    assert 0.7 < max(np.abs(across).max(), np.abs(up).max()) < 1.0
    # The panel is beside it, also when the picture is as narrow as that of a small window.
    assert np.abs(up + up[::-1]).max() < 0.2


def test_a_page_that_is_moved_by_hand_stays(server):
    scene, client = Scene(server), page(1000, 700)
    scene.look(client, scene.bounds())
    server.get_clients()[7] = client
    client.camera.position = client.camera.position + 0.5
    place, client.camera.image_width = client.camera.position, 600
    scene.fit_pages()
    assert client.camera.position is place
    # What was on its way when it was told to look is not moved by hand.
    client.camera.position = np.ones(3)
    scene.fit_pages()
    assert np.abs(client.camera.position - 1.0).max() > 1.0


def test_a_narrow_page_looks_above_its_panel(server):
    scene, client = Scene(server), page(400, 800)
    scene.look(client, scene.bounds())
    _, up = corners(client, scene.bounds())
    assert up.min() > 2.0 * _BELOW - 1.0
