"""
Benchmark of the damping of vibrations: the boom with hydraulics, friction, sensors and delays.

Each case is run with each controller. The plant has three Ritz functions a beam, the model of the
controllers two. Sensors: encoders, pressures and gyroscopes with noise, bias and quantisation; a
command takes effect after a delay with jitter, and a later one never before an earlier one.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from longreach_boom.kinematics import point_motion
from longreach_boom.machine import Boom, longest_step
from longreach_boom.model import constants_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.sensors import tip_rates
from longreach_boom.state import BoomState, StateParts, piston_positions
from longreach_control.cases import ENDS, RATES, START, Case, believed_loads, scenario_of
from longreach_control.controller import DampingController, Measured, Wanted
from longreach_control.modal import ModalFeedback
from longreach_control.plant import Plant, Situation, relief_settings
from longreach_control.predictive import PredictiveControl
from longreach_control.pressure import PressureFeedback
from longreach_control.shaping import InputShaping
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.linkages import pistons_and_arms
from longreach_machine.sensors import SensorGroup, SensorKind

SAMPLE_TIME, DELAY, JITTER = 0.01, 0.05, 0.01  # [s]
FUNCTIONS, BELIEVED_FUNCTIONS = 3, 2
# Length of runs [s], and of those without control.
DURATION, ALONE = 20.0, 60.0
# Of the vibration without control at which it counts as settled.
_SETTLED = 0.1
# What counts as settled in any case [m]: below, friction holds the pistons.
_FLOOR = 0.01
# Cycles over which a mean of the tip is taken, 3 s.
_WINDOW = round(3.0 / SAMPLE_TIME) // 2 * 2 + 1
# Extremes of a vibration that count, as a share of the first one.
_LEAST = 0.1
# Of encoders [m], pressures [Pa] and gyroscopes [rad/s], without the biases; largest biases.
_ENCODER = SensorKind(None, 0.0, (), (), 5e-5), 4e-4
_PRESSURE = SensorKind(None, 2e4, (), (), 9.8e3), 1.5e5
_GYROSCOPE = SensorKind(None, 2e-3, (), (), 1e-4), 3e-3
_KINDS = (_ENCODER, _PRESSURE, _PRESSURE, _GYROSCOPE)
# By how much a joint may leave its angle before a run counts as unstable [rad].
_RUNAWAY = 0.5


class NoDamping(DampingController):
    """Valves follow the operator, without regard to vibration."""

    def velocities(self, measured: Measured, wanted: Wanted) -> np.ndarray:  # noqa: ARG002
        """Return what the operator asks for."""
        return wanted.velocities.copy()


CONTROLLERS: Mapping[str, Callable[[Situation], DampingController]] = {
    'none': NoDamping,
    'shaping': InputShaping,
    'pressure': PressureFeedback,
    'modal': ModalFeedback,
    'predictive': PredictiveControl,
}


class Trace(NamedTuple):
    """A run of a case."""

    time: np.ndarray  # (cycles,) [s]
    tip: np.ndarray  # (cycles, 2) [m]
    mode: np.ndarray  # (cycles,) speed of the tip by the first mode, over its frequency [m]
    pistons: np.ndarray  # (cycles, N) [m]
    pressures: np.ndarray  # (cycles, 2 N) [Pa]
    spools: np.ndarray  # (cycles, N)
    astray: np.ndarray  # (cycles,) largest deviation of a joint from its wanted angle [rad]
    error: str  # why it ended early, or ''


def read(boom: BoomParameters, state: BoomState) -> Measured:
    """Return what sensors without errors show of a state."""
    parts, N = StateParts.of(state.y, boom), boom.size
    return Measured(
        piston_positions(parts.q[:N], constants_of(boom)),
        parts.head_pressures,
        parts.rod_pressures,
        tip_rates(boom, state),
    )


class _Sensors:
    """Readings with errors drawn from a seed."""

    def __init__(self, boom: BoomParameters, seed: int) -> None:
        self._boom, self._groups = boom, []
        random = np.random.default_rng(seed)
        for place, (kind, most) in enumerate(_KINDS):
            own = kind.replace(bias=tuple(random.uniform(-most, most, boom.size).tolist()))
            name = Measured._fields[place]
            group = SensorGroup(name, own, boom.size, (seed, place), 1.0 / SAMPLE_TIME)
            self._groups.append(group)

    def read(self, state: BoomState, cycle: int) -> Measured:
        """Return the readings of a state in a cycle."""
        truths = zip(self._groups, read(self._boom, state), strict=True)
        return Measured(*(group.show(truth, 0.0, cycle) for group, truth in truths))


def run_case(
    case: Case,
    boom: BoomParameters,
    controller: Callable[[Situation], DampingController],
    duration: float = DURATION,
) -> Trace:
    """
    Run a case with a controller for a duration [s], or up to where the boom can be simulated.

    ``controller`` takes a :class:`Situation` and returns an object with the method ``cycle`` of
    :class:`DampingController`.
    """
    N, T = boom.size, SAMPLE_TIME
    true = boom.replace(ritz=boom.ritz.replace(functions=FUNCTIONS))
    believed = boom.replace(ritz=boom.ritz.replace(functions=BELIEVED_FUNCTIONS))
    scenario = scenario_of(case, duration)
    machine = Boom(true, scenario, longest_step(true, scenario, T))
    state = machine.initial_state()
    angles = np.array(case.posture.angles)
    control = controller(Situation(believed, angles, believed_loads(case, believed), T, DELAY))
    sensors = _Sensors(true, case.posture.seed)
    random = np.random.default_rng([case.posture.seed, 1])
    shape = _first_mode(case, true)
    pending: list[tuple[int, np.ndarray]] = []
    command = np.zeros(N)
    cycles = round(duration / T)
    rows, astray = np.empty((cycles, state.y.size)), np.empty(cycles)
    error, done = '', 0
    linkage = machine.constants(()).linkage
    moving = case.disturbance == 'stop'
    wanted_angles, rest = angles.copy(), np.zeros(N)
    for k in range(cycles):
        rows[k], done = state.y, k + 1
        astray[k] = np.abs(state.y[:N] - wanted_angles).max()
        if astray[k] > _RUNAWAY:
            error = 'a joint has left its angle by more than half a radian'
            break
        rates = rest
        if moving and START <= k * T < ENDS['stop']:
            rates = np.concatenate([RATES, np.zeros(N)])[:N]
            wanted_angles = wanted_angles + rates * T
        (targets,), (arms,) = pistons_and_arms(linkage, wanted_angles[None])
        wanted = Wanted(targets, arms * rates)
        spools = _checked(control.cycle(sensors.read(state, k), wanted), N)
        if not np.abs(spools).max() <= 1.0:
            error = f'the controller commands spools {spools}, allowed: [-1, 1]'
            break
        due = k + round((DELAY + random.uniform(-JITTER, JITTER)) / T)
        # A later command never acts before an earlier one.
        pending.append((max(due, pending[-1][0]) if pending else due, spools))
        while pending and pending[0][0] <= k:
            command = pending.pop(0)[1]
        try:
            state = machine.advance(state, tuple(command.tolist()), k * T, T)
        except LongreachError as problem:
            error = str(problem).partition('. To see')[0]
            break
    parts = StateParts.of(rows[:done], true)
    tip = point_motion(true, parts.q, parts.v, N - 1, true.beams[-1].length)
    return Trace(
        T * np.arange(done),
        tip.position,
        parts.v @ shape,
        piston_positions(parts.q[:, :N], machine.constants(())),
        np.hstack([parts.head_pressures, parts.rod_pressures]),
        parts.spools,
        astray[:done],
        error,
    )


def _checked(spools: Any, size: int) -> np.ndarray:
    """Return commanded spools (size,); InputError for something else."""
    try:
        # A copy: some return the same array in each cycle.
        found = np.array(spools, dtype=None if np.iscomplexobj(spools) else float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (size,) or np.iscomplexobj(found):
        raise InputError(f'a controller commands {spools!r}, allowed: {size} real numbers')
    return found


def _first_mode(case: Case, boom: BoomParameters) -> np.ndarray:
    """Return the row that gives the first mode's amplitude at the tip [m] from q'."""
    plant = Plant.of(Situation(boom, np.array(case.posture.angles), believed_loads(case, boom)))
    frequencies, vectors = plant.modes()
    reach = float(np.linalg.norm(plant.tip @ vectors[:, 0]))
    return np.asarray(np.linalg.inv(vectors)[0] * reach / (2.0 * math.pi * frequencies[0]))


class Measures(NamedTuple):
    """What a run with a controller gave."""

    damping: float  # ratio of the first mode after the disturbance
    settling: float  # time from the end of the disturbance until the vibration is small [s]
    tip_rms: float  # of the vibration of the tip [m]
    pressure: float  # highest [Pa]
    valve_travel: float  # of all spools, over the run
    astray: float  # largest deviation of a joint from its wanted angle in the last second [rad]
    violations: int  # chambers beyond their relief pressure, pistons at an end of the stroke
    error: str


def measure(trace: Trace, boom: BoomParameters, end: float, least: float) -> Measures:
    """Return the measures of a run; of a disturbance until ``end`` [s], settled: ``least`` [m]."""
    after = trace.time >= end
    ratio = damping_ratio(trace.mode[after], _FLOOR)
    swing = vibration(trace, end)[trace.time >= START]
    override = [c.relief.override if c.relief else 0.0 for c in boom.cylinders]
    relief = (relief_settings(boom) + override).ravel()
    strokes = np.array([c.stroke for c in boom.cylinders])
    beyond = (trace.pressures > relief).any(axis=0).sum()
    beyond += ((trace.pistons <= 0.0) | (trace.pistons >= strokes)).any(axis=0).sum()
    return Measures(
        ratio,
        math.inf if trace.error else settling_time(trace.tip[after], least),
        float(np.sqrt(np.mean(swing**2))) if swing.size else math.nan,
        float(trace.pressures.max()),
        float(np.abs(np.diff(trace.spools, axis=0)).sum()),
        float(trace.astray[-round(1.0 / SAMPLE_TIME) :].mean()),
        int(beyond),
        trace.error,
    )


def vibration(trace: Trace, end: float) -> np.ndarray:
    """Return how far the tip is from its mean over some seconds (cycles,) [m]."""
    # Means are straight lines within the time before, during or after a disturbance that ends at
    # ``end``: an operator's motion that stops and a load that falls move the tip without
    # vibration.
    cuts = np.searchsorted(trace.time, np.unique([START, end]) - 0.5 * SAMPLE_TIME)
    return np.concatenate([_away(part) for part in np.split(trace.tip, cuts)])


def _away(tip: np.ndarray) -> np.ndarray:
    """Return the distances of the tip from straight lines through the window around [m]."""
    from scipy.signal import savgol_filter

    length = min(_WINDOW, (len(tip) - 1) // 2 * 2 + 1)
    if length < 3:
        return np.zeros(len(tip))
    lines = savgol_filter(tip, length, 1, axis=0, mode='interp')
    return np.asarray(np.linalg.norm(tip - lines, axis=1))


def settling_time(tip: np.ndarray, least: float) -> float:
    """Return the time [s] from which the tip stays within ``least`` [m] of its mean, or inf."""
    # Of the mean over the window around nothing lies before that time: a tip that moves to another
    # place and rests there vibrates no longer than it moves.
    half, last = _WINDOW // 2, len(tip) - _WINDOW
    loud = np.flatnonzero(_away(tip)[half:] > least)
    for first in range(int(loud[-1]) + 1 if loud.size else 0, last + 1):
        window = tip[first : first + _WINDOW]
        if (np.linalg.norm(window[:half] - window.mean(axis=0), axis=1) <= least).all():
            return first * SAMPLE_TIME
    return math.inf


def threshold(alone: Trace, end: float) -> float:
    """Return the vibration that counts as settled [m], from a run without control."""
    return max(_FLOOR, _SETTLED * float(vibration(alone, end).max()))


def damping_ratio(rate: np.ndarray, least: float = 0.0, most: int = 12) -> float:
    """
    Return the damping ratio by the logarithmic decrement of the extremes of a vibration's rate.

    Extremes count down to a tenth of the first one, and to ``least``, below which friction and
    noise matter; NaN where already the first one is below twice that. Where the second one does
    not count, the ratio is at least what is returned.
    """
    if not rate.size or not np.abs(rate).max() > 2.0 * least:
        return math.nan
    cuts = np.flatnonzero(np.diff(np.sign(rate)) != 0) + 1
    parts = [float(np.abs(part).max()) for part in np.split(rate, cuts) if part.size]
    # A first part that only decays is the end of an extreme, and one that is lower than the next.
    if len(parts) > 1 and abs(rate[0]) >= parts[0] and parts[1] > least:
        parts = parts[1:]
    first = int(np.argmax(parts[:3]))
    heights = parts[first : first + most]
    least = max(least, _LEAST * heights[0])
    # All before the first one that is too small.
    count = next((k for k, h in enumerate(heights) if h < least), len(heights))
    kept = heights[:count]
    if len(kept) < 2:
        decrement = math.log(heights[0] / least)
    else:
        decrement = -float(np.polyfit(np.arange(len(kept)), np.log(kept), 1)[0])
    return decrement / math.hypot(math.pi, decrement)


class Job(NamedTuple):
    """A case with the controllers by name."""

    case: Case
    boom: BoomParameters
    controllers: Mapping[str, Callable[[Situation], DampingController]]


def run_job(job: Job) -> dict[str, Any]:
    """Return the measures of a case by controller; ``none`` sets what counts as settled."""
    # What a controller prints is no part of the results.
    with contextlib.redirect_stdout(sys.stderr):
        return _measured(job)


def _measured(job: Job) -> dict[str, Any]:
    """Run a case with its controllers."""
    case, boom, controllers = job
    end = ENDS[case.disturbance]
    alone = run_case(case, boom, NoDamping, ALONE)
    least = threshold(alone, end)
    # All but the settling, for which it takes long, over the time of the other runs.
    rows = slice(round(DURATION / SAMPLE_TIME))
    brief = Trace._make([*(table[rows] for table in alone[:-1]), alone.error])
    settling = measure(alone, boom, end, least).settling
    found = {'none': measure(brief, boom, end, least)._replace(settling=settling)}
    for name, controller in controllers.items():
        if name != 'none':
            found[name] = measure(run_case(case, boom, controller), boom, end, least)
    return {
        'posture': case.posture.number,
        'disturbance': case.disturbance,
        'settled': least,
        'measures': {name: one._asdict() for name, one in found.items()},
    }
