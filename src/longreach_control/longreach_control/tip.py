"""
Tip control: an operator moves the tip in x and z, with vibrations damped and sag taken back.

Of the joint rates that give the tip a velocity, those are taken whose weighted squares are least;
a joint counts more the nearer it is to the end of its stroke towards which it moves, and at the
end it stays (Whitney 1969; Chan and Dubey 1995 for the weights). All rates are shortened in the
same proportion where a piston would be too fast, or valve or pump would have to give more than
they can.

Sag: means of the cylinders' forces over some seconds give the payload, by least squares with
weights of their friction; payload bends the beams, and positions of the pistons tell what the
cylinders yield. Oil is let in until both together leave the tip where it was asked for, so that a
load that is picked up does not lower it. The plant is that of the posture in which the control was
made; make it anew after a large motion.
"""

from __future__ import annotations

import math

import numpy as np

from longreach_boom.kinematics import beam_frames
from longreach_boom.model import constants_of
from longreach_control.controller import Measured, Wanted
from longreach_control.modal import ModalFeedback
from longreach_control.plant import Situation
from longreach_dynamics.errors import check_within
from longreach_dynamics.linkages import pistons_and_arms
from longreach_machine.control import low_pass
from longreach_machine.trajectory_following import FARTHEST

# Share of the range in which an end is near, how much nearness weighs, and what rates cost [m^2].
_NEAR, _WEIGHT, _DAMPING = 0.1, 20.0, 1e-2
# Singular values below these shares, of the length of the boom in joint rates and of the other one
# in raising, are near those of a stretched boom: rates cost more there, or they would change sign
# from cycle to cycle, and sag along the boom, which pistons can hardly take back, stays.
_STRETCHED, _HARDLY = 0.1, 0.05
# Share of its opening that an operator may ask of a valve, so that it can damp as well: for a
# cylinder that does not follow the regulator would move the others, and the tip would fall.
_OPEN = 0.7
# How fast sag is taken back [1/s], from means over a time [s].
_RAISING, _MEAN = 0.4, 1.5


