"""
The experiment of Yu and Chen (2019), section 4: two links vibrate, and draw a circle.

``free``: released from straight links at 45 and -45 degrees, the motors hold the links against
gravity. ``circle``: the far end of the second link follows a circle of 0.1 m in 10 s, under PD
control of the motor angles; references are the joint angles of rigid links.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, check_count
from longreach_symbolic.links import BASES, Links, chord_ends
from longreach_symbolic.motion import Motion, force_matrix, move
from longreach_symbolic.vibration import (
    JOINTS,
    Joints,
    exact_eigenvalues,
    modal_eigenvalues,
    oscillating,
)

CASES = ('free', 'circle')
DURATION = 10.0
"""Of both cases [s]."""
INTERVAL = 1e-3
"""Of rows and references [s]."""
GAIN, RATE_GAIN = 125.0, 25.0  # [N m/rad], [N m s/rad]
START = (math.pi / 4.0, -math.pi / 4.0)
CENTRE, RADIUS, CIRCLE_RATE = (0.67, 0.34), 0.1, 0.2 * math.pi  # [m], [m], [rad/s]
PAPER_FREQUENCIES = (12.246, 40.82)
"""What the paper reports [rad/s]: bins 3 and 10 of one discrete Fourier transform."""
MODES = 2
# The discrete Fourier transform is computed at so many times as many frequencies as there are
# samples, so that the frequency of a peak is not limited by the length of the record.
_PADDING = 16


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A run of the experiment, K rows; ``references`` (K, 2) are desired motor angles [rad]."""

    links: Links
    case: str
    joints: str
    printed: bool
    time: np.ndarray
    references: np.ndarray
    motion: Motion

    @functools.cached_property
    def motor_angles(self) -> np.ndarray:
        """Angles of the motors (K, 2) [rad]."""
        return np.asarray(self.motion.q @ force_matrix(self.links))

    @functools.cached_property
    def ends(self) -> np.ndarray:
        """Ends of the links (K, 2 links, 2) [m]: x and y, y up."""
        return chord_ends(self.links, self.motion.q[:, :2])

    @functools.cached_property
    def accelerations(self) -> np.ndarray:
        """Vertical accelerations of the ends of the links (K, 2) [m/s^2]."""
        n = 2
        angle = np.cumsum(self.motion.q[:, :n], axis=1)
        rate = np.cumsum(self.motion.rates[:, :n], axis=1)
        turning = np.cumsum(self.motion.accelerations[:, :n], axis=1)
        lengths = np.array([link.length for link in self.links.links])
        own = lengths * (np.cos(angle) * turning - np.sin(angle) * rate**2)
        return np.asarray(np.cumsum(own, axis=1))

    @functools.cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Angular frequencies [rad/s] and amplitudes [m/s^2] of the last end's acceleration."""
        signal = self.accelerations[:, -1]
        window = np.hanning(len(signal))
        amplitude = np.abs(np.fft.rfft((signal - signal.mean()) * window, _PADDING * len(signal)))
        frequency = np.fft.rfftfreq(_PADDING * len(signal), INTERVAL) * 2.0 * math.pi
        return frequency, amplitude * 2.0 / window.sum()

    def peaks(self) -> list[float]:
        """Return the frequencies of the two highest peaks of the spectrum, ascending [rad/s]."""
        frequency, amplitude = self.spectrum
        inner = amplitude[1:-1]
        places = 1 + np.flatnonzero((inner > amplitude[:-2]) & (inner >= amplitude[2:]))
        # Beside a peak of a Hann window there are side lobes.
        apart = 8.0 * math.pi / (len(self.time) * INTERVAL)
        found: list[float] = []
        for place in places[np.argsort(-amplitude[places])]:
            if all(abs(frequency[place] - other) > apart for other in found):
                found.append(float(frequency[place]))
            if len(found) == MODES:
                break
        return sorted(found)

    def columns(self) -> tuple[list[str], np.ndarray]:
        """Return names and values (K, names) of all that is recorded."""
        modes = self.links.modes
        deflections = [f'f_{i}{k}' for i in (1, 2) for k in range(1, modes + 1)]
        names, values = ['time'], [self.time[:, np.newaxis]]
        for name, value in (
            ('reference_angle', self.references),
            ('motor_angle', self.motor_angles),
            ('torque', self.motion.torques),
            ('theta', self.motion.q[:, :2]),
            ('x', self.ends[:, :, 0]),
            ('y', self.ends[:, :, 1]),
            ('acceleration_y', self.accelerations),
        ):
            names += [f'{name}_{i}' for i in (1, 2)]
            values.append(value)
        return names + deflections, np.hstack([*values, self.motion.q[:, 2:]])

    def summary(self) -> dict[str, Any]:
        """Return the results, for JSON."""
        found: dict[str, Any] = {
            'case': self.case,
            'basis': self.links.basis,
            'modes': self.links.modes,
            'joints': self.joints,
            'force_map': 'printed' if self.printed else 'correct',
        }
        law = Joints.of(self.joints, GAIN, RATE_GAIN)
        force = force_matrix(self.links, self.printed)
        growth = float(modal_eigenvalues(self.links, START, law, force).real.max())
        # Undamped vibrations have real parts of rounding errors.
        found['stable'] = bool(growth < 1e-6)
        found['growth_rate'] = max(growth, 0.0) if not found['stable'] else 0.0
        found['ended_at'] = float(self.time[-1])
        found['complete'] = self.motion.complete
        for name, value in (('torque', self.motion.torques), ('acceleration', self.accelerations)):
            found[f'largest_{name}'] = np.abs(value).max(axis=0).tolist()
        if not self.motion.complete:
            return found
        if self.case == 'free':
            if self.joints != 'pd':
                found['peaks'] = self.peaks()
            found['paper'] = list(PAPER_FREQUENCIES)
            found['frequencies'] = frequency_table(self.links)
        else:
            error = self.references - self.motor_angles
            away = np.hypot(*(self.ends[:, -1] - _circle(self.time)[0]).T)
            found['angle_error'] = np.abs(error).max(axis=0).tolist()
            found['angle_error_rms'] = np.sqrt(np.mean(error**2, axis=0)).tolist()
            found['end_error'] = float(away.max())
            found['end_error_rms'] = float(np.sqrt(np.mean(away**2)))
        return found


