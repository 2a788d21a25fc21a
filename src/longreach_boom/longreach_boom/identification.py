"""
What the boom offers to identification, see :mod:`longreach_identification.machine`.

Numbers i = 1..N count beams and cylinders from the truck outwards. Scales multiply the values of
the start file; all others are values with a unit. A gauge's parameter is k_SG / E, since at rest
it shows k_SG B / (E I), with the bending moment B; its gain follows from it and Young's modulus.

In motion, a load is released from, or attached to, a boom at rest with closed valves. It is taken
to rest in equilibrium before; static friction leaves the forces of real pistons open by r_S: a
boom that was pushed into its pose is not at rest where a model is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from longreach_boom.identification_statics import (
    GEOMETRY,
    PAYLOAD,
    Setting,
    StaticBoom,
    settled,
    start_of,
)
from longreach_boom.machine import SAMPLE_TIME, STEP
from longreach_boom.measured_runs import (
    EVENTS,
    RunTruth,
    payload_of,
    poses_at_rest,
    releases,
    simulated,
)
from longreach_boom.modes import held_modes
from longreach_boom.parameters import (
    BeamParameters,
    BoomParameters,
    CylinderParameters,
    Distribution,
    load_boom,
)
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_dynamics.errors import InputError
from longreach_identification.machine import (
    BELOW,
    FreeParameter,
    Identifiable,
    MeasuredSignal,
    Recording,
    Signal,
    interpolated,
    prolonged,
)
from longreach_machine.runs import Source

# Where markers are tracked: in their plane, as is most accurate where the boom does not sway.
_VISION, _IN_PLANE = 'markers', 'estimates.in_plane'
# Limits, which other units and signs exceed: absolute pressures, of which the largest is above
# that of the air [Pa]; strains [1], inclinations [rad], markers [m]; how far a piston may seem to
# be beyond its stroke [m].
_PRESSURES, _PRESSED = (-BELOW, 1e8), 1e5
_STRAINS, _INCLINATIONS, _PLACES = (-0.02, 0.02), (-6.3, 6.3), (-1e3, 1e3)
_BEYOND = 0.05
# Standard deviations of dimensions that drawings give: of lengths, levers and areas [1], of E I of
# one beam against the others [1], of its distribution and that of the mass [1], of positions of
# gauges [m].
_DIMENSION, _SECTION, _TAPER, _SHIFT = 0.005, 0.01, 0.01, 0.005
# Damping and friction are known before to a factor of 3; how far below a search may go.
_FACTOR, _LEAST = math.log(3.0), 1e-3
# Ratios that differ by less are the same: files have a few digits.
_ALIKE = 1e-3
# Time before the event from which the pose is taken, and longest time after it [s].
_REST, _LONGEST = 2.0, 120.0
# Motion of a piston that has slipped [m].
_STUCK = 1e-6
# Largest motion of a piston whose valve is closed [m].
_CLOSED = 0.03
# Standard deviation of the pose at rest: bias of an encoder [m], or of inclination sensors [rad].
_PISTON_ERROR, _ANGLE_ERROR = 5e-4, 3e-3


def _friction(name: str, unit: str, most: float, meaning: str) -> FreeParameter:
    """Return the friction of pistons."""
    return FreeParameter(name, 'friction', unit, 0.0, most, meaning, _FACTOR, True)


def _damping(name: str, meaning: str) -> FreeParameter:
    """Return the scale of a damping."""
    return FreeParameter(name, 'damping', '1', 0.0, 100.0, meaning, _FACTOR, True)


def _geometry(
    name: str, unit: str, base: float, most: float, meaning: str, deviation: float
) -> FreeParameter:
    """Return a dimension, which is ``base`` in the start file."""
    return FreeParameter(name, GEOMETRY, unit, base - most, base + most, meaning, deviation)


# With a number for each beam and its cylinder.
_NUMBERED = (
    FreeParameter('mass_scale', 'masses', '1', 0.3, 3.0, 'of the mass per length, xi'),
    _friction('viscous_friction', 'N s/m', 1e7, 'of the piston, r_V'),
    _friction('coulomb_friction', 'N', 1e6, 'of the sliding piston, r_C'),
    _friction('static_friction', 'N', 1e6, 'of the sticking piston, r_S'),
    FreeParameter('gauge_sensitivity', 'gauges', 'm/Pa', 1e-15, 1e-9, 'gain k_SG over E'),
    FreeParameter('gauge_bias', 'gauges', '1', -0.01, 0.01, 'b_SG'),
    _geometry('length_scale', '1', 1.0, 0.05, 'of the length of the beam', _DIMENSION),
    _geometry('lever_scale', '1', 1.0, 0.05, "of the cylinder's lever, r or a", _DIMENSION),
    _geometry('area_scale', '1', 1.0, 0.05, 'of both piston areas', _DIMENSION),
    _geometry('stiffness_scale', '1', 1.0, 0.5, 'of E I of the beam', _SECTION),
    _geometry('mass_taper', '1', 0.0, 0.5, 'added to 1 at the tip, as for E I', _TAPER),
    _geometry('stiffness_taper', '1', 0.0, 0.5, 'added to 1 at the tip, less at the root', _TAPER),
    _geometry('gauge_shift', 'm', 0.0, 0.2, 'added to the position of the gauge', _SHIFT),
)
_COMMON = (
    FreeParameter('youngs_modulus', 'youngs_modulus', 'Pa', 1e9, 1e12, 'E'),
    _damping('joint_damping_scale', 'of d_phi of all joints'),
    _damping('beam_damping_scale', 'of d_w of all beams, for damping: distributed'),
    _damping('loss_time_scale', 'of all loss times, for damping: kelvin_voigt'),
    FreeParameter('bulk_modulus', 'oil', 'Pa', 1e8, 3e9, 'of the oil, beta'),
)


def scaled(
    distribution: Distribution, scale: float, taper: float = 0.0, stretch: float = 1.0
) -> Distribution:
    """
    Return a distribution over a longer beam, times a scale and 1 + taper (2 x / L - 1).

    Of a power law root and tip are multiplied.
    """
    if distribution.table:
        length = distribution.table[-1][0]
        return distribution.replace(
            table=tuple(
                (stretch * x, scale * (1.0 + taper * (2.0 * x / length - 1.0)) * value)
                for x, value in distribution.table
            )
        )
    assert distribution.root is not None
    assert distribution.tip is not None
    return distribution.replace(
        root=scale * (1.0 - taper) * distribution.root,
        tip=scale * (1.0 + taper) * distribution.tip,
    )


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
    signals, inclined = recording.signals, not _by_pistons(boom, recording)
    names = [f'{"inclination_root" if inclined else "piston"}_{i + 1}' for i in range(boom.size)]
    shown = [_rest(signals[name], start) if name in signals else math.nan for name in names]
    if not np.isfinite(shown).all():
        raise InputError(
            f'{recording.name} lacks piston_1..piston_{boom.size}, or instead inclination_root_i,'
            f' within {_REST:g} s before the event at {start:g} s: the pose is unknown'
        )
    for name, cylinder in () if inclined else zip(names, boom.cylinders, strict=True):
        signal = signals[name]
        after = signal.values[signal.times >= start - _REST]
        motion = np.ptp(after[np.isfinite(after)])
        if motion > _CLOSED:
            raise InputError(
                f'{recording.name}: {cylinder.name} moved by {motion:.3g} m, allowed: at most'
                f' {_CLOSED} m; was its valve open, or is the load too heavy for it?'
            )
    setting = Setting(tuple(shown), inclined, tuple(load.on(boom) for load in loads))
    begin = start_of(boom, recording.name, setting)
    rest = settled(boom, setting, np.zeros(boom.size), begin).q if inclined else begin.coordinates
    return rest[: boom.size]


def _by_pistons(boom: BoomParameters, recording: Recording) -> bool:
    """Return whether a recording has the positions of all pistons."""
    return all(f'piston_{i + 1}' in recording.signals for i in range(boom.size))


@functools.lru_cache(maxsize=16)
def _truth(boom: BoomParameters, scenario: Scenario) -> RunTruth:
    """Return all signals of an experiment; derivatives by delays of clocks ask for it again."""
    try:
        return simulated(boom, scenario, 'the simulation', STEP)
    except InputError:
        # For this step: strongly damped beams are faster than any that a file would have.
        return simulated(boom, scenario, 'the simulation')


def first_mode(boom: BoomParameters, experiment: LoadExperiment) -> tuple[float, float]:
    """Return first natural frequency [Hz] and damping ratio at the end, when all pistons stick."""
    scenario = experiment.scenario
    _, loads = scenario.carried(boom)[-1]
    stuck = [False] * boom.size
    frequencies, ratios = held_modes(boom, scenario.angles(boom), loads, stuck)
    return float(frequencies[0]), float(ratios[0])


class BoomIdentification(Identifiable):
    """The boom as a :class:`longreach_identification.machine.Identifiable`."""

    name = 'boom'
    usual_groups = ('masses', 'gauges', 'youngs_modulus', 'damping')
    scanned = 'youngs_modulus'
    load = staticmethod(load_boom)
    signal_kinds = MappingProxyType(
        {
            'pressures': ('p_*',),
            'pistons': ('piston_*',),
            'strain': ('strain_*',),
            'inclination': ('inclination_*',),
            'markers': ('marker_*',),
        }
    )

    def statics(self) -> StaticBoom:
        """Return what is offered to identification from poses at rest."""
        return StaticBoom(self)

    def free_parameters(self, machine: BoomParameters) -> tuple[FreeParameter, ...]:
        """Return all parameters that can be free; those of the damping law in use."""
        values, found = self.values(machine), []
        for free in _declared(machine):
            value = values[free.name]
            if free.logarithmic and value > 0.0:
                free = free._replace(lowest=_LEAST * value)
            elif free.logarithmic:
                # What the file has not is no factor of anything.
                free = free._replace(deviation=math.inf, logarithmic=False)
            found.append(free)
        return tuple(found)

    def values(self, machine: BoomParameters) -> dict[str, float]:
        """Return the values of all of them; scales are 1, and what is added is 0."""
        E = machine.youngs_modulus
        known = {'youngs_modulus': E, 'bulk_modulus': machine.oil.bulk_modulus}
        for i, (beam, cylinder) in enumerate(zip(machine.beams, machine.cylinders, strict=True)):
            friction, gauge = cylinder.friction, beam.strain_gauge
            own = {
                'viscous_friction': friction.viscous,
                'coulomb_friction': friction.coulomb,
                'static_friction': friction.static,
                'gauge_sensitivity': gauge.gain / E,
                'gauge_bias': gauge.bias,
            }
            known |= {f'{name}_{i + 1}': value for name, value in own.items()}
        names = [free.name for free in _declared(machine)]
        return {name: known.get(name, 1.0 if '_scale' in name else 0.0) for name in names}

    def with_values(self, machine: BoomParameters, values: Mapping[str, float]) -> BoomParameters:
        """Return the boom with some parameters changed; scales are relative to ``machine``."""
        self.check_names(machine, values)
        parts = [_changed(machine, i, values) for i in range(machine.size)]
        beams, cylinders = (tuple(items) for items in zip(*parts, strict=True))
        limits = np.degrees([c.linkage.angles(c.stroke) for c in cylinders])
        lengths = {
            beam.name: values.get(f'length_scale_{i}', 1.0) for i, beam in enumerate(beams, 1)
        }
        bulk_modulus = values.get('bulk_modulus', machine.oil.bulk_modulus)
        return machine.replace(
            beams=beams,
            cylinders=cylinders,
            # A pose at the end of a stroke stays there.
            poses=tuple(
                pose.replace(angles_deg=tuple(np.clip(pose.angles_deg, *limits.T).tolist()))
                for pose in machine.poses
            ),
            # A marker at a tip stays there.
            markers=tuple(
                marker.replace(position=lengths.get(marker.beam, 1.0) * marker.position)
                for marker in machine.markers
            ),
            youngs_modulus=values.get('youngs_modulus', machine.youngs_modulus),
            oil=machine.oil.replace(bulk_modulus=bulk_modulus),
        )

    def planted(self, start: BoomParameters, machine: BoomParameters) -> dict[str, float]:
        """Return another boom's values in terms of a start file; InputError when it has none."""
        if start.size != machine.size:
            raise InputError(
                f'the boom has {machine.size} beams, allowed: {start.size}, as in the start file'
            )
        pairs = list(zip(start.beams, machine.beams, strict=True))
        found = self.values(machine)
        for i, (before, beam) in enumerate(pairs):
            mass = _shape(f'the mass of {beam.name}', 'mass_per_length', before, beam)
            section = _shape(f'E I of {beam.name}', 'second_moment', before, beam)
            cylinder, other = start.cylinders[i], machine.cylinders[i]
            side = 'near' if cylinder.linkage.near else 'lever'
            of_beam = {
                'mass_scale': mass[0],
                'mass_taper': mass[1],
                'stiffness_scale': section[0],
                'stiffness_taper': section[1],
                'length_scale': beam.length / before.length,
                'lever_scale': getattr(other.linkage, side) / getattr(cylinder.linkage, side),
                'area_scale': (other.bore / cylinder.bore) ** 2,
                'gauge_shift': beam.strain_gauge.position - before.strain_gauge.position,
            }
            found |= {f'{name}_{i + 1}': value for name, value in of_beam.items()}
        for name in ('joint_damping', 'beam_damping', 'loss_time'):
            if f'{name}_scale' in found:
                values = np.array([[getattr(beam, name) for beam in pair] for pair in pairs])
                used = values[:, 0] > 0.0
                ratios = values[used, 1] / values[used, 0]
                if not np.array_equal(values[~used, 1], values[~used, 0]):
                    raise InputError(
                        f'{name} of a beam is 0 in the start file, and not in the other'
                    )
                found[f'{name}_scale'] = _common(name, ratios) if ratios.size else 1.0
        return found

    def signals(self, machine: BoomParameters) -> tuple[MeasuredSignal, ...]:
        """Return the signals of sensors, or exact ones of the plant; markers in the rig frame."""
        found, pairs = [], zip(machine.beams, machine.cylinders, strict=True)
        for i, (beam, cylinder) in enumerate(pairs, 1):
            pressures, b, c = ('sensors/pressure', 'hydraulics'), beam.name, cylinder.name
            reach = (-_BEYOND, cylinder.stroke + _BEYOND)
            for name, unit, topics, field, part, *limits in (
                ('p_head', 'Pa', pressures, 'head_pressure', c, _PRESSURES, _PRESSED),
                ('p_rod', 'Pa', pressures, 'rod_pressure', c, _PRESSURES, _PRESSED),
                ('piston', 'm', ('sensors/encoder', 'joint_states'), 'position', c, reach),
                ('inclination_root', 'rad', ('sensors/inclination',), 'root', b, _INCLINATIONS),
                ('inclination_tip', 'rad', ('sensors/inclination',), 'tip', b, _INCLINATIONS),
                ('strain', '1', ('sensors/strain', 'strain'), 'strain', b, _STRAINS),
            ):
                sources = tuple(Source(topic, field, part) for topic in topics)
                found.append(MeasuredSignal(f'{name}_{i}', unit, sources, '', *limits))
        for marker in machine.markers:
            for axis, index in (('x', 0), ('z', 8)):
                tracked = Source(_VISION, f'{_IN_PLANE}.{axis}', marker.name)
                deviation = f'{_IN_PLANE}_noise_covariance[{index}]'
                name = f'marker_{marker.name}_{axis}'
                found.append(MeasuredSignal(name, 'm', (tracked,), deviation, _PLACES))
        return tuple(found)

    possible = staticmethod(releases)
    possible_at_rest = staticmethod(poses_at_rest)

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
        return LoadExperiment(name, scenario, start, end, _by_pistons(machine, recording))

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
        share, scenario = 1.0 + values.get('payload', 0.0), experiment.scenario
        heavier: dict[str, Any] = {
            kind: tuple(load.replace(mass=share * load.mass) for load in getattr(scenario, kind))
            for kind in ('loads', 'attach')
        }
        scenario = scenario.replace(pose_deg=tuple(np.degrees(angles).tolist()), **heavier)
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

    def derived(self, machine: BoomParameters, experiment: LoadExperiment) -> dict[str, float]:
        """Return first natural frequency [Hz] and damping ratio, when all pistons stick."""
        frequency, ratio = first_mode(machine, experiment)
        gains = {f'gauge_gain_{i + 1}': b.strain_gauge.gain for i, b in enumerate(machine.beams)}
        return {'first_frequency': frequency, 'first_damping_ratio': ratio, **gains}