class TipControl(ModalFeedback):
    """
    Move the tip of a boom.

    All cylinders share ``pump_flow`` [m^3/s], by default that of the boom's pump; with
    ``compensation`` sag under loads is taken back.
    """

    def __init__(
        self, situation: Situation, pump_flow: float | None = None, compensation: bool = True
    ) -> None:
        super().__init__(situation)
        pump = situation.boom.oil.pump
        self._flow = (pump.flow if pump else np.inf) if pump_flow is None else pump_flow
        check_within('pump_flow', self._flow, '(0, inf] m^3/s')
        self._compensation = compensation
        self.still = 0.0  # how long nobody has moved the tip [s]
        self._angles = np.array(situation.angles, dtype=float)
        self._limits = situation.boom.joint_limits()
        length = sum(beam.length for beam in situation.boom.beams)
        self._least = (_STRETCHED * length) ** 2
        N = situation.boom.size
        self._raised = np.zeros(N)
        self.ahead = np.zeros(N)  # how far what is wanted is from the joints [rad]
        constants = constants_of(situation.boom)
        shape = np.reshape(self.plant.rest.q[N:], (-1, N))
        self._bent = [
            (float(w), 0.0, float(slope), 0.0)
            for w, slope in zip(
                np.sum(constants.tip.T * shape, axis=0),
                np.sum(constants.tip_slope.T * shape, axis=0),
                strict=True,
            )
        ]
        self._mean: np.ndarray | None = None
        # At rest with given pistons: M^-1 K q - M^-1 J F = M^-1 T w, for bending and forces F.
        plant = self.plant
        joints = np.diag(1.0 / np.diag(plant.arms))
        system = np.hstack([plant.stiffness[:, N:], -plant.piston])
        moved = np.linalg.solve(system, -plant.stiffness[:, :N] @ joints)
        loaded = np.linalg.solve(system, plant.tip_force[:, 1])
        bending = len(system) - N
        self._tip_by_piston = plant.tip @ np.vstack([joints, moved[:bending]])
        self._tip_by_load = plant.tip[:, N:] @ loaded[:bending]
        self._lift = np.linalg.pinv(self._tip_by_piston, rcond=_HARDLY)
        per_load = loaded[bending:]
        friction = np.array([c.friction.static for c in situation.boom.cylinders])
        weighted = per_load / np.maximum(friction, 1.0) ** 2
        self._weigh = weighted / (weighted @ per_load)

    def drive(self, measured: Measured, velocity: np.ndarray) -> np.ndarray:
        """
        Run a cycle of a joystick; return the commanded spools (N,).

        ``velocity`` (2,) is that of the tip, x forwards and z upwards [m/s].
        """
        T, N = self.situation.sample_time, self.situation.boom.size
        self.still = 0.0 if np.any(velocity) else self.still + T
        linkage = self.plant.actuators.linkage
        rates = self.joint_rates(self._angles, np.asarray(velocity, dtype=float))
        _, (arms,) = pistons_and_arms(linkage, self._angles[None])
        rates = rates / max(1.0, float(self.openings(measured, arms * rates).max()) / _OPEN)
        self._angles = self._angles + rates * T
        (pistons,), (arms,) = pistons_and_arms(linkage, self._angles[None])
        raising = np.zeros(N)
        if self._compensation:
            raising = _RAISING * self._lift @ -self._sag(measured, pistons)
            self._raised = self._raised + raising * T
        ahead = (pistons + self._raised - measured.pistons) / arms
        self.ahead = np.clip(ahead, -FARTHEST, FARTHEST)
        if (excess := ahead - self.ahead).any():
            # What is wanted does not run away from a boom that does not follow, nor does raising,
            # which brings the tip to where these angles put it.
            self._angles = np.clip(self._angles - excess, *self._limits.T)
        return self.cycle(measured, Wanted(pistons + self._raised, arms * rates + raising))

    def _sag(self, measured: Measured, pistons: np.ndarray) -> np.ndarray:
        """Return the mean displacement of the tip (2,) [m] from that of the pistons [m]."""
        seen = np.array([self.forces(measured), measured.pistons - pistons])
        if self._mean is None:
            self._mean, self._first = seen, seen
        self._mean = low_pass(self._mean, seen, self.situation.sample_time, _MEAN)
        force, piston = self._mean - self._first
        return np.asarray(self._tip_by_piston @ piston + self._tip_by_load * (self._weigh @ force))

    def joint_rates(self, angles: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Return the joint rates (N,) [rad/s] for a velocity of the tip, within all limits."""
        jacobian = self._jacobian(angles)
        low, high = self._limits.T
        span = _NEAR * (high - low)
        held = np.zeros(len(angles), dtype=bool)
        rates = np.zeros(len(angles))
        for _ in range(2 * len(angles)):
            free = np.flatnonzero(~held)
            # A joint is heavy near an end that it moves towards.
            ends = [angles - low, high - angles]
            toward = np.select([rates < 0.0, rates > 0.0], ends, math.inf)
            weights = 1.0 + _WEIGHT * np.clip(1.0 - toward / span, 0.0, 1.0) ** 2
            J, inverse = jacobian[:, free], 1.0 / weights[free]
            square = (J * inverse) @ J.T
            near = max(1.0 - np.linalg.eigvalsh(square)[0] / self._least, 0.0)
            square = square + (_DAMPING + 0.25 * self._least * near) * np.eye(2)
            before, rates = rates, np.zeros(len(angles))
            rates[free] = inverse * (J.T @ np.linalg.solve(square, velocity))
            beyond = ((angles <= low) & (rates < 0.0)) | ((angles >= high) & (rates > 0.0))
            held |= beyond
            if not beyond.any() and (np.sign(rates) == np.sign(before)).all():
                break
        rates[held] = 0.0
        return self._share(angles, rates)

    def _share(self, angles: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Return rates in proportion, so that pistons and pump can follow."""
        _, (arms,) = pistons_and_arms(self.plant.actuators.linkage, angles[None])
        speeds = arms * rates
        a = self.plant.actuators
        flow = float(np.sum(np.where(speeds > 0.0, a.head_area, -a.rod_area) * speeds))
        most = self.situation.boom.controller.maximum_velocity
        share = max(flow / self._flow, float(np.abs(speeds).max()) / most, 1.0)
        return np.asarray(rates / share)

    def _jacobian(self, angles: np.ndarray) -> np.ndarray:
        """Return the tip's velocity by joint rates, beams bent as at rest, (2, N) [m]."""
        boom = self.situation.boom
        still, lengths = [0.0] * boom.size, [beam.length for beam in boom.beams]
        frames = beam_frames(lengths, False, list(angles), still, self._bent)
        joints = np.array([complex(frame.origin) for frame in frames])
        turned = 1j * (joints[-1] - joints[:-1])
        return np.array([turned.real, turned.imag])