def frequency_table(links: Links) -> list[dict[str, Any]]:
    """Return the lowest frequencies [rad/s] and decays [1/s]: exact, and of both bases."""
    rows = []
    for name in JOINTS:
        joints = Joints.of(name, GAIN, RATE_GAIN)
        found = {'exact': exact_eigenvalues(links, START, joints, MODES)}
        for basis in BASES:
            values = modal_eigenvalues(dataclasses.replace(links, basis=basis), START, joints)
            found[basis] = oscillating(values, MODES)
        for mode in range(MODES):
            row: dict[str, Any] = {'joints': name, 'mode': mode + 1}
            row |= {key: float(value[mode].imag) for key, value in found.items()}
            damped = joints.damping > 0.0
            row |= {
                f'{key}_decay': float(-value[mode].real) if damped else 0.0
                for key, value in found.items()
            }
            row |= {f'{basis}_error': row[basis] / row['exact'] - 1.0 for basis in BASES}
            rows.append(row)
    return rows


def experiment(
    links: Links, case: str, joints: str | None = None, printed: bool = False
) -> Experiment:
    """Run a case with two links; None: motors locked for ``free``, under pd for ``circle``."""
    check_count('links', links.links, 2, 'those of the experiment')
    if case == 'circle' and joints not in (None, 'pd'):
        raise InputError(f'joints = {joints}, allowed with the circle: pd')
    joints = joints or {'free': 'locked', 'circle': 'pd'}[case]
    if printed and joints == 'locked':
        raise InputError('the printed force map needs a controller; give joints springs or pd')
    time = np.arange(round(DURATION / INTERVAL) + 1) * INTERVAL
    if case == 'free':
        references = np.tile(START, (len(time), 1))
        rates = np.zeros_like(references)
    else:
        references, rates = _references(links, time)
    q = np.concatenate((START, np.zeros(2 * links.modes)))
    force = force_matrix(links, printed=True) if printed else None
    held = Joints.of(joints, GAIN, RATE_GAIN)
    motion = move(links, q, references, rates, INTERVAL, held, force)
    rows = len(motion.q)
    return Experiment(links, case, joints, printed, time[:rows], references[:rows], motion)


def _circle(time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the desired places of the end (K, 2) [m] and their velocities [m/s]."""
    angle = CIRCLE_RATE * time
    along = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    across = np.stack((-np.sin(angle), np.cos(angle)), axis=1)
    return CENTRE + RADIUS * along, RADIUS * CIRCLE_RATE * across


def _references(links: Links, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint angles (K, 2) of rigid links on the circle, elbow up, and their rates."""
    first, second = (link.length for link in links.links)
    places, velocities = _circle(time)
    cosine = (np.sum(places**2, axis=1) - first**2 - second**2) / (2.0 * first * second)
    if np.abs(cosine).max() >= 1.0:
        far = np.hypot(*places.T)
        raise InputError(
            f'the circle is {far.min():.4g} to {far.max():.4g} m from the base, allowed with'
            f' lengths of {first:g} and {second:g} m: between {abs(first - second):.4g} and'
            f' {first + second:.4g} m'
        )
    bend = -np.arccos(cosine)
    own = np.arctan2(places[:, 1], places[:, 0])
    own -= np.arctan2(second * np.sin(bend), first + second * np.cos(bend))
    angles = np.stack((own, bend), axis=1)
    ends = chord_ends(links, angles)
    inner = ends[:, 1] - ends[:, 0]
    jacobian = np.empty((len(time), 2, 2))
    jacobian[:, :, 0] = np.stack((-ends[:, 1, 1], ends[:, 1, 0]), axis=1)
    jacobian[:, :, 1] = np.stack((-inner[:, 1], inner[:, 0]), axis=1)
    return angles, np.linalg.solve(jacobian, velocities[:, :, np.newaxis])[:, :, 0]