def _shape(
    what: str, name: str, before: BeamParameters, beam: BeamParameters
) -> tuple[float, float]:
    """Return scale and taper of a distribution against the start file; raises InputError."""
    x = np.linspace(0.0, 1.0, 9)
    old, new = (getattr(one, name).at(one.length * x, one.length) for one in (before, beam))
    root, *_, tip = new / old
    scale, taper = 0.5 * (root + tip), (tip - root) / (tip + root)
    tapered = scaled(getattr(before, name), scale, taper).at(before.length * x, before.length)
    _common(f'{what}, without scale and taper,', new / tapered)
    return float(scale), float(taper)


def _common(what: str, ratios: np.ndarray) -> float:
    """Return the common value of ratios to the start file; raises InputError."""
    if np.ptp(ratios) > _ALIKE * np.abs(ratios).max():
        raise InputError(
            f'{what} is {ratios.min():.4g} to {ratios.max():.4g} times that of the start file,'
            ' allowed: one common factor'
        )
    return float(np.mean(ratios))


def _declared(boom: BoomParameters) -> list[FreeParameter]:
    """Return the parameters of a boom with its number of beams and its law of damping."""
    unused = 'loss' if boom.ritz.damping == 'distributed' else 'beam_damping'
    return [
        *(f._replace(name=f'{f.name}_{i + 1}') for f in _NUMBERED for i in range(boom.size)),
        *(free for free in _COMMON if not free.name.startswith(unused)),
    ]


