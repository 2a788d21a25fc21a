"""
Benchmark of the identification: errors, and how often intervals hold the planted values.

    bench_identification.py [--draws 100]

One run of a boom with planted parameters, and many draws of the noise of typical sensors and of
cameras. A light load falls from the tip, which all pistons hold, or one of 90 kg, with which they
slip. Each draw is identified from the installed file.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
from bench_table import Row, Section, format_rows, machine_line

from longreach_boom.identification import BOOM
from longreach_boom.load_experiments import first_mode
from longreach_boom.measured_runs import CAMERAS, RunTruth, measured, truth_of
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors import load_sensors
from longreach_boom.simulation import simulate
from longreach_dynamics.parallel import run_jobs
from longreach_identification.dynamics import identify


class _Case(NamedTuple):
    """An experiment with planted parameters."""

    mass: float  # [kg]
    duration: float  # [s]
    planted: dict[str, float]
    scatter: int


CASES = {
    'light': _Case(3.0, 3.0, {'youngs_modulus': 1.95e11, 'beam_damping_scale': 1.4}, 0),
    'heavy': _Case(
        90.0,
        4.0,
        {
            'youngs_modulus': 1.95e11,
            'beam_damping_scale': 1.3,
            'joint_damping_scale': 0.8,
            'bulk_modulus': 1.25e9,
        },
        40,
    ),
}


class _Draw(NamedTuple):
    """One draw of the noise, and what was simulated."""

    case: _Case
    truth: RunTruth
    seed: int


class _Found(NamedTuple):
    """What a draw gave: processor time [s], and a row (found, true, low, high) for each value."""

    time: float
    rows: dict[str, tuple[float, float, float, float]]


def find(draw: _Draw) -> _Found:
    """Identify one draw of the noise from the installed file, in this process."""
    boom = load_boom()
    case = draw.case
    recording = measured(draw.truth, load_sensors('typical'), CAMERAS, draw.seed)
    mode = first_mode(BOOM.with_values(boom, case.planted), BOOM.experiment(boom, recording))
    true = case.planted | dict(zip(('first_frequency', 'first_damping_ratio'), mode, strict=True))
    started = time.process_time()
    found = identify(
        BOOM, boom, [recording], list(case.planted),
        signals=['strain_*', 'inclination_tip_*', 'marker_marker_*', 'piston_*', 'p_*'],
        horizons=(), scatter=case.scatter, processes=1, progress=None,
    )  # fmt: skip
    used = time.process_time() - started
    rows = {}
    for name, value in true.items():
        if name in found.derived:
            shown, error = found.derived[name]
            low, high = shown - 1.96 * error, shown + 1.96 * error
        else:
            shown = found.estimate.value(name)
            low, high = found.estimate.interval(name)
        rows[name] = (shown, value, low, high)
    return _Found(used, rows)


def rows_of(case: _Case, draws: int) -> list[Row]:
    """Identify draws of noise and return a row for each planted value and the first mode."""
    scenario = Scenario(
        duration=case.duration + 0.5,
        pose='site',
        loads=(HangingLoad(mass=case.mass),),
        release=(0.5,),
    )
    truth = truth_of(simulate(BOOM.with_values(load_boom(), case.planted), scenario), scenario)
    found = run_jobs(find, [_Draw(case, truth, seed) for seed in range(draws)])
    times = tuple(one.time for one in found)
    rows = []
    for name in found[0].rows:
        shown, true, low, high = np.array([one.rows[name] for one in found]).T
        rows.append(
            Row(
                name,
                times,
                float(np.abs(shown / true - 1.0).max()),
                note=f'{np.sum((low <= true) & (true <= high))} of {draws} intervals hold;'
                ' error: largest, relative',
            )
        )
    return rows


def light(quick: bool) -> list[Row]:
    """Release a load that all pistons hold."""
    return rows_of(CASES['light'], 2 if quick else 20)


SECTIONS = {'u': Section('Identification of the boom from a light release', light)}


def main() -> None:
    """Print the rows of all cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--draws', type=int, default=100)
    parser.add_argument('--case', choices=CASES, action='append')
    options = parser.parse_args()
    print(machine_line())
    for name in options.case or CASES:
        print(f'\n{name}: {CASES[name].mass:g} kg, {CASES[name].duration:g} s')
        print(format_rows(rows_of(CASES[name], options.draws)))


if __name__ == '__main__':
    main()
