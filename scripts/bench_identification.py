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
from longreach_boom.load_experiments import experiment_of, first_mode
from longreach_boom.measured_runs import CAMERAS, measured, truth_of
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors import default_file, load_sensors
from longreach_boom.simulation import simulate
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


def rows_of(case: _Case, draws: int) -> list[Row]:
    """Identify draws of noise and return a row for each planted value and the first mode."""
    boom = load_boom()
    planted = BOOM.with_values(boom, case.planted)
    scenario = Scenario(
        duration=case.duration + 0.5,
        pose='site',
        loads=(HangingLoad(mass=case.mass),),
        release=(0.5,),
    )
    truth = truth_of(simulate(planted, scenario), scenario)
    sensors = load_sensors(default_file().parent / 'sensors_typical.yaml')
    true = dict(case.planted)
    errors: dict[str, list[float]] = {}
    inside: dict[str, int] = {}
    times = []
    for seed in range(draws):
        recording = measured(truth, sensors, CAMERAS, seed)
        mode = first_mode(planted, experiment_of(boom, recording))
        true |= dict(zip(('first_frequency', 'first_damping_ratio'), mode, strict=True))
        started = time.perf_counter()
        found = identify(
            BOOM, boom, [recording], list(case.planted),
            signals=['strain_*', 'inclination_tip_*', 'marker_marker_*', 'piston_*', 'p_*'],
            horizons=(), scatter=case.scatter, progress=None,
        )  # fmt: skip
        times.append(time.perf_counter() - started)
        for name, value in true.items():
            if name in found.derived:
                shown, error = found.derived[name]
                low, high = shown - 1.96 * error, shown + 1.96 * error
            else:
                shown = found.estimate.value(name)
                low, high = found.estimate.interval(name)
            errors.setdefault(name, []).append(shown / value - 1.0)
            inside[name] = inside.get(name, 0) + (low <= value <= high)
    return [
        Row(
            name,
            tuple(times),
            float(np.abs(found_errors).max()),
            note=f'{inside[name]} of {draws} intervals hold; error: largest, relative',
        )
        for name, found_errors in errors.items()
    ]


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
