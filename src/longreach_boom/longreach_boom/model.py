"""
Equations of motion of the boom: M(q) q'' + c(q, q') + D q' + g(q) = Q, Henikl 2015, (1) to (22).

The boom moves in the vertical x-z plane, x forward, z up; a positive joint angle lifts. A point of
the plane is a complex number x + j z, which makes a rotation a product: with u = x_i + j w_i(x_i) a
place in the frame of beam i, the paper's (1) to (5) read

    r_0^i = d_i + z_i u,    z_1 = e^(j phi_1),    z_(i+1) = z_i c_i e^(j phi_(i+1)),
    d_1 = 0,                d_(i+1) = d_i + z_i (L_i + j w_i(L_i)),

with the rotation at a beam's tip c_i = 1 + j w_i'(L_i) as ``printed``, which stretches, or
c_i = e^(j w_i'(L_i)), ``exact``.

q = (phi_1..phi_N, h^1_1..h^1_N, .., h^F_1..h^F_N), n = N (1 + F); the paper's h^b is h^1, its h^o is
h^2. A column dr/dq_k of the Jacobian is tau_k + lambda_k r at every place outboard of coordinate k.
So inertia, forces and weight of all that lies outboard enter through five sums, gathered from the
tip inwards: int dm, int r dm, int |r|^2 dm, int r'' dm and int conj(r) r'' dm. That costs O(n^2).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_boom.parameters import BoomParameters
from longreach_dynamics.beams import RitzBasis, ritz_basis

__all__ = [
    'Constants',
    'Load',
    'PointMotion',
    'boom_bases',
    'constants_of',
    'mass_and_forces',
    'point_motion',
    'workspace',
]


class Load(NamedTuple):
    """A point mass that hangs on a beam."""

    mass: float  # [kg]
    beam: int  # index
    position: float  # along it [m]


class Constants(NamedTuple):
    """What compiled code needs of :class:`BoomParameters`: N beams, F functions each."""

    gravity: float  # [m/s^2]
    printed: bool  # rotation at the tips as printed
    length: np.ndarray  # (N,) [m]
    mass: np.ndarray  # (N,) int sigma dx [kg]
    moment: np.ndarray  # (N,) int sigma x dx [kg m]
    inertia: np.ndarray  # (N,) int sigma x^2 dx [kg m^2]
    mass_eta: np.ndarray  # (N, F) int sigma eta dx [kg]
    moment_eta: np.ndarray  # (N, F) int sigma x eta dx [kg m]
    mass_matrix: np.ndarray  # (N, F, F) int sigma eta eta dx [kg]
    stiffness: np.ndarray  # (N, F, F) int EI eta'' eta'' dx [N/m]
    damping: np.ndarray  # (N, F, F) [N s/m]
    joint_damping: np.ndarray  # (N,) [N m s]
    tip: np.ndarray  # (N, F) eta(L)
    tip_slope: np.ndarray  # (N, F) eta'(L) [1/m]
    linkage: np.ndarray  # (N, 5) rows for longreach_dynamics.linkages
    stroke: np.ndarray  # (N,) [m]
    head_area: np.ndarray  # (N,) A_1 [m^2]
    rod_area: np.ndarray  # (N,) A_2 [m^2]
    head_volume: np.ndarray  # (N,) V_01 [m^3]
    rod_volume: np.ndarray  # (N,) V_02 [m^3]
    head_opening: np.ndarray  # (N,) A_v1 at full spool [m^2]
    rod_opening: np.ndarray  # (N,) A_v2 at full spool [m^2]
    dead_band: np.ndarray  # (N,)
    spool_rate: np.ndarray  # (N,) inverse time constant [1/s]
    viscous: np.ndarray  # (N,) r_V [N s/m]
    coulomb: np.ndarray  # (N,) r_C [N]
    static: np.ndarray  # (N,) r_S [N]; 0: this piston never sticks
    bulk_modulus: float  # [Pa]
    supply: float  # p_s [Pa]
    tank: float  # p_t [Pa]
    vapour: float  # [Pa]
    flow_coefficient: float  # alpha sqrt(2 / rho)
    laminar: float  # [Pa]


@functools.lru_cache(maxsize=64)
def boom_bases(boom: BoomParameters) -> tuple[RitzBasis, ...]:
    """Return the Ritz functions of every beam of a boom."""
    ritz = boom.ritz
    return tuple(
        ritz_basis(
            beam.beam(boom.youngs_modulus),
            index == boom.size - 1,
            ritz.basis,
            ritz.functions,
            ritz.order,
        )
        for index, beam in enumerate(boom.beams)
    )


@functools.lru_cache(maxsize=64)
def constants_of(
    boom: BoomParameters, loads: tuple[Load, ...] = (), friction: bool = True
) -> Constants:
    """
    Return the constants of a boom that carries loads, with or without friction of its pistons.

    A load is a part of its beam's mass distribution, so it changes numbers only.
    """
    N, F = boom.size, boom.ritz.functions
    bases = boom_bases(boom)
    mass, moment, inertia = np.zeros(N), np.zeros(N), np.zeros(N)
    mass_eta, moment_eta = np.zeros((N, F)), np.zeros((N, F))
    mass_matrix, stiffness = np.zeros((N, F, F)), np.zeros((N, F, F))
    damping = np.zeros((N, F, F))
    for i, (basis, parameters) in enumerate(zip(bases, boom.beams, strict=True)):
        x, weights = basis.beam.gauss()
        # Places and masses: those of the beam, and its loads.
        carried = [load for load in loads if load.beam == i]
        places = np.append(x, [load.position for load in carried])
        masses = np.append(
            basis.beam.mass_per_length(x) * weights, [load.mass for load in carried]
        )
        eta = basis.at(places)
        mass[i], moment[i], inertia[i] = (np.sum(masses * places**k) for k in range(3))
        mass_eta[i], moment_eta[i] = eta @ masses, eta @ (masses * places)
        mass_matrix[i] = (eta * masses) @ eta.T
        curvature = basis.at(x, 2)
        stiffness[i] = (curvature * basis.beam.bending_stiffness(x) * weights) @ curvature.T
        if boom.ritz.damping == 'kelvin_voigt':
            damping[i] = parameters.loss_time * stiffness[i]
        else:
            # (8); the functions are orthogonal, (16).
            eta = basis.at(x)
            damping[i] = np.diag(parameters.beam_damping * np.sum(eta**2 * weights, axis=1))
    cylinders, oil = boom.cylinders, boom.oil
    scale = 1.0 if friction else 0.0
    return Constants(
        gravity=boom.gravity,
        printed=boom.ritz.rotation == 'printed',
        length=np.array([beam.length for beam in boom.beams]),
        mass=mass,
        moment=moment,
        inertia=inertia,
        mass_eta=mass_eta,
        moment_eta=moment_eta,
        mass_matrix=mass_matrix,
        stiffness=stiffness,
        damping=damping,
        joint_damping=np.array([beam.joint_damping for beam in boom.beams]),
        tip=np.stack([basis.at(basis.beam.length) for basis in bases]),
        tip_slope=np.stack([basis.at(basis.beam.length, 1) for basis in bases]),
        linkage=np.stack([c.linkage.row() for c in cylinders]),
        stroke=np.array([c.stroke for c in cylinders]),
        head_area=np.array([c.head_area for c in cylinders]),
        rod_area=np.array([c.rod_area for c in cylinders]),
        head_volume=np.array([c.head_volume for c in cylinders]),
        rod_volume=np.array([c.rod_volume for c in cylinders]),
        head_opening=np.array([c.valve.area for c in cylinders]),
        rod_opening=np.array([c.valve.area * c.valve.area_ratio for c in cylinders]),
        dead_band=np.array([c.valve.dead_band for c in cylinders]),
        spool_rate=np.array([1.0 / c.valve.time_constant for c in cylinders]),
        viscous=scale * np.array([c.friction.viscous for c in cylinders]),
        coulomb=scale * np.array([c.friction.coulomb for c in cylinders]),
        static=scale * np.array([c.friction.static for c in cylinders]),
        bulk_modulus=oil.bulk_modulus,
        supply=oil.supply_pressure,
        tank=oil.tank_pressure,
        vapour=oil.vapour_pressure,
        flow_coefficient=oil.contraction * math.sqrt(2.0 / oil.density),
        laminar=oil.laminar_pressure,
    )


@njit
def workspace(n):  # type: ignore[no-untyped-def]
    """Return what :func:`mass_and_forces` keeps its intermediate results in."""
    return np.empty((7, n), dtype=np.complex128)


@njit
def _couple(M, k, i, shape, P, Q, tau, lam):  # type: ignore[no-untyped-def]
    """Write the inertia between coordinate k of beam i and phi_1..phi_i, h_1..h_(i-1)."""
    N, F = shape
    for other in range(i + 1):
        M[k, other] = M[other, k] = (P * tau[other] + Q * lam[other]).real
    for m in range(F):
        for other in range(N * (1 + m), N * (1 + m) + i):
            M[k, other] = M[other, k] = (P * tau[other] + Q * lam[other]).real


@njit
def mass_and_forces(q, v, p, M, f, work):  # type: ignore[no-untyped-def]
    """
    Write M(q) into ``M`` and c(q, q') + D q' + g(q) into ``f``.

    Parameters
    ----------
    q, v, f : ndarray, shape (n,)
    p : Constants
    M : ndarray, shape (n, n)
    work : ndarray from :func:`workspace`
    """
    shape = p.mass_eta.shape
    N, F = shape
    tau, lam, frame, origin = work[0], work[1], work[2], work[3]
    turn_vel, turn_acc, origin_acc = work[4], work[5], work[6]

    # Outwards: frames z_i and origins d_i, and their accelerations where q'' = 0.
    z, z_vel, z_acc = complex(1.0), complex(0.0), complex(0.0)
    d, d_acc = complex(0.0), complex(0.0)
    for i in range(N):
        turn = complex(math.cos(q[i]), math.sin(q[i]))
        rate = complex(0.0, v[i])
        z_acc = (z_acc + 2.0 * rate * z_vel + rate * rate * z) * turn
        z_vel = (z_vel + rate * z) * turn
        z = z * turn
        frame[i], origin[i] = z, d
        turn_vel[i], turn_acc[i], origin_acc[i] = z_vel, z_acc, d_acc
        lam[i] = 1j
        tau[i] = -1j * d
        w, w_vel, slope, slope_vel = 0.0, 0.0, 0.0, 0.0
        for e in range(F):
            k = N * (1 + e) + i
            w += p.tip[i, e] * q[k]
            w_vel += p.tip[i, e] * v[k]
            slope += p.tip_slope[i, e] * q[k]
            slope_vel += p.tip_slope[i, e] * v[k]
        u = complex(p.length[i], w)
        d_acc = d_acc + z_acc * u + complex(0.0, 2.0 * w_vel) * z_vel
        d = d + z * u
        if p.printed:
            bend = complex(1.0, slope)
            bend_vel = complex(0.0, slope_vel)
            bend_acc = complex(0.0)
            per_slope = complex(slope, 1.0) / (1.0 + slope * slope)
        else:
            bend = complex(math.cos(slope), math.sin(slope))
            bend_vel = complex(0.0, slope_vel) * bend
            bend_acc = -slope_vel * slope_vel * bend
            per_slope = complex(0.0, 1.0)
        for e in range(F):
            k = N * (1 + e) + i
            lam[k] = per_slope * p.tip_slope[i, e]
            tau[k] = complex(0.0, p.tip[i, e]) * z - lam[k] * d
        z_acc = z_acc * bend + 2.0 * z_vel * bend_vel + z * bend_acc
        z_vel = z_vel * bend + z * bend_vel
        z = z * bend

    # Inwards: mass, int r dm, int |r|^2 dm, int r'' dm and int conj(r) r'' dm of what lies
    # outboard. Gravity is an acceleration of the ground.
    mass, first, second = 0.0, complex(0.0), 0.0
    push, twist = complex(0.0), complex(0.0)
    for i in range(N - 1, -1, -1):
        z, d = frame[i], origin[i]
        conj_z = z.conjugate()
        stretch = z.real * z.real + z.imag * z.imag
        acc = origin_acc[i] + complex(0.0, p.gravity)
        eta_mass, eta_mass_vel, eta_moment_vel = 0.0, 0.0, 0.0
        square, square_vel = 0.0, 0.0
        for e in range(F):
            k = N * (1 + e) + i
            bent, bent_vel = 0.0, 0.0
            for m in range(F):
                other = N * (1 + m) + i
                bent += p.mass_matrix[i, e, m] * q[other]
                bent_vel += p.mass_matrix[i, e, m] * v[other]
            eta_mass += p.mass_eta[i, e] * q[k]
            eta_mass_vel += p.mass_eta[i, e] * v[k]
            eta_moment_vel += p.moment_eta[i, e] * v[k]
            square += bent * q[k]
            square_vel += bent_vel * q[k]
            # h_i^e moves what lies outboard of beam i ...
            conj_tau, conj_lam = tau[k].conjugate(), lam[k].conjugate()
            P = conj_tau * mass + conj_lam * first.conjugate()
            Q = conj_tau * first + conj_lam * second
            for m in range(e + 1):
                other = N * (1 + m) + i
                M[k, other] = M[other, k] = (
                    P * tau[other] + Q * lam[other]
                ).real + stretch * p.mass_matrix[i, e, m]
            # ... and the beam itself, by j z eta.
            own = complex(0.0, -1.0) * conj_z
            arm = complex(p.moment_eta[i, e], bent)
            total = (conj_tau * push + conj_lam * twist).real
            total += (
                own
                * (
                    acc * p.mass_eta[i, e]
                    + turn_acc[i] * arm
                    + turn_vel[i] * complex(0.0, 2.0 * bent_vel)
                )
            ).real
            for m in range(F):
                other = N * (1 + m) + i
                total += p.stiffness[i, e, m] * q[other] + p.damping[i, e, m] * v[other]
            f[k] = total
            P += own * p.mass_eta[i, e]
            Q += own * (d * p.mass_eta[i, e] + z * arm)
            _couple(M, k, i, shape, P, Q, tau, lam)
        # The beam joins what lies outboard of its joint.
        turned = z * complex(p.moment[i], eta_mass)
        spread = p.inertia[i] + square
        own_push = (
            acc * p.mass[i]
            + turn_acc[i] * complex(p.moment[i], eta_mass)
            + turn_vel[i] * complex(0.0, 2.0 * eta_mass_vel)
        )
        twist += (
            d.conjugate() * own_push
            + turned.conjugate() * acc
            + conj_z
            * (turn_acc[i] * spread + turn_vel[i] * 2.0 * complex(square_vel, eta_moment_vel))
        )
        push += own_push
        second += (
            (d.real * d.real + d.imag * d.imag) * p.mass[i]
            + 2.0 * (d.conjugate() * turned).real
            + stretch * spread
        )
        first += d * p.mass[i] + turned
        mass += p.mass[i]
        conj_tau, conj_lam = tau[i].conjugate(), lam[i].conjugate()
        P = conj_tau * mass + conj_lam * first.conjugate()
        Q = conj_tau * first + conj_lam * second
        _couple(M, i, i, shape, P, Q, tau, lam)
        f[i] = (conj_tau * push + conj_lam * twist).real + p.joint_damping[i] * v[i]


class PointMotion(NamedTuple):
    """A place of the boom, for states of shape (..., n)."""

    position: np.ndarray  # (..., 2) x and z [m]
    velocity: np.ndarray  # (..., 2) [m/s]
    inclination: np.ndarray  # (...) angle of the bent beam to the x axis [rad]


def point_motion(
    boom: BoomParameters, q: np.ndarray, v: np.ndarray, beam: int, x: float, offset: float = 0.0
) -> PointMotion:
    """
    Return where a place along a beam is, and how it moves; Henikl 2015, (1) to (5), (39).

    Parameters
    ----------
    boom : BoomParameters
    q, v : ndarray, shape (..., n)
        Coordinates and their rates, one state or many.
    beam : int
        Index.
    x : float
        Along the beam [m].
    offset : float
        From the neutral line along the normal [m]: it follows the slope of the bent beam.
    """
    N = boom.size
    bases = boom_bases(boom)
    printed = boom.ritz.rotation == 'printed'
    q, v = np.asarray(q), np.asarray(v)
    z, z_vel = np.ones(q.shape[:-1], complex), np.zeros(q.shape[:-1], complex)
    d, d_vel = np.zeros_like(z), np.zeros_like(z)
    angle = np.zeros(q.shape[:-1])
    for i in range(beam + 1):
        turn, rate = np.exp(1j * q[..., i]), 1j * v[..., i]
        z_vel = (z_vel + rate * z) * turn
        z = z * turn
        place = x if i == beam else bases[i].beam.length
        h, h_vel = q[..., N + i :: N], v[..., N + i :: N]
        eta, eta_slope = bases[i].at(place), bases[i].at(place, 1)
        slope, slope_vel = h @ eta_slope, h_vel @ eta_slope
        angle = angle + q[..., i] + slope
        u, u_vel = place + 1j * (h @ eta), 1j * (h_vel @ eta)
        if i == beam:
            u = u + offset * (1j - slope)
            u_vel = u_vel - offset * slope_vel
        d_vel = d_vel + z_vel * u + z * u_vel
        d = d + z * u
        bend = 1.0 + 1j * slope if printed else np.exp(1j * slope)
        bend_vel = 1j * slope_vel if printed else 1j * slope_vel * bend
        z_vel = z_vel * bend + z * bend_vel
        z = z * bend
    return PointMotion(
        np.stack([d.real, d.imag], axis=-1), np.stack([d_vel.real, d_vel.imag], axis=-1), angle
    )
