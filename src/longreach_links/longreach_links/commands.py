"""
Simulate chains of flexible links under digital controllers, as machines made of equations.

Equations are generated and compiled for the number of links and functions of the file at the first
call, and kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from longreach_symbolic.links import Links, default_file, load_links
from longreach_symbolic.scenario import Scenario, load_scenario
from longreach_symbolic.simulation import LinksRun
from longreach_tools.arguments import numbers, optional_file
from longreach_tools.machine_command import MachineCommand, lazily
from longreach_tools.options import add_file, add_results
from longreach_tools.output import add_format, print_result, table

__all__ = ['SUMMARY', 'configure']

SUMMARY = 'a chain of flexible links with motors (Yu and Chen 2019)'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach links``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    run = LINKS.add_run(commands)
    _add_links(run)
    _add_arm(run)
    add_results(run, 'a table, one row for each cycle', 'way of the end, angles, torques')
    many = LINKS.add_sweep(
        commands, 'longreach_links.commands:LINKS', 'links.1.lumped_mass', 'circle'
    )
    _add_links(many)
    _add_arm(many)
    compare = LINKS.add_compare(
        commands,
        'Name what was run with --scenario, --file and --arm; commands by hand differ, too',
    )
    _add_links(compare)
    _add_arm(compare)
    stability = commands.add_parser(
        'stability', help='spectral radius of the digital loop by cycle, gains and rotor inertia'
    )
    _add_links(stability)
    _add_arm(stability)
    stability.add_argument(
        '--scenario',
        metavar='SCENARIO',
        type=Path,
        default=Path('circle'),
        help='links stand, straight, where it begins (default: circle)',
    )
    stability.add_argument(
        '--times',
        metavar='T1,T2,..',
        type=numbers,
        default=(1e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2),
        help='cycles [s] (default: 0.0001,0.0005,0.001,0.002,0.005,0.01)',
    )
    stability.add_argument(
        '--scales',
        metavar='S1,S2,..',
        type=numbers,
        default=(1.0, 0.5, 0.25, 0.1),
        help='factors on all gains (default: 1,0.5,0.25,0.1)',
    )
    add_format(stability)
    stability.set_defaults(run=_stability)
    LINKS.add_urdf(commands)
    LINKS.add_services(commands)
    LINKS.add_demo(
        commands,
        'the circle over ROS: run, record, compare, draw',
        'circle',
        ('real_time_factor:=0.0', 'duration:=22.0'),
        _NEXT,
    )


def _add_links(parser: argparse.ArgumentParser) -> None:
    """Add ``--file``."""
    add_file(parser, 'LINKS.yaml', 'links (default: the two of the paper)')


def _add_arm(parser: argparse.ArgumentParser) -> None:
    """Add ``--arm``."""
    parser.add_argument(
        '--arm',
        metavar='ARM.yaml',
        type=optional_file,
        help='motors, gains, cycle, damping (default: designed for the links)',
    )


def _simulate(links: Links, scenario: Scenario, arguments: argparse.Namespace) -> LinksRun:
    """Simulate a scenario."""
    from longreach_symbolic.arm import arm_of
    from longreach_symbolic.machine import FlexibleLinks
    from longreach_symbolic.simulation import simulate

    return simulate(FlexibleLinks(links, arm_of(links, arguments.arm), scenario))


def _stability(arguments: argparse.Namespace) -> None:
    """Run ``stability``."""
    import numpy as np

    from longreach_symbolic.arm import arm_of, linear_terms, spectral_radius

    links = load_links(arguments.file)
    arm, scenario = arm_of(links, arguments.arm).on(links), LINKS.scenario_of(arguments, links)
    q = np.zeros(links.size)
    q[: len(links.links)] = scenario.angles(0.0, links)
    rows = []
    for inertia in (0.0, 1.0):
        for scale in arguments.scales:
            drives = [
                drive.replace(
                    gain=scale * drive.gain,
                    rate_gain=scale * drive.rate_gain,
                    rotor_inertia=inertia * drive.rotor_inertia,
                )
                for drive in arm.drives
            ]
            ones = [arm.replace(drives=drives, sample_time=time) for time in arguments.times]
            with np.errstate(over='ignore', invalid='ignore'):
                found = [spectral_radius(linear_terms(links, one, q), one) for one in ones]
            rows.append({'rotors': bool(inertia), 'scale': scale, 'radius': found})
    result = {'times': list(arguments.times), 'rows': rows}
    head = ('rotor inertia', 'gains times', *(f'{time:g} s' for time in arguments.times))
    cells = [
        (
            'of the arm' if row['rotors'] else '0',
            row['scale'],
            *(f'{r:.5g}' for r in row['radius']),
        )
        for row in rows
    ]
    print_result(result, table(head, cells) + '\n\nstable: below 1', arguments.format)


def _measure(run: LinksRun) -> tuple[float, ...]:
    """Return the results of a run for a sweep."""
    summary = run.summary()
    return tuple(summary[name] for name in _SWEPT)


_SWEPT = {'tip_error': 'm', 'largest_torque': 'N m', 'largest_deflection': 'm'}

_NEXT = """
The bag is in {bag}, the picture in {picture}. What to try next, after . install/setup.bash:
  longreach launch links view:=true                in real time; Ctrl-C ends it
  cp {file} my_links.yaml
                                                   change numbers in it, add links, then:
  longreach links run circle --file my_links.yaml --plot out/mine.png
  longreach symbolic generate --file my_links.yaml --format latex --out my_links.tex"""

LINKS = MachineCommand(
    name='links',
    load=lambda arguments: load_links(arguments.file),
    load_scenario=lambda file, links, _: load_scenario(file, links),
    simulate=_simulate,
    read_run=lazily('longreach_links.recording:read_run'),
    draw_run=lazily('longreach_links.figures:draw_run'),
    default_file=default_file,
    describe=lazily('longreach_links.description:robot_description'),
    add_file=_add_links,
    scenarios='links_',
    swept=_SWEPT,
    measure=_measure,
)
