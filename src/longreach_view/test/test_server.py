"""The server: where it listens, whom it answers, and what it takes from pages."""

from __future__ import annotations

import asyncio
import http.client
import socket
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import viser
import websockets

from longreach_dynamics.errors import InputError, LongreachError
from longreach_view.chart_files import load_presets, machine_charts
from longreach_view.page import Page
from longreach_view.server import open_server, stop_server
from longreach_view.world import Sample, World

TOKEN = 'a-long-token'


@pytest.fixture(scope='module')
def server():
    opened = open_server('127.0.0.1', 0)
    yield opened
    stop_server(opened)


@pytest.fixture(scope='module')
def secret():
    opened = open_server('127.0.0.1', 0, TOKEN)
    yield opened
    stop_server(opened)


def get(server, path='/', **headers):
    connection = http.client.HTTPConnection('127.0.0.1', server.get_port(), timeout=20)
    connection.request('GET', path, headers=headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def connect(server, **options):
    options.setdefault('subprotocols', [f'viser-v{viser.__version__}'])
    return websockets.connect(f'ws://127.0.0.1:{server.get_port()}/', max_size=None, **options)


def test_it_listens_on_this_computer_only(server):
    port = server.get_port()
    listening = [
        line.split()[1].partition(':')
        for name in ('/proc/net/tcp', '/proc/net/tcp6')
        for line in Path(name).read_text().splitlines()[1:]
        if line.split()[3] == '0A'
    ]
    assert [address for address, _, at in listening if int(at, 16) == port] == ['0100007F']


def test_the_page_forbids_other_hosts(server):
    response, content = get(server)
    assert response.status == 200
    assert b'<html' in content
    policy = response.headers['Content-Security-Policy']
    assert f'connect-src http://127.0.0.1:{server.get_port()} ws://127.0.0.1' in policy
    assert "default-src 'none'" in policy


def test_a_taken_port_is_an_error_and_no_other_is_used_instead(server):
    with pytest.raises(LongreachError, match=f'port {server.get_port()} of 127.0.0.1 cannot be'):
        open_server('127.0.0.1', server.get_port())


def test_a_public_address_must_exist():
    with pytest.raises(InputError, match='allowed: an address of this computer'):
        open_server('203.0.113.7', 0, TOKEN)


def test_other_names_and_origins_are_refused(server):
    """A web site that the browser shows cannot reach the server by a name of its own."""
    port = server.get_port()
    assert get(server, Host=f'evil.example:{port}')[0].status == 403
    assert get(server, Origin='http://evil.example')[0].status == 403
    assert get(server, Origin=f'https://127.0.0.1:{port}')[0].status == 403
    assert get(server, Host=f'localhost:{port}')[0].status == 200

    async def open_from(origin):
        async with connect(server, origin=origin):
            pass

    asyncio.run(open_from(f'http://127.0.0.1:{port}'))
    with pytest.raises(websockets.exceptions.InvalidStatus, match='403'):
        asyncio.run(open_from('http://evil.example'))


def test_a_token_is_asked_for_once(secret):
    assert get(secret)[0].status == 403
    assert get(secret, '/?token=another')[0].status == 403
    response, _ = get(secret, f'/?token={TOKEN}')
    assert response.status == 200
    cookie = response.headers['Set-Cookie'].partition(';')[0]
    assert get(secret, Cookie=cookie)[0].status == 200
    # A browser has one cookie of a name for all ports of a host.
    assert f'_{secret.get_port()}=' in cookie
    # Those of other servers on this host come with it.
    assert get(secret, Cookie=f'a b={{"c": [1]}}; {cookie}; d')[0].status == 200
    assert get(secret, Cookie=f'_{cookie}; {cookie.partition("=")[0]}="\xe9"')[0].status == 403

    async def open_with(headers):
        async with connect(secret, additional_headers=headers):
            pass

    asyncio.run(open_with({'Cookie': cookie}))
    with pytest.raises(websockets.exceptions.InvalidStatus, match='403'):
        asyncio.run(open_with({}))


@pytest.mark.parametrize('path', ['/../_viser.py', '/%2e%2e/_viser.py', '/etc/passwd'])
def test_no_other_files_are_served(server, path):
    assert get(server, path)[0].status == 404


def packed(kind, **fields):
    """Return a message as a page sends it."""
    return msgspec.msgpack.encode({'type': kind, **fields})


def test_nonsense_changes_nothing_and_ends_only_its_own_connection():
    warnings = []
    server = open_server('127.0.0.1', 0, warn=warnings.append)
    try:
        slider = server.gui.add_slider('a', 0.0, 1.0, 0.01, 0.5)
        choice = server.gui.add_dropdown('b', ('x', 'y'))
        locked = server.gui.add_checkbox('c', False, disabled=True)
        seen = []
        slider.on_update(lambda event: seen.append(event.target.value))

        def update(widget, **updates):
            return packed('GuiUpdateMessage', uuid=widget._impl.uuid, updates=updates)

        async def page():
            async with connect(server) as other, connect(server) as own:
                for message in (
                    update(slider, value=7.0),
                    update(slider, value='1'),
                    update(slider, value=float('nan')),
                    update(slider, value=True),
                    update(slider, disabled=True),
                    update(slider, update_cb=[]),
                    update(slider, value=0.7, visible=False),
                    update(choice, value='z'),
                    update(locked, value=True),
                    packed('GuiUpdateMessage', uuid='nothing', updates={'value': 1}),
                    packed('ShareUrlRequest'),
                ):
                    await own.send(message)
                await own.send(update(slider, value=0.25))
                for _ in range(500):
                    if slider.value == 0.25:
                        break
                    await asyncio.sleep(0.01)
                await own.send(b'\xff nonsense')
                await asyncio.wait_for(own.wait_closed(), 20)
                # The other page goes on.
                pong = await other.ping()
                await asyncio.wait_for(pong, 20)

        asyncio.run(page())
        assert slider.value == 0.25
        assert not slider.disabled
        assert slider.visible
        assert (choice.value, locked.value) == ('x', False)
        assert warnings == ['a page sent what is no message; it was disconnected']
        assert server._share_tunnel is None
    finally:
        stop_server(server)


def test_the_server_ends_without_a_word_and_its_port_is_free_again(capfd):
    server = open_server('127.0.0.1', 0)
    port = server.get_port()
    Page(server, lambda _: [])
    stop_server(server)
    with pytest.raises(ConnectionRefusedError), socket.create_connection(('127.0.0.1', port), 5):
        pass
    stop_server(open_server('127.0.0.1', port))
    assert capfd.readouterr() == ('', '')


def charts_of(server, **counts):
    """Return a page that shows charts of machines with so many joints."""
    page = Page(server, partial(machine_charts, load_presets()))
    world = World(lambda message: dict.fromkeys(message.name, 0.0))
    for machine, count in counts.items():
        names = [f'position[{k}]' for k in range(count)]
        message = SimpleNamespace(name=names, position=[0.0] * count)
        topic = f'/{machine}/joint_states'
        world.take(Sample(topic, 'sensor_msgs/msg/JointState', message, 0.0), 0.0)
    for now in (10.0, 20.0):
        page.show_charts(world, now)
    page.show_state(world, 20.0)
    return page


@pytest.mark.parametrize(('count', 'said'), [(48, False), (49, True)])
def test_charts_that_a_page_does_not_show_are_counted(server, count, said):
    page = charts_of(server, n=count)
    assert ('Of 9 charts 8 are shown' in page._state.content) is said


def test_each_machine_has_charts_when_not_all_are_shown(server):
    page = charts_of(server, a=60, b=1)
    owners = [chart.title.partition(':')[0] for chart in page._charts]
    assert owners == ['a'] * 7 + ['b']
