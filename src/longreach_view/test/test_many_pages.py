"""Ten pages, of which one does not read; what a late page gets; and that nothing piles up."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import msgspec
import viser
import websockets
import zstandard
from pages import DEADLINE, FakeSource, View, until

from longreach_view.page import Page, Replay
from longreach_view.server import open_server, stop_server

CAMERA = {
    'type': 'ViewerCameraMessage', 'wxyz': (1.0, 0.0, 0.0, 0.0), 'position': (0.0, 0.0, 9.0),
    'fov': 0.8, 'near': 0.1, 'far': 100.0, 'image_height': 600, 'image_width': 800,
    'look_at': (0.0, 0.0, 0.0), 'up_direction': (0.0, 0.0, 1.0),
}  # fmt: skip


async def opened(port):
    """Return a websocket as a page's, after it has told its camera."""
    socket = await websockets.connect(
        f'ws://127.0.0.1:{port}/', subprotocols=[f'viser-v{viser.__version__}'], max_size=None
    )
    await socket.send(msgspec.msgpack.encode(CAMERA))
    return socket


async def messages(socket):
    """Yield the messages that a page receives."""
    unpack = zstandard.ZstdDecompressor()
    async for frame in socket:
        size = int.from_bytes(frame[8:16], 'little')
        content = msgspec.msgpack.decode(unpack.decompress(frame[16 : 16 + size]))
        for message in content['messages']:
            yield message


async def moves(socket, count):
    """Wait for so many moves of the crane's car, and return all kinds of messages seen."""
    kinds = set()
    async for message in messages(socket):
        kinds.add(message['type'])
        moved = message['type'] == 'SetPositionMessage' and message['name'].endswith('/car')
        count -= moved
        if count <= 0:
            return kinds
    raise AssertionError('the connection was closed')


def run(test):
    """Run a test with a view of the swinging crane, and a function that opens pages of it."""

    async def call(view):
        sockets = []

        async def page():
            sockets.append(await opened(view.port))
            return sockets[-1]

        try:
            await asyncio.wait_for(test(view, page), 4.0 * DEADLINE)
        finally:
            for socket in sockets:
                socket.transport.abort()

    with contextlib.closing(View(FakeSource())) as view:
        asyncio.run(call(view))


def test_a_page_that_does_not_read_slows_no_other():
    async def test(view, page):
        sockets = [await page() for _ in range(10)]
        # The last one never reads: its queue fills, and then the server cannot send to it.
        await asyncio.gather(*(moves(socket, 30) for socket in sockets[:-1]))
        begun = view.source.time
        await asyncio.gather(*(moves(socket, 30) for socket in sockets[:-1]))
        assert view.source.time > begun

    run(test)


def test_a_late_page_gets_the_present_and_not_the_past():
    async def test(view, page):
        early = await page()
        # The charts of the preset come when no new topic has appeared for a while.
        while len(view.page._plots) < 3 or not view.page._known:
            await moves(early, 20)
        await moves(early, 60)
        buffer = view.server._websock_server._broadcast_buffer.message_from_id
        held = len(buffer)
        await moves(early, 60)
        # As many as there are things to see, not as many as were sent.
        assert len(buffer) <= held + 5
        late = await page()
        kinds = await moves(late, 2)
        assert {'BoxMessage', 'CylinderMessage', 'GuiUplotMessage', 'LabelMessage'} <= kinds

    run(test)


def test_a_chosen_time_is_not_lost_to_the_one_that_is_shown():
    server, free = open_server('127.0.0.1', 0), threading.Event()
    replay = Page(server, lambda _: [], length=10.0)
    slider = replay._slider

    async def choose():
        socket = await opened(server.get_port())
        until(server.get_clients, 'the page')
        update = {'type': 'GuiUpdateMessage', 'uuid': slider._impl.uuid, 'updates': {'value': 3.0}}
        await socket.send(msgspec.msgpack.encode(update))
        until(lambda: slider.value == 3.0, 'the choice')
        replay.show_replay(Replay(0.0, False))
        free.set()
        while (request := replay.requests.get(timeout=DEADLINE)).name != 'seek':
            pass
        socket.transport.abort()
        return request

    try:
        # Threads that are busy, so that functions wait.
        for _ in range(100):
            server.gui._thread_executor.submit(free.wait)
        assert asyncio.run(choose()).value == 3.0
    finally:
        free.set()
        stop_server(server)


def test_quick_clicks_are_requests_in_their_order():
    async def test(view, page):
        socket = await page()
        await moves(socket, 2)
        inputs = view.server.gui._gui_input_handle_from_uuid
        (group,) = (k for k, one in inputs.items() if 'GroupHandle' in type(one).__name__)
        for name in ('Pause', 'Step', 'Resume') * 5:
            update = {'type': 'GuiUpdateMessage', 'uuid': group, 'updates': {'value': name}}
            await socket.send(msgspec.msgpack.encode(update))
        while len(view.source.asked) < 15:
            await asyncio.sleep(0.02)
        assert [asked[1] for asked in view.source.asked] == ['pause', 'step', 'resume'] * 5

    run(test)


def test_the_address_of_a_page_chooses_charts():
    """Those of presets have labels, others names of signals; not as an image of another site."""
    labels = ['crane/joint_states.effort[cable_joint]', 'crane: position [m]']
    with contextlib.closing(View(FakeSource())) as view:
        query = urlencode({'chart': [*labels, 'nothing']}, doseq=True)
        urlopen(f'{view.address}?{query}', timeout=DEADLINE).close()
        image = Request(f'{view.address}?chart=x', headers={'Sec-Fetch-Dest': 'image'})
        urlopen(image, timeout=DEADLINE).close()
        until(lambda: [chart.label for chart in view.page._charts] == labels, 'these charts')
