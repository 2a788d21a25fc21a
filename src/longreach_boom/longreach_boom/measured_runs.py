"""
Recordings of simulated runs: what sensors and cameras would have shown, without ROS.

The truth of a run is computed once, and noise, that of :mod:`longreach_machine.sensors` in
another sequence than the plant node's, is drawn as often as needed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from longreach_boom.kinematics import point_motion, truck_frame
from longreach_boom.model import Load
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors import SensorParameters
from longreach_boom.simulation import BoomRun, simulate
from longreach_boom.state import StateParts, truck_of
from longreach_boom.statics import Equilibrium, equilibrium
from longreach_dynamics.errors import InputError, LongreachError
from longreach_identification.machine import Recording, Signal
from longreach_machine.machine import check_rows
from longreach_machine.sensors import SensorGroup


class MarkerErrors(NamedTuple):
    """Errors of marker positions from two cameras: of images, and of the cameras' poses."""

    rate: float  # images per second [Hz]
    noise: float  # standard deviation, independent in each image [m]
    constant: float = 0.0  # standard deviation of the constant error of a coordinate [m]


EVENTS = ('release', 'attach')
# Positions up to this share of a beam's length are at its tip.
_TIP = 1.01
# Triangulated by the installed rig; poses from eight points, measured to 3 mm: docs/vision.md.
CAMERAS = MarkerErrors(rate=15.0, noise=2e-4, constant=3.3e-3)


class RunTruth(NamedTuple):
    """True values of all signals of a run, at the samples of its plant."""

    name: str
    times: np.ndarray  # (rows,) [s]
    kinds: dict[str, tuple[tuple[str, ...], np.ndarray]]  # by kind: names and (rows, names)
    events: tuple[tuple[float, str], ...]
    conditions: dict[str, float]


def truth_of(run: BoomRun, scenario: Scenario, name: str = 'run') -> RunTruth:
    """Return the true signals of a run; InputError for loads that no recording can state."""
    boom, times = run.parameters, run.column('time')
    if len(times) < 2:
        raise InputError(f'run {name!r} has {len(times)} rows, allowed: at least 2; {run.message}')
    parts, truck = StateParts.of(run.states, boom), truck_of(run.states, boom)
    numbers = range(1, boom.size + 1)
    inclinations = [
        point_motion(boom, parts.q, parts.v, i, x, truck=truck).inclination
        for place in (0.0, 1.0)
        for i, x in enumerate(place * beam.length for beam in boom.beams)
    ]
    markers: list[np.ndarray] = []
    for marker in boom.markers:
        if marker.beam:
            beam = boom.beam_index(marker.beam)
            motion = point_motion(
                boom, parts.q, parts.v, beam, marker.position, marker.offset, truck
            )
            markers += [motion.position[:, 0], motion.position[:, 1]]
        else:
            root = truck_frame(boom, None if truck is None else truck.T)
            place = root.origin + root.turn * complex(marker.position, marker.offset)
            markers += [np.broadcast_to(part, times.shape) for part in (place.real, place.imag)]
    kinds = {
        'inclination': (
            tuple(f'inclination_{end}_{i}' for end in ('root', 'tip') for i in numbers),
            np.stack(inclinations, axis=1),
        ),
        'pressure': (
            tuple(f'p_{side}_{i}' for side in ('head', 'rod') for i in numbers),
            np.hstack([parts.head_pressures, parts.rod_pressures]),
        ),
        'encoder': (tuple(f'piston_{i}' for i in numbers), run.columns_like('piston')),
        'strain': (tuple(f'strain_{i}' for i in numbers), run.columns_like('strain')),
        'markers': (
            tuple(f'marker_{m.name}_{axis}' for m in boom.markers for axis in 'xz'),
            np.reshape(np.array(markers).T, (len(times), -1)),
        ),
    }
    releases = [(time, 'release') for time in scenario.release]
    attached = [(item.time, 'attach') for item in scenario.attach]
    events = tuple(sorted([*releases, *attached]))
    return RunTruth(name, times, kinds, events, _conditions(boom, scenario))


def _conditions(boom: BoomParameters, scenario: Scenario) -> dict[str, float]:
    """Return the payload of a scenario."""
    carried = scenario.carried(boom)
    loads = {load for _, own in carried for load in own}
    if len(loads) > 1 or any(len(own) > 1 for _, own in carried):
        raise InputError(
            'the scenario has several loads, allowed for a recording: one mass at one place'
        )
    if not loads:
        return {'payload': 0.0}
    (load,) = loads
    return {
        'payload': load.mass,
        'payload_beam': float(load.beam + 1),
        'payload_position': load.position,
    }


