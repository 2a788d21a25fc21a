"""
Measure the speed of Longreach and of alternatives to it; called by ``make bench``.

    bench.py [--quick] [--only a,b,...]

The sections are those of the files ``bench_*.py`` in this directory: each may have ``SECTIONS``,
by letter, and ``PLANTS``, launches whose processor time is measured, by name. All numbers come
from one run on one machine, so that their ratios are comparable. Nothing is asserted. About 8
minutes on two cores.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

import bench_ros
from bench_table import Section, format_rows, machine_line


def collect(directory: Path) -> dict[str, Section]:
    """Return the sections of all files ``bench_*.py`` by letter; add their plants to bench_ros."""
    sections: dict[str, Section] = {}
    for file in sorted(directory.glob('bench_*.py')):
        module = importlib.import_module(file.stem)
        found: dict[str, Section] = getattr(module, 'SECTIONS', {})
        if twice := sections.keys() & found.keys():
            raise ValueError(f'{file}: sections {sorted(twice)} exist; choose other letters')
        sections |= found
        bench_ros.PLANTS.update(getattr(module, 'PLANTS', {}))
    return dict(sorted(sections.items()))


SECTIONS = collect(Path(__file__).parent)


def main(arguments: list[str] | None = None) -> int:
    """Run the selected sections and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog='\n'.join(f'{letter}  {section.title}' for letter, section in SECTIONS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    """Measure and print the selected sections."""
    for letter in letters:
        section, begun = SECTIONS[letter], time.monotonic()
        if sys.stderr.isatty():
            print(f'({letter}) {section.title} ...', end='\r', file=sys.stderr, flush=True)
        try:
            rows = section.rows(quick)
        except bench_ros.BenchmarkError as error:
            print(f'bench: ({letter}) {error}', file=sys.stderr)
            return 1
        print(f'\n({letter}) {section.title}; measured in {time.monotonic() - begun:.0f} s')
        print(format_rows(rows, section.part), flush=True)
    return 0


def _letters(text: str) -> list[str]:
    """Return the letters of ``--only``."""
    letters = text.split(',')
    for letter in letters:
        if letter not in SECTIONS:
            raise argparse.ArgumentTypeError(f'{letter!r}, allowed: {", ".join(SECTIONS)}')
    return letters


if __name__ == '__main__':
    sys.exit(main())
