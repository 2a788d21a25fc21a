"""
See machines in a browser: 3D, charts, controls, camera pictures.

  longreach view                              what runs on this computer
  longreach view crane scenario:=task_b       start a launch file, and show it
  longreach view --demo                       start all machines, and show them
  longreach view out/demo/task_c              play a recording
  longreach view run1 --export run.html       write it to one file, which any browser shows
  longreach view run1 run2                    two recordings, the second one as a ghost
"""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_tools.arguments import check_unused, count
from longreach_tools.cli import StopSignals, say
from longreach_view.launch_files import Started

SUMMARY = 'see running machines and recordings in a browser'

PORT, _HOST = 8080, '127.0.0.1'
_MOST_BAGS = 2
# With the simulated boom, and at a rate that a laptop can do beside a browser.
_USUAL = {'vision': ('boom:=true', 'scale:=0.5', 'frame_rate:=5.0')}
# All machines, one of them with the clock. The first four start at once.
DEMO = (
    ('boom', 'scenario:=wave'),
    ('excavator', 'scenario:=cycle', 'publish_clock:=false', 'operator:=false'),
    ('harvester', 'scenario:=sine', 'publish_clock:=false'),
    (
        'vision',
        'boom:=false',
        'frame_id:=boom/boom_base',
        'use_sim_time:=true',
        'scale:=0.5',
        'frame_rate:=5.0',
        'one_process:=true',
    ),
    ('crane', 'scenario:=task_b', 'publish_clock:=false'),
)
# How long their scenarios last [s], which begin again then.
DURATIONS = {'boom': 36.0, 'excavator': 12.0, 'harvester': 40.0, 'crane': 60.0}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``longreach view``."""
    parser.add_argument(
        'what',
        nargs='*',
        metavar='NAME [name:=value ...] | BAG [BAG2]',
        help='launch file and its arguments, or recordings; default: what runs',
    )
    parser.add_argument('--demo', action='store_true', help='start all machines')
    parser.add_argument(
        '--port', metavar='N', type=count(65535, 0), default=PORT, help='0: any free'
    )
    parser.add_argument(
        '--host',
        metavar='ADDRESS',
        default=_HOST,
        help='address to listen on (default: 127.0.0.1, this computer only)',
    )
    access = parser.add_mutually_exclusive_group()
    access.add_argument(
        '--token',
        default='auto',
        metavar='TEXT',
        help='needed in the address: 8 or more letters, digits, - or _ (default: random)',
    )
    access.add_argument(
        '--no-token',
        dest='token',
        action='store_const',
        const=None,
        help='let every user of this computer see and move the machines',
    )
    parser.add_argument(
        '--export',
        help='write recordings to one file with 3D, charts and slider, which needs no server',
    )
    parser.add_argument('--network')
    parser.set_defaults(run=run, offline=lambda given: bool(given.export or _subject(given)[0]))


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    token = _token(arguments)
    bags, launches = _subject(arguments)
    if arguments.export is not None:
        if not bags:
            none = ''.join(f', which {word} is not' for word in arguments.what[:1])
            raise InputError(f'--export without a recording{none}; give one, or two to compare')
        served = {'port': PORT, 'host': _HOST, 'token': 'auto', 'network': False}
        check_unused(arguments, 'without --export', **served)
        from longreach_view.html_output import export

        print(export(bags, arguments.export))
        return 0
    stop = StopSignals()
    with contextlib.ExitStack() as resources:
        # Machines start while this imports.
        started = Started(launches)
        resources.callback(started.close)
        from longreach_tools.fields import numeric_fields
        from longreach_view.chart_files import load_presets, machine_charts
        from longreach_view.loop import run_view
        from longreach_view.page import Page
        from longreach_view.server import open_server, stop_server
        from longreach_view.world import World

        if bags:
            # Before the server opens: a bag that cannot be read is an error at once.
            from longreach_view.recording import BagSource

            replay = BagSource(bags)
        server = open_server(
            arguments.host, arguments.port, token, lambda line: say(f'longreach view: {line}')
        )
        resources.callback(stop_server, server)
        charts = partial(machine_charts, load_presets())
        if bags:
            source: Any = replay
            page = Page(server, charts, replay.length, replay.begin)
            # All is kept, so that any time may be shown in charts.
            world = World(numeric_fields, replay.count)
        else:
            from longreach_view.view_node import LiveSource

            source = LiveSource(started, DURATIONS if arguments.demo else {})
            resources.callback(source.close)
            page = Page(server, charts, scenarios=started.scenarios(), numbers=started.numbers())
            world = World(numeric_fields)
        host = f'[{arguments.host}]' if ':' in arguments.host else arguments.host
        address = f'http://{host}:{server.get_port()}/' + (f'?token={token}' if token else '')
        print(f'{address}  (Ctrl-C ends it)', flush=True)
        run_view(source, page, world, lambda: stop() or started.failure != 0)
    return started.failure


def _subject(arguments: argparse.Namespace) -> tuple[list[Path], Sequence[Sequence[str]]]:
    """Return the recordings to play, and the launches to start."""
    words = arguments.what
    if arguments.demo:
        if words:
            raise InputError(f'--demo together with {words[0]}; give one of them')
        return [], DEMO
    if not words:
        return [], []
    if Path(words[0]).exists() and not words[0].endswith('.xml'):
        if len(words) > _MOST_BAGS:
            raise InputError(f'{len(words)} recordings, allowed: one, or two to compare')
        return [Path(word) for word in words], []
    if any(':=' not in word for word in words[1:]):
        # Not a launch with its arguments: recordings, of which one is missing.
        raise InputError(f'{words[0]}: no such recording; allowed: NAME name:=value ..., or BAGs')
    return [], [[words[0], *_USUAL.get(words[0], ()), *words[1:]]]


def _token(arguments: argparse.Namespace) -> str:
    """Return the token that was given, or a random one."""
    token: str | None = arguments.token
    if token == 'auto':
        from longreach_view.server import new_token

        return new_token()
    if token is not None and not re.fullmatch('[A-Za-z0-9_-]{8,}', token):
        raise InputError('--token: allowed: 8 or more letters, digits, - or _')
    return token or ''