def payload_of(boom: BoomParameters, recording: Recording) -> HangingLoad | None:
    """Return the load that conditions tell (docs/identification.md); InputError for others."""
    known, given = ('payload', 'payload_beam', 'payload_position'), recording.conditions
    for name in given:
        if name not in known:
            raise InputError(f'{recording.name}: condition {name!r}, allowed: {", ".join(known)}')
    number = given.get('payload_beam', float(boom.size))
    if number not in range(1, boom.size + 1):
        raise InputError(f'{recording.name}: payload_beam = {number:g}, allowed: 1 to {boom.size}')
    mass, beam = given.get('payload', 0.0), boom.beams[int(number) - 1]
    if not mass >= 0.0:
        raise InputError(
            f'{recording.name}: payload = {mass:g} kg, allowed: 0 kg or more; give the mass,'
            f' --payload {recording.name}=MASS'
        )
    if mass == 0.0:
        return None
    position = given.get('payload_position')
    # At the tip, also when an identification has found the beam a little shorter.
    if position is not None and beam.length <= position <= _TIP * beam.length:
        position = None
    return HangingLoad(mass=mass, beam=beam.name, position=position)


def resting(
    boom: BoomParameters, name: str, angles: np.ndarray, loads: tuple[Load, ...]
) -> Equilibrium:
    """Return the equilibrium that a recording shows; InputError for beams that are too weak."""
    try:
        return equilibrium(boom, angles, loads)
    except LongreachError as error:
        raise InputError(
            f'{name}: payload = {sum(load.mass for load in loads):g} kg: {error}; is the mass'
            f' right, --payload {name}=MASS?'
        ) from error


def readings(
    boom: BoomParameters,
    scenario: Scenario,
    sensors: SensorParameters,
    seed: int | None = None,
    rate: float = 20.0,
    name: str = 'run',
) -> dict[str, np.ndarray]:
    """Simulate; return ``time`` [s] and latest readings in each of ``rate`` rows per second."""
    rows = math.floor(scenario.duration * rate + 1e-9) + 1
    check_rows(rows, 6 * boom.size + 1, f'rate = {rate:g} Hz', 'lower the rate or the duration')
    run = simulate(boom, scenario, progress=True)
    if run.message:
        raise LongreachError(run.message)
    shown = measured(truth_of(run, scenario, name), sensors, seed=seed)
    times = np.arange(rows) / rate
    columns = {'time': times}
    for signal, (at, values, _) in shown.signals.items():
        latest = np.searchsorted(at, times + 1e-9, side='right') - 1
        columns[signal] = values[np.maximum(latest, 0)]
    return columns


def measured(
    truth: RunTruth,
    sensors: SensorParameters,
    markers: MarkerErrors | None = None,
    seed: int | None = None,
    warmth: float = 0.0,
) -> Recording:
    """
    Return what sensors and cameras show of a run; no markers without their errors.

    ``seed`` is that of the noise (default: the sensor file's), ``warmth`` a temperature above that
    of the sensor file [K]. InputError when rates or the number of biases do not match.
    """
    random = np.random.default_rng(sensors.seed if seed is None else seed)
    interval = (truth.times[-1] - truth.times[0]) / (len(truth.times) - 1)
    unknown = np.array(np.nan)
    signals: dict[str, Signal] = {}
    for index, kind in enumerate(('inclination', 'pressure', 'encoder', 'strain')):
        names, values = truth.kinds[kind]
        parameters = getattr(sensors, kind)
        group = SensorGroup(kind, parameters, len(names), (sensors.seed, index), 1.0 / interval)
        times = truth.times[:: group.every]
        profile = sensors.temperature
        warm = (
            warmth
            + profile.offset
            + profile.amplitude * np.sin(2.0 * np.pi * times / profile.period)
        )
        shown = group.show_many(values[:: group.every], warm, random)
        for column, name in enumerate(names):
            deviation = np.broadcast_to(unknown, times.shape)
            signals[name] = Signal(times, shown[:, column], deviation)
    if markers is not None:
        names, values = truth.kinds['markers']
        first, last = truth.times[0], truth.times[-1]
        count = int((last - first) * markers.rate + 1e-9) + 1
        times = first + np.arange(count) / markers.rate
        for column, name in enumerate(names):
            shown = np.interp(times, truth.times, values[:, column])
            shown += markers.constant * random.standard_normal()
            shown += markers.noise * random.standard_normal(count)
            deviation = np.full(count, markers.noise)
            signals[name] = Signal(times, shown, deviation)
    return Recording(truth.name, signals, truth.events, truth.conditions)