def _changed(
    boom: BoomParameters, i: int, values: Mapping[str, float]
) -> tuple[BeamParameters, CylinderParameters]:
    """Return a beam and its cylinder with other values."""
    beam, cylinder = boom.beams[i], boom.cylinders[i]
    gauge, linkage, stroke = beam.strain_gauge, cylinder.linkage, cylinder.stroke

    def own(name: str, base: float = 1.0) -> float:
        return values.get(f'{name}_{i + 1}', base)

    stretch, lever, diameter = (
        own('length_scale'),
        own('lever_scale'),
        math.sqrt(own('area_scale')),
    )
    gain = gauge.gain
    if f'gauge_sensitivity_{i + 1}' in values:
        gain = own('gauge_sensitivity') * values.get('youngs_modulus', boom.youngs_modulus)
    mass = own('mass_scale'), own('mass_taper', 0.0)
    section = own('stiffness_scale'), own('stiffness_taper', 0.0)
    # Of a gauge at an end of the beam an estimate may be beyond it.
    place = min(max(0.0, gauge.position + own('gauge_shift', 0.0)), stretch * beam.length)
    if lever != 1.0:
        side = 'near' if linkage.near else 'lever'
        linkage = linkage.replace(**{side: lever * getattr(linkage, side)})
        # A stroke that used all of the linkage ends where the changed one does.
        most = linkage.position(linkage.angles_of_rise()[1])
        stroke = min(stroke, most * (1.0 - 1e-9))
    friction = {
        name: own(f'{name}_friction', getattr(cylinder.friction, name))
        for name in ('viscous', 'coulomb', 'static')
    }
    return beam.replace(
        length=stretch * beam.length,
        mass_per_length=scaled(beam.mass_per_length, *mass, stretch),
        second_moment=scaled(beam.second_moment, *section, stretch),
        strain_gauge=gauge.replace(position=place, gain=gain, bias=own('gauge_bias', gauge.bias)),
        joint_damping=values.get('joint_damping_scale', 1.0) * beam.joint_damping,
        beam_damping=values.get('beam_damping_scale', 1.0) * beam.beam_damping,
        loss_time=values.get('loss_time_scale', 1.0) * beam.loss_time,
    ), cylinder.replace(
        friction=cylinder.friction.replace(**friction),
        linkage=linkage,
        stroke=stroke,
        bore=diameter * cylinder.bore,
        rod=diameter * cylinder.rod,
    )


BOOM = BoomIdentification()
