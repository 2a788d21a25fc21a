"""
The web server of a page: viser's, on one address and port, closed to everybody else.

Requests must name this host and come from its own page; with a token a page needs it once in its
address (``?token=``), afterwards as a cookie. The page's policy forbids the browser to load from
other hosts. Of what a page sends only valid new values of its own widgets are accepted; what is no
message ends its connection, and a public address by viser's relay is refused.
"""

from __future__ import annotations

import contextlib
import http
import importlib.resources
import io
import logging
import math
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import viser
import websockets.asyncio.server
from viser._messages import GuiUpdateMessage
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from longreach_dynamics.errors import InputError, LongreachError

LOCAL = ('127.0.0.1', 'localhost', '::1')
# Largest message from a page [bytes]; those of widgets and of the camera have a few hundred.
_LARGEST = 64 * 1024
# How long a page may take to say goodbye [s].
_CLOSING = 1.0
_LONGEST_TEXT = 200
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; worker-src blob:; "
    "connect-src {origin} data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
# For the address that the server listens on, while viser creates its server.
_CREATING = threading.Lock()


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(18)


def open_server(
    host: str, port: int, token: str = '', warn: Callable[[str], None] = lambda _: None
) -> viser.ViserServer:
    """
    Serve an empty page; ``get_port()`` of the result returns the port for 0, any free one.

    ``token`` is what a page needs in its address, required for all addresses that are not of this
    computer alone; ``warn`` is called with a line for the user. InputError for a bad address,
    LongreachError when the port is taken or reserved.
    """
    if host not in LOCAL and not token:
        raise InputError(
            f'host = {host} is visible to other computers and needs a token; allowed without:'
            f' {", ".join(LOCAL)}'
        )
    listening = _listen(host, port)
    gate = Gate(host, listening.getsockname()[1], token)
    module: Any = websockets.asyncio.server
    real = module.serve

    def serve(handler: Any, _host: str, _port: int, **options: Any) -> Any:
        own = options['process_request']
        options |= {
            'process_request': lambda connection, request: gate(connection, request, own),
            'max_size': _LARGEST,
            'close_timeout': _CLOSING,
            'logger': _logger(warn),
        }
        return real(handler, sock=listening, **options)

    with _CREATING, contextlib.redirect_stdout(io.StringIO()):
        # viser offers neither a socket of the caller nor a check of requests.
        module.serve = serve
        try:
            server = viser.ViserServer(host, listening.getsockname()[1], verbose=False)
        finally:
            module.serve = real
    _accept_values_only(server)
    server.gate = gate
    return server


def stop_server(server: viser.ViserServer) -> None:
    """Stop it without viser's message on stdout."""
    thread = server._websock_server._server_thread
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()
        # viser waits for 1 s; its thread prints when the last page has been left.
        if thread is not None:
            thread.join(_CLOSING + 5.0)


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    try:
        ((family, _, _, _, address), *_rest) = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return socket.create_server(address, family=family)
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == 99:
            raise InputError(
                f'host = {host}: {error.strerror}; allowed: an address of this computer'
            ) from error
        raise LongreachError(
            f'port {port} of {host} cannot be used: {error.strerror}; another view may be running:'
            ' stop it, or give another --port (0: any free one)'
        ) from error


