"""
Static equilibrium: deflections, cylinder forces and pressures of a boom at rest.

At given joint angles the deflections h are those for which g(q) is zero for every h; the cylinders
balance g(q) of the angles: F_i = g_i / f_i'(phi_i), Henikl 2015, (20) and (22). The relieved side,
usually the rod side, has the preload pressure; the pressure of the other follows from the force.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longreach_boom.kinematics import point_motion, tip_angles
from longreach_boom.model import Constants, Load, constants_of
from longreach_boom.motion import STEEPEST, inertia
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import BoomState
from longreach_boom.strain import strains
from longreach_dynamics.errors import LongreachError
from longreach_dynamics.hydraulics import holding_pressures
from longreach_dynamics.hydraulics.friction import STUCK
from longreach_dynamics.linkages import pistons_and_arms


class Equilibrium(NamedTuple):
    """A boom at rest."""

    q: np.ndarray  # (n,) coordinates
    forces: np.ndarray  # (N,) of the cylinders [N]
    head_pressures: np.ndarray  # (N,) p_1 [Pa]
    rod_pressures: np.ndarray  # (N,) p_2 [Pa]
    tip: np.ndarray  # (2,) x and z [m]
    truck: np.ndarray  # (2,) heave [m] and pitch [rad]; (0,) for a fixed truck

    @property
    def coordinates(self) -> np.ndarray:
        """Return q, heave and pitch."""
        return np.concatenate([self.q, self.truck])

    def state(self, spools: np.ndarray) -> np.ndarray:
        """Return y of this boom at rest with spools (N,), see longreach_boom.motion."""
        still, pressures = np.zeros(self.q.size), (self.head_pressures, self.rod_pressures)
        return np.concatenate(
            [self.q, still, *pressures, spools, self.truck, np.zeros(self.truck.size)]
        )


def potential_forces(q: np.ndarray, constants: Constants) -> np.ndarray:
    """Return g(q) of Henikl 2015, (22), shape (n,); with a truck of q, heave and pitch."""
    size = q.size
    n = size - (0 if constants.truck is None else 2)
    M, g = np.empty((size, size)), np.empty(size)
    inertia(np.concatenate([q[:n], np.zeros(n), q[n:], np.zeros(size - n)]), constants, M, g)
    return g


def tangent_stiffness(q: np.ndarray, constants: Constants) -> np.ndarray:
    """Return dg/dq (n, n) by central differences of g, made symmetric like the Hessian of V."""
    n = q.size
    K = np.empty((n, n))
    for k in range(n):
        delta = np.zeros(n)
        # Balances truncation and rounding errors of second-order differences.
        delta[k] = 1e-5
        K[:, k] = potential_forces(q + delta, constants) - potential_forces(q - delta, constants)
        K[:, k] /= 2e-5
    return (K + K.T) / 2.0


def equilibrium(
    boom: BoomParameters, angles: np.ndarray, loads: tuple[Load, ...] = ()
) -> Equilibrium:
    """Return the equilibrium at joint angles (N,) [rad]; LongreachError for too weak beams."""
    boom.check_pose(angles)
    constants = constants_of(boom, loads)
    N = boom.size
    n = N * (1 + boom.ritz.functions)
    # Newton's method solves for heave and pitch of a truck on springs as for the deflections.
    q = np.concatenate([angles, np.zeros(n - N + (2 if boom.truck else 0))])
    reach = sum(beam.length for beam in boom.beams)
    scale = float(constants.mass.sum()) * max(boom.gravity, 1e-9)
    for _ in range(50):
        residual = potential_forces(q, constants)[N:]
        K = tangent_stiffness(q, constants)[N:, N:]
        try:
            change = np.linalg.solve(K, residual)
        except np.linalg.LinAlgError:
            # Singular to rounding: springs that are too weak by many powers of ten.
            break
        q[N:] -= change
        # Newton's method has converged when the change is of the order of rounding.
        if np.abs(change).max() < 1e-14 * reach:
            break
        if not np.all(np.isfinite(q)) or np.abs(q[N:]).max() > reach:
            break
    residual = potential_forces(q, constants)[N:]
    settled = bool(np.abs(residual).max() < 1e-9 * scale)
    # Newton's method may also converge to saddle points, and to large deflections.
    settled = settled and bool(np.abs(tip_angles(boom, q[:n])[1]).max() < STEEPEST)
    settled = settled and np.linalg.eigvalsh(K).min() > 0.0
    if not settled:
        weak, raised = 'the beams', 'second_moment'
        if boom.truck:
            weak, raised = (
                'beams or springs of the truck',
                "second_moment, the truck's stiffnesses,",
            )
        raise LongreachError(
            'no static equilibrium found at the angles'
            f' {np.degrees(angles).round(3).tolist()} deg: {weak} are too weak for'
            f' this weight; raise {raised} or lower mass and load'
        )
    g = potential_forces(q, constants)
    _, arms = pistons_and_arms(constants.linkage, q[None, :N])
    forces = g[:N] / arms[0]
    head, rod = holding_pressures(forces, boom.cylinders, boom.oil)
    truck, end = q[n:], boom.beams[-1].length
    moved = np.append(truck, np.zeros(2)) if boom.truck else None
    tip = point_motion(boom, q[:n], np.zeros(n), N - 1, end, truck=moved).position
    return Equilibrium(q[:n], forces, head, rod, tip, truck)


def beyond_relief(boom: BoomParameters, head: np.ndarray, rod: np.ndarray) -> list[str]:
    """Return the cylinders whose relief valves open at pressures [Pa] of both sides, (N,)."""
    return [
        c.name
        for i, c in enumerate(boom.cylinders)
        if c.relief is not None and (head[i] > c.relief.head or rod[i] > c.relief.rod)
    ]


def static_row(
    boom: BoomParameters, angles: np.ndarray, loads: tuple[Load, ...] = ()
) -> dict[str, Any]:
    """Return an equilibrium as numbers and lists in SI units, with overloaded cylinders."""
    rest = equilibrium(boom, angles, loads)
    constants = constants_of(boom, loads)
    N = boom.size
    at_rest = rest.state(np.zeros(N))
    strain = strains(boom, BoomState(at_rest, np.full(N, STUCK, dtype=np.int64), loads))
    deflection = [float(rest.q[N + i :: N] @ constants.tip[i]) for i in range(N)]
    share = rest.forces / (boom.oil.supply_pressure * constants.actuators.head_area)
    highest = np.maximum(rest.head_pressures, rest.rod_pressures)
    return {
        'angles': np.asarray(angles).tolist(),
        'force': rest.forces.tolist(),
        'force_share': share.tolist(),
        'head_pressure': rest.head_pressures.tolist(),
        'rod_pressure': rest.rod_pressures.tolist(),
        'deflection': deflection,
        'strain': strain.tolist(),
        'tip': rest.tip.tolist(),
        'beyond_supply': [
            cylinder.name
            for cylinder, pressure in zip(boom.cylinders, highest, strict=True)
            if pressure > boom.oil.supply_pressure
        ],
        'beyond_relief': beyond_relief(boom, rest.head_pressures, rest.rod_pressures),
    }
