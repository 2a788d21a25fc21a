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
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench_table import Row, Section, format_rows, machine_line

from longreach_boom.identification import BOOM, first_mode
from longreach_boom.machine import AUTOMATIC
from longreach_boom.measured_runs import CAMERAS, RunTruth, measured, truth_of
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import HangingLoad, Scenario, load_scenario
from longreach_boom.sensors import load_sensors
from longreach_boom.simulation import simulate
from longreach_dynamics.parallel import run_jobs
from longreach_identification.pipeline import identify_machine
from longreach_identification.statics import identify_statics, still_poses

SCENARIOS = Path(__file__).parents[1] / 'config' / 'scenarios'


class _Case(NamedTuple):
    """An experiment with planted parameters."""

    mass: float  # [kg]
    duration: float  # [s]
    planted: dict[str, float]


# Coulomb and static friction of the pistons [N].
_COULOMB, _STATIC = (7650.0, 6900.0, 2700.0, 1210.0), (14400.0, 8800.0, 3400.0, 1430.0)
CASES = {
    'light': _Case(3.0, 3.0, {'youngs_modulus': 1.95e11, 'beam_damping_scale': 1.4}),
    'heavy': _Case(
        90.0,
        8.0,
        {
            'youngs_modulus': 1.95e11,
            'joint_damping_scale': 0.8,
            **{f'coulomb_friction_{i}': value for i, value in enumerate(_COULOMB, 1)},
            **{f'static_friction_{i}': value for i, value in enumerate(_STATIC, 1)},
        },
    ),
}


class _Found(NamedTuple):
    """What a draw gave: processor time [s], and a row (found, true, low, high) for each value."""

    time: float
    rows: dict[str, tuple[float, float, float, float]]


def find(draw: tuple[_Case, RunTruth, int]) -> _Found:
    """Identify one draw of the noise from the installed file, in this process."""
    case, truth, seed = draw
    boom = load_boom()
    recording = measured(truth, load_sensors('typical'), CAMERAS, seed)
    mode = first_mode(BOOM.with_values(boom, case.planted), BOOM.experiment(boom, recording))
    true = case.planted | dict(zip(('first_frequency', 'first_damping_ratio'), mode, strict=True))
    started = time.process_time()
    # As the command does it.
    found = identify_machine(
        BOOM, boom, [], [recording], list(case.planted), processes=1, progress=False
    ).dynamics
    assert found is not None
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
    return _rows([*run_jobs(find, [(case, truth, seed) for seed in range(draws)])])


def at_rest(draw: tuple[list[RunTruth], dict[str, float], int]) -> _Found:
    """Identify poses at rest with one draw of biases and noise."""
    truths, planted, seed = draw
    random, sensors, boom = np.random.default_rng(seed), load_sensors('typical'), load_boom()
    drawn = {
        kind: getattr(sensors, kind).replace(
            bias=tuple((size * random.standard_normal(count)).tolist())
        )
        for kind, size, count in (('pressure', 1e5, 8), ('encoder', 3e-4, 4), ('strain', 2e-5, 4))
    }
    recordings = [
        measured(truth, sensors.replace(**drawn), seed=2 * seed + k, warmth=3.0 * k)
        for k, truth in enumerate(truths)
    ]
    started = time.process_time()
    poses, stretches = still_poses(BOOM.statics(), boom, recordings)
    estimate = identify_statics(BOOM.statics(), boom, poses, stretches=stretches).estimate
    used = time.process_time() - started
    rows = {n: (estimate.value(n), v, *estimate.interval(n)) for n, v in planted.items()}
    return _Found(used, rows)


def static_rows(wrong: str, draws: int) -> list[Row]:
    """Return how many intervals of poses at rest hold, when a dimension is wrong."""
    start = load_boom()
    E = 1.1 * start.youngs_modulus
    planted = {'youngs_modulus': E}
    for i, beam in enumerate(start.beams, 1):
        planted[f'mass_scale_{i}'] = (1.08, 0.90, 1.12, 0.88)[i - 1]
        planted[f'gauge_sensitivity_{i}'] = 1.1 * beam.strain_gauge.gain / E
    name, _, value = wrong.partition('=')
    boom = BOOM.with_values(start, planted | ({name: float(value)} if wrong else {}))
    truths = []
    for name in ('boom_static_poses', 'boom_static_poses_loaded'):
        scenario = load_scenario(SCENARIOS / f'{name}.yaml', boom)
        truths.append(truth_of(simulate(boom, scenario, AUTOMATIC), scenario, name))
    return _rows([*run_jobs(at_rest, [(truths, planted, seed) for seed in range(draws)])])


def _rows(found: list[_Found]) -> list[Row]:
    """Return a row for each value: how many intervals hold, and the largest error."""
    times = tuple(one.time for one in found)
    rows = []
    for name in found[0].rows:
        shown, true, low, high = np.array([one.rows[name] for one in found]).T
        rows.append(
            Row(
                name,
                times,
                float(np.abs(shown / true - 1.0).max()),
                note=f'{np.sum((low <= true) & (true <= high))} of {len(found)} intervals hold;'
                ' error: largest, relative',
            )
        )
    return rows


def light(quick: bool) -> list[Row]:
    """Release a load that all pistons hold."""
    return rows_of(CASES['light'], 2 if quick else 4)


SECTIONS = {'u': Section('Identification of the boom from a light release', light)}


def main() -> None:
    """Print the rows of all cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--draws', type=int, default=100)
    parser.add_argument('--case', choices=CASES, action='append')
    parser.add_argument(
        '--static',
        metavar='NAME=VALUE',
        action='append',
        default=[],
        help="poses at rest, of which a dimension is wrong, such as length_scale_3=1.01; '': none",
    )
    options = parser.parse_args()
    print(machine_line())
    for wrong in options.static:
        print(f'\nposes at rest, {wrong or "exact dimensions"}')
        print(format_rows(static_rows(wrong, options.draws)))
    for name in options.case or ([] if options.static else CASES):
        print(f'\n{name}: {CASES[name].mass:g} kg, {CASES[name].duration:g} s')
        print(format_rows(rows_of(CASES[name], options.draws)))


if __name__ == '__main__':
    main()
