"""
Recordings of simulated runs, also of experiments to choose from: what sensors and cameras show.

The truth of a run is computed once, and noise, that of :mod:`longreach_machine.sensors` in
another sequence than the plant node's, is drawn as often as needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longreach_boom.kinematics import point_motion, truck_frame
from longreach_boom.machine import AUTOMATIC, SAMPLE_TIME, STEP
from longreach_boom.model import Load
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors import SensorParameters, load_sensors
from longreach_boom.simulation import BoomRun, simulate
from longreach_boom.state import StateParts, rate_limits, truck_of
from longreach_boom.statics import Equilibrium, equilibrium
from longreach_dynamics.errors import InputError, LongreachError, check_among
from longreach_identification.machine import Recording, Signal
from longreach_machine.machine import check_rows
from longreach_machine.sensors import SensorGroup
from longreach_machine.trajectories import Trajectory, Waypoint


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
# Rows of a planned recording [Hz].
_RATE = 20.0
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


class RunTruth(NamedTuple):
    """True values of all signals of a run, at the samples of its plant."""

    name: str
    times: np.ndarray  # (rows,) [s]
    kinds: dict[str, tuple[tuple[str, ...], np.ndarray]]  # by kind: names and (rows, names)
    events: tuple[tuple[float, str], ...]
    conditions: dict[str, float]


def simulated(
    boom: BoomParameters,
    scenario: Scenario,
    name: str,
    step: float = AUTOMATIC,
    *,
    progress: bool = False,
) -> RunTruth:
    """Simulate; return the true signals; LongreachError for a run that ends early."""
    run = simulate(boom, scenario, step, progress=progress)
    if run.message:
        raise LongreachError(f'{name}: {run.message}')
    return truth_of(run, scenario, name)


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
        check_among(f'{recording.name}: condition', name, known)
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
    truth = simulated(boom, scenario, name, STEP, progress=True)
    shown = measured(truth, sensors, seed=seed)
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
        warm = warmth + np.array([sensors.temperature.at(time) for time in times.tolist()])
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
            truth = simulated(boom, scenario, name)
            slips = bool(np.ptp(truth.kinds['encoder'][1], axis=0).max() > _STICKS)
            name += ' (slips)' if slips else ''
            exact = measured(truth._replace(name=name), ideal, _EXACT)
            signals = {}
            for kind, (names, _) in truth.kinds.items():
                every, deviation = 1, CAMERAS.noise
                if sensor := getattr(typical, kind, None):
                    # Noise of fewer rows that are means of more.
                    every = round(1.0 / (_RATE * SAMPLE_TIME))
                    count = (sensor.rate or 1.0 / SAMPLE_TIME) / _RATE
                    deviation = math.hypot(sensor.noise, sensor.step / math.sqrt(12.0))
                    deviation /= math.sqrt(count)
                deviation *= _SLIPPERY if slips else 1.0
                for signal in names:
                    times, values = (part[::every] for part in exact.signals[signal][:2])
                    signals[signal] = Signal(times, values, np.full(times.size, deviation))
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
        scenarios.append(scenario)
        truth = simulated(boom, scenario, name)
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
