"""
Measure how fast Longreach is beside what one would use instead; what ``make bench`` calls.

    bench.py [--quick] [--only a,b,...]

a  Task B of the crane, library and SciPy        e  release of a load by the boom: SciPy, Exudyn
b  Task A of the crane, library and SciPy        f  the boom: growth with duration and beams
c  the crane in lockstep over ROS                g  plants in real time
d  starting times                                h  three rigid links: Pinocchio, MuJoCo, Drake
                                                 i  their free swing: the same and Exudyn
j  centres of markers: OpenCV, EdgeDrawing, AprilTag, Cramer-Rao bound
k  the same under bars, glare, motion, noise

All numbers come from one run on one machine, so that their ratios mean something. Nothing is
asserted. About six minutes on two cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NamedTuple

import bench_boom
import bench_chain
import bench_crane
import bench_ros
import bench_vision
from bench_table import Row, format_rows, machine_line


class Section(NamedTuple):
    """A group of rows that are compared with each other."""

    title: str
    rows: Callable[[bool], list[Row]]
    part: str = ''


SECTIONS = {
    'a': Section('Task B, closed loop, each within about 1e-9', bench_crane.task_b, 'motion'),
    'b': Section('Task A, nonlinear, each within about 1e-9 m', bench_crane.task_a),
    'c': Section('Lockstep over ROS, launch to exit', bench_ros.lockstep, 'of 1 s'),
    'd': Section('Starting times', bench_ros.starts),
    'e': Section(
        'Release of 90 kg by the boom, no friction, each within 1 mm', bench_boom.without_friction
    ),
    'f': Section('Release with oil, stick and slip, steps of 1 ms', bench_boom.stick_and_slip),
    'g': Section('One second of plants in real time, 1 ms steps', bench_ros.plants),
    'h': Section(
        f'Three rigid links, {bench_chain.CALLS} calls: inverse dynamics, and forward dynamics',
        bench_chain.evaluations,
        'forward',
    ),
    'i': Section(
        'Free swing of three links over 20 s, each within 1e-6 rad', bench_chain.free_swing
    ),
    'j': Section(
        'Centre of one marker, per axis and RMS, in windows of 60 to 180 px', bench_vision.centres
    ),
    'k': Section(
        'The same by what disturbs it; the share that is not trusted', bench_vision.disturbances
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the sections that were asked for and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--quick', action='store_true', help='fewer and shorter runs')
    parser.add_argument('--only', type=_letters, default=list(SECTIONS), metavar='a,b,...')
    options = parser.parse_args(arguments)
    print(f'{machine_line()}{", quick" if options.quick else ""}')
    try:
        with bench_ros.hermetic_ros():
            return run(options.only, options.quick)
    except KeyboardInterrupt:
        return 130


def run(letters: list[str], quick: bool) -> int:
    """Measure and print the sections that were asked for."""
    for letter in letters:
        section = SECTIONS[letter]
        if sys.stderr.isatty():
            print(f'({letter}) {section.title} ...', end='\r', file=sys.stderr, flush=True)
        try:
            rows = section.rows(quick)
        except bench_ros.BenchmarkError as error:
            print(f'bench: ({letter}) {error}', file=sys.stderr)
            return 1
        print(f'\n({letter}) {section.title}')
        print(format_rows(rows, section.part), flush=True)
    return 0


def _letters(text: str) -> list[str]:
    """Return the sections that ``--only`` names."""
    letters = text.split(',')
    for letter in letters:
        if letter not in SECTIONS:
            raise argparse.ArgumentTypeError(f'{letter!r}, allowed: {", ".join(SECTIONS)}')
    return letters


if __name__ == '__main__':
    sys.exit(main())
