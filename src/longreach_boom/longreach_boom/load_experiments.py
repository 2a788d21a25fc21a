"""
Experiments in which a load is released from, or attached to, a boom at rest with closed valves.

The boom is taken to rest in equilibrium before the event. Static friction leaves the forces of
real pistons open by r_S: a boom that was pushed into its pose is not at rest where a model is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from longreach_boom.identification_statics import PAYLOAD, Setting, settled, start_of
from longreach_boom.machine import AUTOMATIC, SAMPLE_TIME, STEP
from longreach_boom.measured_runs import EVENTS, RunTruth, payload_of, resting, truth_of
from longreach_boom.modes import held_modes
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_dynamics.errors import InputError, LongreachError
from longreach_identification.machine import (
    Identifiable,
    Recording,
    Signal,
    interpolated,
    prolonged,
)

# Time before the event from which the pose is taken, and longest time after it [s].
_REST, _LONGEST = 2.0, 120.0
# Motion of a piston that has slipped [m].
_STUCK = 1e-6
# Largest motion of a piston whose valve is closed [m].
_CLOSED = 0.03
# Standard deviation of the pose at rest: bias of an encoder [m], or of inclination sensors [rad].
_PISTON_ERROR, _ANGLE_ERROR = 5e-4, 3e-3


class LoadExperiment(NamedTuple):
    """A load experiment on a boom."""

    name: str  # of its recording
    scenario: Scenario
    start: float  # time of the recording at time 0 of the scenario [s]
    end: float  # [s]
    by_pistons: bool  # the pose comes from the pistons, otherwise from inclinations


def _rest(signal: Signal, start: float) -> float:
    """Return the median of a signal at rest before a time, NaN without a finite value."""
    use = (signal.times >= start - _REST) & (signal.times <= start + 1e-9)
    values = signal.values[use]
    values = values[np.isfinite(values)]
    return float(np.median(values)) if values.size else math.nan


def _angles(
    boom: BoomParameters, recording: Recording, start: float, loads: tuple[HangingLoad, ...]
) -> np.ndarray:
    """Return the joint angles before an event [rad], (N,)."""
    numbers, signals = range(1, boom.size + 1), recording.signals
    if all(f'piston_{i}' in signals for i in numbers):
        angles = np.empty(boom.size)
        for i, cylinder in enumerate(boom.cylinders):
            signal = signals[f'piston_{i + 1}']
            after = signal.values[signal.times >= start - _REST]
            motion = np.ptp(after[np.isfinite(after)]) if np.isfinite(after).any() else math.nan
            if motion > _CLOSED:
                raise InputError(
                    f'{recording.name}: {cylinder.name} moved by {motion:.3g} m, allowed: at most'
                    f' {_CLOSED} m; was its valve open, or is the load too heavy for it?'
                )
            rest = _rest(signal, start)
            if not math.isfinite(rest):
                raise InputError(
                    f'{recording.name}: piston_{i + 1} has no value within {_REST:g} s before the'
                    f' event at {start:g} s'
                )
            angles[i] = cylinder.linkage.angle(min(max(rest, 0.0), cylinder.stroke))
        return angles
    roots = [f'inclination_root_{i}' for i in numbers]
    shown = [_rest(signals[root], start) if root in signals else math.nan for root in roots]
    if not np.isfinite(shown).all():
        raise InputError(
            f'{recording.name} lacks piston_1..piston_{boom.size}, or instead inclination_root_i,'
            f' before the event at {start:g} s: the pose is unknown'
        )
    setting = Setting(tuple(shown), True, tuple(load.on(boom) for load in loads))
    none = np.zeros(boom.size)
    return settled(boom, setting, none, start_of(boom, recording.name, setting)).q[: boom.size]


@functools.lru_cache(maxsize=16)
def _truth(boom: BoomParameters, scenario: Scenario) -> RunTruth:
    """Return all signals of an experiment; derivatives by delays of clocks ask for it again."""
    try:
        run = simulate(boom, scenario)
    except InputError:
        # For this step: strongly damped beams are faster than any that a file would have.
        run = simulate(boom, scenario, AUTOMATIC)
    if run.message:
        raise LongreachError(run.message)
    return truth_of(run, scenario)


def first_mode(boom: BoomParameters, experiment: LoadExperiment) -> tuple[float, float]:
    """Return first natural frequency [Hz] and damping ratio at the end, when all pistons stick."""
    scenario = experiment.scenario
    _, loads = scenario.carried(boom)[-1]
    stuck = [False] * boom.size
    frequencies, ratios = held_modes(boom, scenario.angles(boom), loads, stuck)
    return float(frequencies[0]), float(ratios[0])


class LoadExperiments(Identifiable):
    """The part of the identification of a boom that is about load experiments."""

    def experiment(self, machine: BoomParameters, recording: Recording) -> LoadExperiment:
        """
        Return the experiment that a recording shows; InputError for what is missing, open valves.

        Needed are ``events``, pistons or inclinations, and the payload of :func:`payload_of`.
        """
        name = recording.name
        begin = min(signal.times[0] for signal in recording.signals.values())
        last = max(signal.times[-1] for signal in recording.signals.values())
        every = sorted((time, what) for time, what in recording.events if what in EVENTS)
        # Loads of the time before are in latched messages.
        events = [(time, what) for time, what in every if time >= begin]
        if not events or not events[0][0] + 10.0 * SAMPLE_TIME <= last:
            shown = ', '.join(f'{what} at {time:g} s' for time, what in every)
            raise InputError(
                f'{name} has {shown or "no event release or attach"}, allowed: an event from'
                f' {begin:.6g} s to {last - 10.0 * SAMPLE_TIME:.6g} s, within the recording; say'
                f' when the load was released, --event {name}=TIME'
            )
        payload = payload_of(machine, recording)
        if payload is None:
            raise InputError(
                f'{name}: payload = 0 kg, allowed: above 0 kg; give the mass, --payload'
                f' {name}=MASS'
            )
        start = events[0][0]
        end = min(last, start + _LONGEST)
        loads = (payload,) if events[0][1] == 'release' else ()
        later = [(round((time - start) / STEP) * STEP, what) for time, what in events]
        angles = _angles(machine, recording, start, loads)
        resting(machine, name, angles, tuple(load.on(machine) for load in loads))
        scenario = Scenario(
            duration=math.ceil((end - start) / SAMPLE_TIME + 1.0) * SAMPLE_TIME,
            pose_deg=tuple(np.degrees(angles).tolist()),
            loads=loads,
            release=tuple(time for time, what in later if what == 'release'),
            attach=tuple(
                Attachment(payload.mass, payload.beam, payload.position, time=time)
                for time, what in later
                if what == 'attach'
            ),
        )
        scenario.check_with(machine, STEP)
        by_pistons = all(f'piston_{i + 1}' in recording.signals for i in range(machine.size))
        return LoadExperiment(name, scenario, start, end, by_pistons)

    def corrections(self, machine: BoomParameters, experiment: LoadExperiment) -> dict[str, float]:
        """Return deviations of ``payload`` [1] and ``pose_i`` [rad], by the bias of sensors."""
        found = {'payload': PAYLOAD}
        if not experiment.by_pistons:
            return found | {f'pose_{i + 1}': _ANGLE_ERROR for i in range(machine.size)}
        arms = [
            abs(cylinder.linkage.arm(angle))
            for cylinder, angle in zip(
                machine.cylinders, experiment.scenario.angles(machine), strict=True
            )
        ]
        return found | {f'pose_{i + 1}': _PISTON_ERROR / arm for i, arm in enumerate(arms)}

    def corrected(
        self, machine: BoomParameters, experiment: LoadExperiment, values: Mapping[str, float]
    ) -> LoadExperiment:
        """Return an experiment with ``corrections`` of its payload and joint angles."""
        change = [values.get(f'pose_{i + 1}', 0.0) for i in range(machine.size)]
        # Within the strokes: the start may lie at the end of one.
        low, high = machine.joint_limits().T
        angles = np.clip(experiment.scenario.angles(machine) + change, low, high)
        pose = tuple(np.degrees(angles).tolist())
        share = 1.0 + values.get('payload', 0.0)
        scenario = experiment.scenario.replace(
            pose_deg=pose,
            loads=tuple(
                load.replace(mass=share * load.mass) for load in experiment.scenario.loads
            ),
            attach=tuple(
                load.replace(mass=share * load.mass) for load in experiment.scenario.attach
            ),
        )
        return experiment._replace(scenario=scenario)

    def doubts(self, machine: BoomParameters, experiment: LoadExperiment) -> str:
        """Return which pistons slip after the event, by which predictions have jumps."""
        names, positions = _truth(machine, experiment.scenario).kinds['encoder']
        slips = [
            name
            for name, moved in zip(names, np.ptp(positions, axis=0), strict=True)
            if moved > _STUCK
        ]
        if not slips:
            return ''
        return (
            f'{", ".join(slips)} of {experiment.name} slip: whether a piston slips once more'
            ' depends on small changes of all parameters. The search may have ended in another'
            ' minimum, and errors may be several times as large as stated; release a lighter load,'
            ' which all pistons hold'
        )

    def predict(
        self, machine: BoomParameters, experiment: LoadExperiment, times: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return what sensors without error would show at times of the recording [s] by signal."""
        since = {name: at - experiment.start for name, at in times.items()}
        scenario = experiment.scenario
        longer = scenario.replace(duration=prolonged(scenario.duration, 0.0, since))
        truth = _truth(machine, longer)
        columns = {
            name: values[:, k]
            for names, values in truth.kinds.values()
            for k, name in enumerate(names)
        }
        return interpolated(since, truth.times, columns)
