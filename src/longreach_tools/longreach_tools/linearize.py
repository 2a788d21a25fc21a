"""``longreach MACHINE linearize``: poles, frequency responses and files of linear models."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine import LinearModel, MachineSpec, linearize
from longreach_tools.arguments import names
from longreach_tools.output import (
    add_format,
    checked_ending,
    figure,
    print_result,
    table,
    writing,
)

Spec = MachineSpec[Any, Any, Any]
# Frequencies of a Bode figure beside the slowest and the fastest oscillation.
_AROUND, _POINTS = 5.0, 800
_MOST_CURVES = 16
# Most kinks, jumps and locked parts that are named one by one.
_MOST_NOTES = 8


def add_linearize(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``linearize`` beside those of the machine and its scenario."""
    # Where markers are detected --at is a pixel.
    parser.add_argument('--time', '--at', dest='at', default=0.0, help='time of the run')
    parser.add_argument(
        '--free',
        action='store_true',
        help='as if what sticks slides and closed valves are at the edge of opening',
    )
    for what in ('inputs', 'outputs'):
        parser.add_argument(
            f'--{what}', type=names, metavar='NAMES', help=f'{what}, with commas (default: all)'
        )
    parser.add_argument(
        '--reduce', type=int, metavar='ORDER', help='balanced truncation to so many states'
    )
    parser.add_argument('--out', help='model as .mat or .json')
    parser.add_argument('--plot', help='Bode figure')
    add_format(parser)


def run_linearize(
    arguments: argparse.Namespace, spec: Spec, machine: Any, scenario: Any, options: Any
) -> None:
    """Print the poles of a machine at a time of a scenario, and write what was asked for."""
    if arguments.out is not None:
        checked_ending(arguments.out, ['mat', 'json'])
    smooth = spec.smooth(machine, scenario, options, arguments.at, arguments.free)
    model = linearize(smooth, arguments.inputs, arguments.outputs)
    if arguments.reduce is not None:
        model = model.reduce(arguments.reduce)
    P, M = len(model.outputs), len(model.inputs)
    if arguments.plot is not None and P * M > _MOST_CURVES:
        raise InputError(
            f'--plot with {P * M} curves ({M} inputs, {P} outputs), allowed: up to {_MOST_CURVES};'
            f' choose, as --inputs {model.inputs[0].name} --outputs {model.outputs[0].name};'
            ' --format json lists all'
        )
    for line in model.notes[:_MOST_NOTES]:
        print(f'note: {line}', file=sys.stderr)
    if len(model.notes) > _MOST_NOTES:
        more = len(model.notes) - _MOST_NOTES
        print(f'note: and {more} more like these; --format json has all', file=sys.stderr)
    poles = model.poles()
    print_result(
        {
            'machine': spec.name,
            'time': arguments.at,
            'error': model.error,
            'poles': [
                {
                    'real': pole.value.real,
                    'imaginary': pole.value.imag,
                    'frequency': pole.frequency,
                    'damping': pole.damping,
                    'state': pole.state,
                }
                for pole in poles
            ],
            'inputs': [one.name for one in model.inputs],
            'outputs': [one.name for one in model.outputs],
            'notes': list(model.notes),
        },
        table(
            ('pole [1/s]', 'frequency [Hz]', 'damping', 'largest in'),
            [
                (
                    f'{pole.value.real:.4g}'
                    + (f' +- {pole.value.imag:.4g}j' if pole.value.imag else ''),
                    pole.frequency,
                    '' if np.isnan(pole.damping) else pole.damping,
                    pole.state,
                )
                for pole in poles
            ],
            left=1,
        )
        + f'\n{len(model.states)} states, {len(model.inputs)} inputs, {len(model.outputs)}'
        f' outputs; derivatives to {model.error:.1g}',
        arguments.format,
    )
    if arguments.out is not None:
        with writing(arguments.out) as file:
            model.save(file)
    if arguments.plot is not None:
        draw_bode(arguments.plot, model)


def draw_bode(file: Path, model: LinearModel) -> None:
    """Draw magnitude and phase from each input to each output that it moves."""
    found = [p.frequency for p in model.poles() if p.value.imag > 0.0]
    if not found:
        found = [p.frequency for p in model.poles() if p.frequency] or [1.0]
    frequencies = np.geomspace(min(found) / _AROUND, min(max(found), 100.0) * _AROUND, _POINTS)
    with figure(file, (8.0, 6.0), rows=2) as (above, below):
        response = model.response(frequencies)
        for p, output in enumerate(model.outputs):
            for m, given in enumerate(model.inputs):
                values = response[:, p, m]
                # NaN: there is no derivative, as a note says.
                if not (np.abs(values) > 0.0).any():
                    continue
                label = f'{output.name} [{output.unit}] by {given.name} [{given.unit}]'
                (line,) = above.loglog(frequencies, np.abs(values), label=label)
                phase = np.degrees(np.unwrap(np.angle(values)))
                below.semilogx(frequencies, phase, color=line.get_color())
        above.set_ylabel('magnitude')
        below.set_ylabel('phase [deg]')
        below.set_xlabel('frequency [Hz]')
        if above.lines:
            above.legend(fontsize='small')
