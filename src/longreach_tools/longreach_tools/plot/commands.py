"""
Draw a recording: any numbers of any topics over time, with their units and events.

  longreach plot BAG --list                              what is in it: fields, units, ranges
  longreach plot BAG /crane/joint_states.position /crane/status.set_point --out run.svg
  longreach plot BAG /crane/sensors.car_position --against BAG2 --out both.html
  longreach plot BAG --preset crane --out crane.png      as the figures of the paper
  longreach plot BAG /crane/sensors --out sensors.csv    all samples

Time is that of the stamps in the messages. A topic may be given by its last part, and a field by
its beginning: joint_states.position stands for the positions of all joints.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach_dynamics.errors import InputError, check_one
from longreach_tools.arguments import check_unused
from longreach_tools.options import add_signals, check_span
from longreach_tools.output import (
    PICTURES,
    add_format,
    check_output,
    check_places,
    checked_ending,
    print_result,
)
from longreach_tools.output import table as as_table

if TYPE_CHECKING:
    from ._picture import Picture

# Options that --list does not have.
_OF_FIGURES = ('out', 'against', 'namespace', 'file', 'begin', 'end')
SUMMARY = 'figures of recordings: numbers over time, two runs, presets'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments; drawing is imported when the command runs."""
    add_signals(parser, 'such as joint_states.position[car_joint]')
    parser.add_argument(
        '--list', action='store_true', help='print fields with units, counts and ranges'
    )
    parser.add_argument('--out', help='.png, .svg, .pdf and the like, .html or .csv')
    parser.add_argument('--against', help='a second run, and the difference from it')
    parser.add_argument('--preset', help='the figure of crane, boom, excavator, ...')
    parser.add_argument('--namespace', help='the machine of --preset (default: its name)')
    parser.add_argument('--file', help='machine of --preset (default: installed)')
    add_format(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    check_span(arguments)
    check(arguments)
    if arguments.list:
        from ._listing import inventory, inventory_table

        found = inventory(arguments.bag)
        if found['problem']:
            _note(f'{arguments.bag}: {found["problem"]}')
        print_result(found, inventory_table(found), arguments.format)
        return 0
    from longreach_tools.fields import parse_signal

    from ._build import Window, build, build_preset

    window = Window(arguments.begin, arguments.end)
    if arguments.preset:
        picture, notes = build_preset(
            arguments.preset,
            arguments.bag,
            arguments.namespace or arguments.preset,
            arguments.file,
            window,
            arguments.against,
        )
    else:
        signals = [parse_signal(text) for text in arguments.signals]
        picture, notes = build(arguments.bag, signals, window, arguments.against)
    _write(arguments.out, picture)
    for note in notes:
        _note(note)
    result, text = _report(arguments.out, picture, notes)
    print_result(result, text, arguments.format)
    return 0


def check(arguments: argparse.Namespace) -> None:
    """Check arguments that exclude each other, and the output."""
    shown = (arguments.signals, arguments.preset, arguments.list)
    check_one(**dict(zip(('TOPIC.field', '--preset', '--list'), shown, strict=True)))
    if arguments.list:
        check_unused(arguments, 'without --list', *_OF_FIGURES)
        return
    if arguments.out is None:
        raise InputError('no --out; give a file: .png, .svg, .html or .csv')
    checked_ending(arguments.out, (*PICTURES, 'html', 'csv'))
    if not arguments.preset:
        check_unused(arguments, 'with --preset', 'namespace', 'file')
    check_output(arguments.out)
    check_places({'--out': arguments.out}, (arguments.bag, arguments.against, arguments.file))


def _write(file: Path, picture: Picture) -> None:
    """Write a figure by its suffix."""
    ending = file.suffix.lower()
    if ending == '.csv':
        from ._draw import write_table

        write_table(file, picture)
    elif ending == '.html':
        from ._html import write_page

        write_page(file, picture.readable())
    else:
        from ._draw import draw

        draw(file, picture.readable())


def _report(file: Path, picture: Picture, notes: list[str]) -> tuple[dict[str, Any], str]:
    """Return what was drawn, for JSON and as a table."""
    from ._draw import agreement, statistics

    entries: list[dict[str, Any]] = []
    for panel in picture.panels:
        for place, curve in enumerate(panel.curves):
            entry: dict[str, Any] = {'signal': curve.name, 'unit': curve.unit}
            entry |= statistics(curve)
            if panel.others:
                entry |= agreement(panel.differences[place])
            entries.append(entry)
    result = {
        'file': str(file),
        'recordings': list(picture.names),
        'signals': entries,
        'events': [{'time': mark.time, 'event': mark.label} for mark in picture.marks],
        'notes': notes,
    }
    head = [key.replace('_', ' ') for key in entries[0]]
    rows = [['-' if cell is None else cell for cell in entry.values()] for entry in entries]
    return result, as_table(head, rows)


def _note(line: str) -> None:
    """Print a remark on stderr."""
    print(f'longreach plot: {line}', file=sys.stderr)
