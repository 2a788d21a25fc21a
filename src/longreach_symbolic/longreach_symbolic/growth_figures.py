"""The figure of ``longreach symbolic growth``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from longreach_tools.output import figure, legend

# Table 1 of the paper, for 1 to 5 links [s].
_PAPER = (0.36, 0.92, 4.21, 21.3, 114.6)
_PAPER_TRADITIONAL = (41.63, 106.28, 212.57, 365.28, 1316.45)


def plot_growth(file: Path, rows: Sequence[Mapping[str, float]]) -> None:
    """Draw processor times [s] and operations by the number of links."""
    links = [row['links'] for row in rows]
    with figure(file, (7.0, 6.0), rows=2) as (times, operations):
        printed = range(1, len(_PAPER) + 1)
        times.plot(printed, _PAPER_TRADITIONAL, '^--', color='0.6', label='paper, traditional')
        times.plot(printed, _PAPER, 'v--', color='0.35', label='paper')
        times.plot(
            links, [r['derived'] + r['written'] for r in rows], 's-', label='reduced form, as C'
        )
        times.plot(links, [r['derived'] for r in rows], 'o-', label='reduced form')
        times.set_yscale('log')
        times.set_ylabel('time [s]')
        legend(times, 4)
        operations.plot(links, [r['written_out'] for r in rows], 's-', label='written out')
        operations.plot(links, [r['operations'] for r in rows], 'o-', label='after cse')
        operations.set_yscale('log')
        operations.set_ylabel('operations')
        operations.set_xlabel('links')
        legend(operations, 2)
