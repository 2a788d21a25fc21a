"""
What the boom offers to identification from poses at rest, see longreach_identification.statics.

Measured are the force of each cylinder, p_1 A_1 - p_2 A_2, and the strain of each gauge; predicted
are those of the equilibrium in the pose of the pistons, or of the inclinations at the roots of the
beams, Henikl 2015, (39), (40). Young's modulus is unknown as well: a beam that bends more tilts
those outboard of it. docs/identification.md has all unknowns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from longreach_boom.measured_runs import EVENTS, payload_of, resting
from longreach_boom.model import Load, boom_bases, constants_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import BoomState
from longreach_boom.statics import Equilibrium, potential_forces, tangent_stiffness
from longreach_boom.strain import curvatures
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.hydraulics.friction import STUCK
from longreach_dynamics.linkages import pistons_and_arms
from longreach_identification.machine import Identifiable, Recording, Signal
from longreach_identification.statics import THE_PAYLOAD, Nuisance, StaticPose
from longreach_identification.stillness import Mean, Motion, StillStretch

# Rates below which a boom is still: of pistons [m/s] and of joint angles [rad/s].
_STILL_PISTON, _STILL_ANGLE = 2e-4, 2e-3
# Standard deviations of constant errors: class 0.5 % of 400 bar is at most 2 bar; encoders are set
# to zero at an end stop; inclination sensors are mounted with a level.
_PRESSURE_BIAS, _PISTON_BIAS, _INCLINATION_BIAS = 1e5, 5e-4, 2e-3
# Of Young's modulus, relative to the start file: it stands for beams whose joints, pipes and
# openings are not in the model.
_MODULUS = 0.2
# Group of the dimensions; biases of a pose, by whether it comes from inclinations; and what else
# moves the equilibrium.
GEOMETRY = 'geometry'
_POSE = {False: 'pose_bias', True: 'inclination_bias'}
_OF_EQUILIBRIUM = (
    'mass_', 'youngs_modulus', 'length_scale', 'lever_scale', 'stiffness_', 'gauge_shift',
)  # fmt: skip
# Of a payload [1], of its weighing.
PAYLOAD = 0.01
# Most steps of the search for an equilibrium, and their size at its end [rad, m].
_MOST_STEPS, _TOLERANCE = 60, 1e-11
# Errors of sensors may move a measured pose this far beyond the end of a stroke [rad].
_BEYOND = 0.02


class Setting(NamedTuple):
    """Pose and load of a boom at rest."""

    positions: tuple[float, ...]  # of pistons [m], or inclinations of the roots [rad]
    inclined: bool  # whether they are inclinations
    loads: tuple[Load, ...]


@dataclasses.dataclass(frozen=True)
class StaticBoom:
    """
    The boom as a :class:`longreach_identification.statics.StaticMachine`.

    ``payload`` is the deviation of loads [1]; ``geometry`` tells whether dimensions are known to
    the deviations of their free parameters, or exactly.
    """

    page: Identifiable
    payload: float = PAYLOAD
    geometry: bool = True

    def needed(self, machine: BoomParameters) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002
        """Return the signals without which nothing can be said, as alternatives."""
        return (('p_head_*',), ('p_rod_*',), ('piston_*', 'inclination_root_*'))

    def motions(self, machine: BoomParameters, recording: Recording) -> dict[str, Motion]:
        """Return the motions of the pistons, or without encoders those of the joints."""
        shown = recording.signals
        names = [f'piston_{i + 1}' for i in range(machine.size)]
        if all(name in shown for name in names):
            return {
                f'cylinder_{i + 1}': Motion(shown[name], _STILL_PISTON, 'm')
                for i, name in enumerate(names)
            }
        found: dict[str, Motion] = {}
        for i in range(machine.size):
            root = shown[f'inclination_root_{i + 1}']
            values = root.values
            if i:
                before, below = shown.get(f'inclination_tip_{i}'), shown[f'inclination_root_{i}']
                if before is None or not np.isfinite(before.values).any():
                    before = below
                # Without rows that have no reading, which would count for all later ones.
                there = np.isfinite(before.values)
                values = values - np.interp(root.times, before.times[there], before.values[there])
            joint = Signal(root.times, values, root.deviation)
            found[f'cylinder_{i + 1}'] = Motion(joint, _STILL_ANGLE, 'rad')
        return found

    def pose(
        self, machine: BoomParameters, recording: Recording, stretch: StillStretch
    ) -> StaticPose:
        """Return what was measured in a stretch; InputError when a needed signal has no rows."""
        means = stretch.means
        inclined = any(f'piston_{i + 1}' not in means for i in range(machine.size))
        family = 'inclination_root' if inclined else 'piston'
        wanted = [f'{n}_{i + 1}' for n in (family, 'p_head', 'p_rod') for i in range(machine.size)]
        for name in wanted:
            if name not in means:
                raise InputError(
                    f'{recording.name} has no {name} from {stretch.start:.1f} s to'
                    f' {stretch.end:.1f} s'
                )
        measured: dict[str, Mean] = {}
        strains = [f'strain_{i + 1}' for i in range(machine.size)]
        actuators = constants_of(machine).actuators
        for i in range(machine.size):
            head, rod = means[f'p_head_{i + 1}'], means[f'p_rod_{i + 1}']
            areas = float(actuators.head_area[i]), float(actuators.rod_area[i])
            error = np.hypot(areas[0] * head.standard_error, areas[1] * rod.standard_error)
            force = areas[0] * head.value - areas[1] * rod.value
            measured[f'force_{i + 1}'] = Mean(force, float(error), head.rows)
        measured |= {name: means[name] for name in strains if name in means}
        middle = 0.5 * (stretch.start + stretch.end)
        positions = tuple(means[f'{family}_{i + 1}'].value for i in range(machine.size))
        setting = Setting(positions, inclined, load_at(machine, recording, middle))
        directions = {
            f'force_{i + 1}': stretch.directions.get(f'cylinder_{i + 1}', 0)
            for i in range(machine.size)
        }
        return StaticPose(
            recording.name, stretch.start, stretch.end, setting, measured, directions
        )

    def nuisances(
        self, machine: BoomParameters, poses: Sequence[StaticPose]
    ) -> tuple[Nuisance, ...]:
        """Return what is unknown besides the parameters: friction left, and biases of sensors."""
        kinds = {pose.setting.inclined for pose in poses}
        areas = constants_of(machine).actuators
        E = machine.youngs_modulus
        found = [Nuisance('youngs_modulus', 'Pa', E, _MODULUS * E, E)]
        if any(pose.setting.loads for pose in poses):
            found.append(Nuisance('payload_scale', '1', 1.0, self.payload, 1.0))
        for i, cylinder in enumerate(machine.cylinders):
            # Large scales: what the data say about friction and biases is not judged.
            scale = 10.0 * cylinder.friction.coulomb or 1e4
            found.append(Nuisance(f'left_friction_{i + 1}', 'N', scale))
            size = float(np.hypot(areas.head_area[i], areas.rod_area[i]))
            bias = _PRESSURE_BIAS * size
            found.append(Nuisance(f'force_bias_{i + 1}', 'N', 10.0 * bias, bias))
            for inclined in sorted(kinds):
                unit, bias = ('rad', _INCLINATION_BIAS) if inclined else ('m', _PISTON_BIAS)
                found.append(Nuisance(f'{_POSE[inclined]}_{i + 1}', unit, 10.0 * bias, bias))
        start = self.page.values(machine)
        for free in self.page.free_parameters(machine):
            if self.geometry and free.group == GEOMETRY:
                bounds = (free.lowest, free.highest)
                mean = start[free.name]
                found.append(Nuisance(free.name, free.unit, 1.0, free.deviation, mean, bounds))
        return tuple(found)

    def model(self, machine: BoomParameters, poses: Sequence[StaticPose]) -> StaticBoomModel:
        """Return the prediction of measured poses."""
        return StaticBoomModel(self.page, machine, tuple(poses))

    def conditions(self, pose: StaticPose) -> dict[str, float]:
        """Return positions of pistons or inclinations, and the payload."""
        setting: Setting = pose.setting
        what = 'inclination_root' if setting.inclined else 'piston'
        found = {f'{what}_{i}': value for i, value in enumerate(setting.positions, 1)}
        return found | {THE_PAYLOAD: sum(load.mass for load in setting.loads)}


class StaticBoomModel:
    """Predictions of forces and strains in given poses, of parameters relative to a start file."""

    def __init__(
        self, page: Identifiable, machine: BoomParameters, poses: tuple[StaticPose, ...]
    ) -> None:
        self._page, self._machine, self._poses = page, machine, poses
        self._usual = page.values(machine)
        self._starts: dict[int, _Start] = {}
        self._known: dict[tuple[object, ...], tuple[np.ndarray, np.ndarray]] = {}
        N = machine.size
        self._directions = np.array(
            [[pose.directions[f'force_{i + 1}'] for i in range(N)] for pose in poses]
        )

    def __call__(self, values: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return forces [N] and strains of all poses; LongreachError where it cannot stand."""
        N = self._machine.size
        numbers = range(1, N + 1)
        heavy = {name: value for name, value in values.items() if name.startswith(_OF_EQUILIBRIUM)}
        shifts = {
            inclined: tuple(values.get(f'{name}_{i}', 0.0) for i in numbers)
            for inclined, name in _POSE.items()
        }
        forces, stresses = self._at_rest(heavy, shifts, values.get('payload_scale', 1.0))
        found: dict[str, np.ndarray] = {}
        for i in numbers:
            left = values.get(f'left_friction_{i}', 0.0) * self._directions[:, i - 1]
            shown = forces[:, i - 1] / values.get(f'area_scale_{i}', 1.0)
            found[f'force_{i}'] = shown + left + values.get(f'force_bias_{i}', 0.0)
            name = f'gauge_sensitivity_{i}'
            found[f'strain_{i}'] = values.get(name, self._usual[name]) * stresses[:, i - 1]
        return found

    def _at_rest(
        self, heavy: Mapping[str, float], shifts: Mapping[bool, tuple[float, ...]], payload: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return forces [N] and E w'' [Pa/m] of all poses, (poses, N)."""
        key = (*sorted(heavy.items()), *shifts.items(), payload)
        if key in self._known:
            return self._known[key]
        boom = self._page.with_values(self._machine, heavy)
        N = boom.size
        stretched = [
            b.length / o.length for b, o in zip(boom.beams, self._machine.beams, strict=True)
        ]
        places = tuple((beam.strain_gauge.position,) for beam in boom.beams)
        modes = np.full(N, STUCK, dtype=np.int64)
        forces = np.empty((len(self._poses), N))
        stresses = np.empty_like(forces)
        for k, pose in enumerate(self._poses):
            if k not in self._starts:
                self._starts[k] = start_of(self._machine, pose.recording, pose.setting)
            # A load at a tip stays there.
            loads = tuple(
                load._replace(
                    mass=payload * load.mass, position=stretched[load.beam] * load.position
                )
                for load in pose.setting.loads
            )
            setting = pose.setting._replace(loads=loads)
            rest = settled(boom, setting, np.array(shifts[setting.inclined]), self._starts[k])
            state = BoomState(rest.state(np.zeros(N)), modes, loads)
            forces[k] = rest.forces
            stresses[k] = boom.youngs_modulus * curvatures(boom, state, places)
        self._known[key] = forces, stresses
        return forces, stresses


class _Start(NamedTuple):
    """The equilibrium of the start file in a pose."""

    coordinates: np.ndarray  # (n,) or (n + 2,)
    inverse: np.ndarray  # of the tangent stiffness of deflections and truck


def start_of(boom: BoomParameters, name: str, setting: Setting) -> _Start:
    """Return where the search for the equilibrium of a pose of a recording begins."""
    measured, limits = np.array(setting.positions), boom.joint_limits()
    if setting.inclined:
        angles = np.diff(measured, prepend=0.0)
    else:
        angles = np.array(
            [
                cylinder.linkage.angle(float(np.clip(s, 0.0, cylinder.stroke)))
                for cylinder, s in zip(boom.cylinders, measured, strict=True)
            ]
        )
    rest = resting(boom, name, np.clip(angles, *limits.T), setting.loads)
    K = tangent_stiffness(rest.coordinates, constants_of(boom, setting.loads))
    return _Start(rest.coordinates, np.linalg.inv(K[boom.size :, boom.size :]))


def settled(
    boom: BoomParameters, setting: Setting, shifts: np.ndarray, start: _Start
) -> Equilibrium:
    """
    Return the equilibrium in a measured pose less the sensors' errors (N,), without its pressures.

    By Newton's method with the stiffness of the start file. LongreachError: there is none.
    """
    measured = np.array(setting.positions) - shifts
    limits = boom.joint_limits()
    constants = constants_of(boom, setting.loads)
    N = boom.size
    n = N * (1 + boom.ritz.functions)
    root_slope = np.stack([basis.at(0.0, 1) for basis in boom_bases(boom)])
    q = start.coordinates.copy()
    for _ in range(_MOST_STEPS):
        if setting.inclined:
            bending = np.reshape(q[N:n], (-1, N)).T
            slopes = np.sum(constants.tip_slope * bending, axis=1)
            roots = np.cumsum(q[:N] + slopes) - slopes + np.sum(root_slope * bending, axis=1)
            roots += q[n + 1] if boom.truck else 0.0
            turn = np.diff(measured - roots, prepend=0.0)
        else:
            pistons, arms = pistons_and_arms(constants.linkage, q[None, :N])
            turn = (measured - pistons[0]) / arms[0]
        beyond = q[:N] + turn
        angles = np.clip(beyond, *limits.T)
        beyond = np.abs(beyond - angles)
        turn = angles - q[:N]
        q[:N] = angles
        change = start.inverse @ potential_forces(q, constants)[N:]
        q[N:] -= change
        if max(np.abs(turn).max(), np.abs(change).max()) < _TOLERANCE:
            if beyond.max() > _BEYOND:
                break
            _, arms = pistons_and_arms(constants.linkage, q[None, :N])
            forces = potential_forces(q, constants)[:N] / arms[0]
            none = np.zeros(N)
            return Equilibrium(q[:n], forces, none, none, np.full(2, np.nan), q[n:])
        if not np.isfinite(q).all():
            break
    far = int(beyond.argmax())
    what, unit = ('inclination_root', 'rad') if setting.inclined else ('piston', 'm')
    raise LongreachError(
        f'no equilibrium within the strokes has {what}_{far + 1} = {setting.positions[far]:.4g}'
        f' {unit}: it is {beyond[far]:.2g} rad of its joint beyond; is its unit, sign or zero, or'
        ' the machine file, wrong?'
    )


def load_at(boom: BoomParameters, recording: Recording, time: float) -> tuple[Load, ...]:
    """Return the payload on a boom at a time [s] of a recording, by its first and later events."""
    payload = payload_of(boom, recording)
    events = [(at, what) for at, what in sorted(recording.events) if what in EVENTS]
    hangs = not events or events[0][1] == 'release'
    for at, what in events:
        if at <= time:
            hangs = what == 'attach'
    if payload is None or not hangs:
        return ()
    return (payload.on(boom, f'{recording.name}: payload'),)