class Gate:
    """Decides on requests by their token; ``opened`` gets the charts of a page's address."""

    opened: Callable[[list[str]], None] = staticmethod(lambda _: None)

    def __init__(self, host: str, port: int, token: str) -> None:
        names = (*LOCAL, host) if host in LOCAL else ()
        self._hosts = {f'[{n}]:{port}' if ':' in n else f'{n}:{port}' for n in names}
        self._token = token
        # A cookie is sent to all ports of a host: each server needs a name of its own.
        self._cookie = f'longreach_view_{port}'

    def __call__(self, connection: Any, request: Request, serve: Any) -> Response | None:
        """Answer a request, or return None for a websocket that may be opened."""
        refusal = self.refusal(request)
        if refusal:
            content, status = f'{refusal}\n'.encode(), http.HTTPStatus.FORBIDDEN
            headers = Headers({'Content-Type': 'text/plain', 'Content-Length': str(len(content))})
            return Response(status, status.phrase, headers, content)
        # The page is changed, which is simple where it is not compressed.
        if 'Accept-Encoding' in request.headers:
            del request.headers['Accept-Encoding']
        response: Response | None = serve(connection, request)
        if response is not None:
            _add_head(response)
            # Not as an image or a frame of another site.
            if request.headers.get('Sec-Fetch-Dest', 'document') == 'document':
                self.opened(parse_qs(urlsplit(request.path).query).get('chart', []))
            own = request.headers['Host']
            response.headers['Content-Security-Policy'] = _POLICY.format(
                origin=f'http://{own} ws://{own}'
            )
            response.headers['Referrer-Policy'] = 'no-referrer'
            response.headers['X-Content-Type-Options'] = 'nosniff'
            response.headers['Cache-Control'] = 'no-store'
            if self._token:
                response.headers['Set-Cookie'] = (
                    f'{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/'
                )
        return response

    def refusal(self, request: Request) -> str:
        """Return why a request is refused, empty if it is not."""
        hosts, origins = (request.headers.get_all(name) for name in ('Host', 'Origin'))
        if len(hosts) != 1 or (self._hosts and hosts[0] not in self._hosts):
            return 'This server is called by another name than its own.'
        if any(origin != f'http://{hosts[0]}' for origin in origins):
            return 'Only its own page may connect to this server.'
        if self._token and not any(
            secrets.compare_digest(given.encode(errors='replace'), self._token.encode())
            for given in self._tokens(request)
        ):
            return 'A token is needed: open the address that `longreach view` has printed.'
        return ''

    def _tokens(self, request: Request) -> Iterator[str]:
        """Yield the tokens in the address and in the cookies of a request."""
        yield from parse_qs(urlsplit(request.path).query).get('token', [])
        # Of cookies of other servers on this host, http.cookies would drop all for one with JSON.
        for text in request.headers.get_all('Cookie'):
            pairs = (part.strip().partition('=') for part in text.split(';'))
            yield from (value for name, _, value in pairs if name == self._cookie)


def _add_head(response: Response) -> None:
    """Put title, names, keys and sizes for fingers into viser's page."""
    if 'text/html' in response.headers.get('Content-Type', ''):
        own = importlib.resources.files(__package__).joinpath('head.html').read_bytes()
        response.body = bytes(response.body or b'').replace(b'<title>Viser</title>', own, 1)
        del response.headers['Content-Length']
        response.headers['Content-Length'] = str(len(response.body))


def _logger(warn: Callable[[str], None]) -> logging.Logger:
    """Return a logger that reports failures of connections in a line instead of a traceback."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == 'connection handler failed':
                warn('a page sent what is no message; it was disconnected')

    logger = logging.Logger('longreach_view.server', logging.ERROR)
    logger.addHandler(Lines())
    return logger


def _accept_values_only(server: viser.ViserServer) -> None:
    """Drop what pages send to the server, except valid values of its widgets."""
    messages: Any = server._websock_server
    widgets, dispatch = server.gui._gui_input_handle_from_uuid, messages._handle_incoming_message

    async def checked(client: Any, message: Any) -> None:
        if isinstance(message, GuiUpdateMessage) and _is_valid(message, widgets):
            await dispatch(client, message)

    messages._handle_incoming_message = checked


def _is_valid(message: Any, widgets: Any) -> bool:
    """Return whether a message has a value that its widget can have."""
    if not isinstance(message.uuid, str) or not isinstance(message.updates, dict):
        return False
    widget = widgets.get(message.uuid)
    if widget is None or message.updates.keys() != {'value'} or widget.disabled:
        return False
    value = message.updates['value']
    kind = type(widget).__name__.removeprefix('Gui').removesuffix('Handle')
    if kind in ('Button', 'Checkbox'):
        return isinstance(value, bool)
    if kind in ('Dropdown', 'ButtonGroup'):
        return isinstance(value, str) and value in widget.options
    if kind in ('Slider', 'Number'):
        low, high = (math.inf if b is None else b for b in (widget.min, widget.max))
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and math.isfinite(value) and low <= value <= high
    return kind == 'Text' and isinstance(value, str) and len(value) <= _LONGEST_TEXT
