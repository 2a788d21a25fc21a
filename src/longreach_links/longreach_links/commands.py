"""Studies of flexible links, and what their figure has above the panels."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from longreach_links.spec import LINKS
from longreach_machine.runs import Run
from longreach_tools.machine_command import add_scenario, add_study, case_of
from longreach_tools.output import add_format, legend, print_result, table

# Cycles [s], and factors on all gains, of ``stability``.
_TIMES, _SCALES = (1e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2), (1.0, 0.5, 0.25, 0.1)


def add_studies(commands: Any) -> None:
    """Add the subcommands that only links have."""
    text = 'spectral radius of the digital loop by cycle, gains and rotor inertia, of links that'
    text += ' stand straight where a scenario begins'
    stability = add_study(LINKS, commands, 'stability', _stability, text, ())
    add_scenario(LINKS, stability)
    add_format(stability)


def _stability(arguments: argparse.Namespace) -> None:
    """Run ``stability``."""
    from longreach_symbolic.arm import arm_of, spectral_radius

    links, scenario, options = case_of(LINKS, arguments)
    arm = arm_of(links, options.arm).on(links)
    q = np.zeros(links.size)
    q[: len(links.links)] = scenario.angles(0.0, links)
    rows, cells = [], []
    for inertia in (0.0, 1.0):
        for scale in _SCALES:
            drives = [
                drive.replace(
                    gain=scale * drive.gain,
                    rate_gain=scale * drive.rate_gain,
                    rotor_inertia=inertia * drive.rotor_inertia,
                )
                for drive in arm.drives
            ]
            ones = [arm.replace(drives=drives, sample_time=time) for time in _TIMES]
            with np.errstate(over='ignore', invalid='ignore'):
                found = [spectral_radius(links, one, q) for one in ones]
            rows.append({'rotors': bool(inertia), 'scale': scale, 'radius': found})
            rotors = 'of the arm' if inertia else '0'
            cells.append((rotors, scale, *(f'{radius:.5g}' for radius in found)))
    result = {'times': list(_TIMES), 'rows': rows}
    head = ('rotor inertia', 'gains times', *(f'{time:g} s' for time in _TIMES))
    print_result(result, table(head, cells) + '\n\nstable: below 1', arguments.format)


def draw_above(axis: Any, run: Run[Any]) -> None:
    """Draw the way of the end."""
    if 'wanted_x' in run.columns.names:
        axis.plot(run.column('wanted_x'), run.column('wanted_z'), 'C7--', label='desired')
    axis.plot(run.column('tip_x'), run.column('tip_z'), label='end')
    axis.set(xlabel='x [m]', ylabel='z [m]', aspect='equal')
    legend(axis, 2)
