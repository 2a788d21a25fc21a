"""
Record, play, inspect and recover rosbag2 files, compatible with ``ros2 bag``.

  longreach bag record                                all topics, until Ctrl-C
  longreach bag record --topics /crane/sensors --out run1 --stamps header
  longreach bag info run1
  longreach bag play run1 --speed 2 --clock
  longreach bag recover run1 --out run2               after a crash or damage
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from longreach_tools.arguments import add_common, count, not_negative, positive
from longreach_tools.cli import StopSignals, say
from longreach_tools.output import add_format

SUMMARY = 'record, play and inspect rosbag2 files'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands; their dependencies are imported when they run."""
    commands = parser.add_subparsers(required=True, metavar='record|play|info|recover')
    _configure_record(commands.add_parser('record', help='record topics'))
    _configure_play(commands.add_parser('play', help='publish recorded messages'))

    info = commands.add_parser(
        'info',
        help='show topics, counts, times, QoS and damage',
        epilog='exit code: 0 intact, 1 damaged or not closed, 2 not a recording',
    )
    info.add_argument('bag')
    add_format(info)
    info.set_defaults(run=_info)

    recover = commands.add_parser('recover', help='copy the intact part of a damaged recording')
    recover.add_argument('bag')
    text = 'new directory'
    recover.add_argument('-o', '--out', '--output', required=True, metavar='DIR', help=text)
    recover.set_defaults(run=_recover)


def _configure_record(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``record``."""
    add = parser.add_argument
    add(
        '--topics',
        nargs='+',
        default=[],
        metavar='TOPIC',
        help='a part * of a name stands for any, as in */image_raw (default: all topics but hidden'
        ' ones, /rosout and /parameter_events)',
    )
    text = 'new directory; default: named by date and time'
    add('-o', '--out', '--output', metavar='DIR', help=text)
    add('--compress', action='store_true', help='compress by zstd')
    add('-d', '--duration', help='of the recording (default: until Ctrl-C)')
    add(
        '--stamps',
        choices=('receive', 'header'),
        default='receive',
        help='bag time: time of arrival (default), or the stamp of a message; with stamps, a '
        'simulation that ran faster than real time is played in real time',
    )
    add_common(parser, '--namespace', '/', help='relative topic names')
    add_common(parser, '--network', False)
    add_format(parser)
    parser.set_defaults(run=_record)


def _configure_play(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``play``."""
    add = parser.add_argument
    parser.add_argument('bag')
    add(
        '-r',
        '--speed',
        '--rate',
        dest='rate',
        type=not_negative,
        default=1.0,
        help='against bag time; 0: as fast as possible',
    )
    add('-l', '--loop', action='store_true', help='play again and again, until Ctrl-C')
    add(
        '--clock',
        dest='clock_rate',
        type=positive,
        nargs='?',
        const=100.0,
        metavar='HZ',
        help='publish /clock in bag time with rate HZ (default: 100)',
    )
    add(
        '--from',
        '--start-offset',
        dest='start_offset',
        type=not_negative,
        default=0.0,
        help='from the start of the bag; what is kept for late subscribers, such as robot'
        ' descriptions, is published from before',
    )
    add('--duration', help='of bag time that is played (default: all)')
    add('--topics', nargs='+', metavar='TOPIC', help='only these')
    add(
        '--wait-for-subscribers',
        dest='subscribers',
        type=count(1000),
        nargs='?',
        const=1,
        default=0,
        metavar='N',
        help='wait until each topic has N subscribers, 1 without a number',
    )
    add_common(parser, '--network', False)
    parser.set_defaults(run=_play)


def _record(arguments: argparse.Namespace) -> None:
    """Run ``record``."""
    stop = StopSignals()
    from ._record import RecordOptions, record
    from ._report import recording_as_dict, recording_as_text
    from ._topics import checked_name

    names = [checked_name(name, arguments.namespace, patterns=True) for name in arguments.topics]
    options = RecordOptions(
        Path(arguments.out or time.strftime('rosbag2_%Y_%m_%d-%H_%M_%S')),
        tuple(dict.fromkeys(names)),
        compress=arguments.compress,
        stamps=arguments.stamps,
        duration=arguments.duration,
    )
    summary = record(options, stop, say)
    if arguments.format == 'json':
        print(json.dumps(recording_as_dict(summary), indent=2))
    else:
        say(recording_as_text(summary))


def _play(arguments: argparse.Namespace) -> None:
    """Run ``play``."""
    stop = StopSignals()
    from ._play import PlayOptions, play

    options = PlayOptions(**{name: getattr(arguments, name) for name in PlayOptions._fields})
    published = play(arguments.bag, options, stop, say)
    say(f'{published} messages published')


def _info(arguments: argparse.Namespace) -> int:
    """Run ``info``; 1 for a recording that is damaged or was not closed."""
    from ._report import inspect_bag

    report = inspect_bag(arguments.bag)
    as_json = arguments.format == 'json'
    print(json.dumps(report.as_dict, indent=2) if as_json else report.as_text)
    return 1 if report.problem else 0


def _recover(arguments: argparse.Namespace) -> None:
    """Run ``recover``."""
    from ._writer import recover

    recovered = recover(arguments.bag, arguments.out, say)
    say(f'{recovered} messages in {arguments.out}')
