"""Experiments to choose from, simulated with typical sensors: releases, and poses at rest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from longreach_boom.machine import AUTOMATIC, SAMPLE_TIME
from longreach_boom.measured_runs import CAMERAS, measured, truth_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors import load_sensors
from longreach_boom.simulation import BoomRun, simulate
from longreach_boom.state import rate_limits
from longreach_boom.statics import equilibrium
from longreach_dynamics.errors import InputError, LongreachError
from longreach_identification.machine import Recording, Signal
from longreach_machine.trajectories import Trajectory, Waypoint

# Rows of a planned recording [Hz], and kinds of sensors by the start of their signals.
_RATE = 20.0
_KINDS = {
    'inclination': 'inclination_',
    'pressure': 'p_',
    'encoder': 'piston_',
    'strain': 'strain_',
}
_EXACT = CAMERAS._replace(noise=0.0, constant=0.0)
# Motion of a piston that slips [m], and by how much noise seems larger then: what follows depends
# on when it slips, and a search may end in another minimum.
_STICKS, _SLIPPERY = 2e-4, 5.0
# Rest before a release [s], and duration after it that is compared.
_REST, _DURATION = 1.0, 8.0
# Drawn poses of releases. Poses at rest: moves and rests [s], their number, largest share of the
# supply pressure, lowest height above the root [m], range of the angles of joints [rad].
_MORE_POSES, _MOVE, _HOLD, _POSES, _FORCE, _LOWEST = 2, 25.0, 12.0, 8, 0.8, 0.0
_LIMITS = (-1.6, 1.3)
# By how much moves are slower than the fastest ones of a boom that the true one resembles.
_MARGIN = 1.1


def releases(
    boom: BoomParameters,
    poses: Sequence[tuple[float, ...]],
    masses: Sequence[float],
    duration: float = _DURATION,
) -> dict[str, tuple[Scenario, Recording]]:
    """
    Return releases in poses [deg] of masses [kg]: by name the scenario, and a recording at 20 Hz.

    Without poses in those of the file, and in drawn ones. The sensors are exact, with the
    deviations of typical ones; five times those where a piston slips.
    """
    found = {}
    drawn = () if poses else drawn_poses(boom, _MORE_POSES, max(masses))
    poses = poses or [*(pose.angles_deg for pose in boom.poses), *drawn]
    ideal, typical = load_sensors(), load_sensors('typical', boom.size)
    for pose in poses:
        for mass in masses:
            scenario = Scenario(
                duration=duration + _REST,
                pose_deg=pose,
                loads=(HangingLoad(mass=mass),),
                release=(_REST,),
            )
            name = f'{mass:g} kg at ' + ' '.join(f'{angle:g}' for angle in pose)
            run = _run(boom, scenario, name)
            slips = bool(np.ptp(run.columns_like('piston'), axis=0).max() > _STICKS)
            name += ' (slips)' if slips else ''
            exact = measured(truth_of(run, scenario, name), ideal, _EXACT)
            # Noise of fewer rows that are means of more.
            signals = {}
            for signal, shown in exact.signals.items():
                kind = next((k for k, start in _KINDS.items() if signal.startswith(start)), '')
                every = 1
                deviation = CAMERAS.noise
                if kind:
                    sensor = getattr(typical, kind)
                    every = round(1.0 / (_RATE * SAMPLE_TIME))
                    count = (sensor.rate or 1.0 / SAMPLE_TIME) / _RATE
                    deviation = math.hypot(sensor.noise, sensor.step / math.sqrt(12.0))
                    deviation /= math.sqrt(count)
                deviation *= _SLIPPERY if slips else 1.0
                times = shown.times[::every]
                signals[signal] = Signal(
                    times, shown.values[::every], np.full(times.size, deviation)
                )
            found[name] = (scenario, exact._replace(signals=signals))
    return found


def poses_at_rest(
    boom: BoomParameters, mass: float, count: int = _POSES, seed: int = 1
) -> tuple[list[Scenario], list[Recording]]:
    """Return scenarios and recordings of drawn poses, without and with a mass [kg]."""
    poses = drawn_poses(boom, count, mass, seed)
    sensors = load_sensors('typical', boom.size)
    shown = np.repeat([*poses, poses[0]], 2, axis=0)[1 : 2 * count + 2]
    spans = np.array([_HOLD, *([_MOVE, _HOLD] * count)])
    way = Trajectory(np.cumsum(spans), np.radians(shown))
    shares = way.rate_shares(lambda angles: rate_limits(boom, angles))
    spans[1:] = np.ceil(spans[1:] * np.maximum(1.0, _MARGIN * shares))
    times = np.cumsum(spans)
    path = tuple(
        Waypoint(time=float(time), angles_deg=tuple(angles.tolist()))
        for time, angles in zip(times, shown, strict=True)
    )
    scenarios, recordings = [], []
    for number, loads in enumerate(((), (HangingLoad(mass=mass),))):
        name = f'{count} poses at rest' + (f' with {mass:g} kg' if loads else '')
        scenario = Scenario(
            duration=float(times[-1]), pose_deg=poses[0], trajectory=path, loads=loads
        )
        truth = truth_of(_run(boom, scenario, name), scenario, name)
        scenarios.append(scenario)
        recordings.append(measured(truth, sensors, seed=number))
    return scenarios, recordings


def drawn_poses(
    boom: BoomParameters, count: int, mass: float, seed: int = 1
) -> list[tuple[float, ...]]:
    """Return joint angles [deg] of poses in which a boom can hold a mass [kg] at its tip."""
    random = np.random.default_rng(seed)
    low, high = np.clip(boom.joint_limits(), *_LIMITS).T
    reach = 0.05 * (high - low)
    loads = (HangingLoad(mass=mass).on(boom),)
    most = _FORCE * boom.oil.supply_pressure
    found: list[tuple[float, ...]] = []
    for _ in range(1000):
        angles = np.radians(np.round(np.degrees(random.uniform(low + reach, high - reach))))
        heights = np.cumsum([b.length for b in boom.beams] * np.sin(np.cumsum(angles)))
        if heights.min() < _LOWEST:
            continue
        try:
            rest = equilibrium(boom, angles, loads)
        except LongreachError:
            continue
        if max(rest.head_pressures.max(), rest.rod_pressures.max()) < most:
            found.append(tuple(np.round(np.degrees(angles)).tolist()))
        if len(found) == count:
            return found
    raise InputError(
        f'{len(found)} of {count} poses were found in which {mass:g} kg can be held; give --pose,'
        ' or a smaller mass'
    )


def _run(boom: BoomParameters, scenario: Scenario, name: str) -> BoomRun:
    """Simulate; raises LongreachError."""
    run = simulate(boom, scenario, AUTOMATIC)
    if run.message:
        raise LongreachError(f'{name}: {run.message}')
    return run
