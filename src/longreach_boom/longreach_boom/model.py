"""
Equations of motion of the boom: M(q) q'' + c(q, q') + D q' + g(q) = Q, Henikl 2015, (1) to (22).

The boom moves in the vertical x-z plane, x forward, z up; a positive joint angle raises the beam.
Points of the plane are complex numbers x + j z, so that a rotation is a multiplication. With
u = x_i + j w_i(x_i), a point in the frame of beam i, the paper's (1) to (5) are

    r_0^i = d_i + z_i u,    z_1 = e^(j phi_1),    z_(i+1) = z_i c_i e^(j phi_(i+1)),
    d_1 = 0,                d_(i+1) = d_i + z_i (L_i + j w_i(L_i)),

with the rotation at a beam's tip c_i = 1 + j w_i'(L_i) as ``printed``, which stretches, or
c_i = e^(j w_i'(L_i)), ``exact``.

q = (phi_1..phi_N, h^1_1..h^1_N, .., h^F_1..h^F_N), n = N (1 + F); the paper's h^b is h^1, its h^o
is h^2. A column dr/dq_k of the Jacobian is tau_k + lambda_k r wherever r lies outboard of
coordinate k. The inertia, forces and weight of the outboard part therefore enter through five
integrals, accumulated from the tip inwards: int dm, int r dm, int |r|^2 dm, int r'' dm and
int conj(r) r'' dm. The cost is O(n^2).

A truck on springs adds two coordinates after those, heave s and pitch theta. With c, the position
of its centre at rest,

    d_1 = c + j s - e^(j theta) c,    z_1 = e^(j theta) e^(j phi_1).

Their columns are j and j (r - c - j s).

Symbols of the kernels, whose arguments are not checked; "rows" is n, or n + 2 with a truck:

    y         (2 n + ..,)                 q and q'; with a truck the last four entries are its
                                          heave [m], pitch [rad] and their rates
    beam      (N, 7 + 4 F + 3 F^2)        table of the beams, see LENGTH and following
    truck     TruckConstants, or None: it is fixed, and compiled without this part
    printed                               rotation at the tips as printed in the paper
    M, f      (rows, rows), (rows,)       output: lower triangle of the mass matrix; generalised
                                          forces [N m, N]
    P, Q                                  complex factors of tau and lambda
    work      (HELD + N, rows)            workspace; output: Jacobian columns, frames, and
                                          accelerations for q'' = 0
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from longreach_boom.parameters import BoomParameters, Section
from longreach_dynamics.beams import RitzBasis, ritz_basis
from longreach_dynamics.errors import check_within
from longreach_dynamics.hydraulics import Actuators, actuators_of
from longreach_dynamics.hydraulics.actuators import CUSHION_AREA, CUSHION_LENGTH, Column
from longreach_dynamics.kernels import read_only

# Columns of the table of beams, (N, 7 + 4 F + 3 F^2): int sigma x^k dx for k = 0, 1, 2 are MASS,
# MOMENT and INERTIA; FORCE_X and FORCE_Z are an external force at the tip [N]. Then blocks of F
# columns: eta(L), eta'(L), int sigma eta dx, int sigma x eta dx; and of F^2: int sigma eta eta dx,
# int EI eta'' eta'' dx, damping. One array instead of twelve, because numba's reference counting
# of separate arrays took half of the run time.
LENGTH, MASS, MOMENT, INERTIA, JOINT_DAMPING, FORCE_X, FORCE_Z, FUNCTIONS = range(8)


class Load(NamedTuple):
    """A point mass that hangs on a beam."""

    mass: float  # [kg]
    beam: int  # index
    position: float  # along it [m]


class TruckConstants(NamedTuple):
    """Constants of a truck on springs; pairs are of heave and pitch."""

    x: float  # centre of mass, from joint 1 [m]
    z: float  # [m]
    inertia: tuple[float, float]  # [kg, kg m^2]
    stiffness: tuple[float, float]  # [N/m, N m/rad]
    damping: tuple[float, float]  # [N s/m, N m s]


class _Numbers(NamedTuple):
    """The fields of :class:`Constants`."""

    gravity: float  # [m/s^2]
    printed: bool  # rotation at the tips as printed
    functions: int  # F
    beams: np.ndarray  # (N, 7 + 4 F + 3 F^2), see LENGTH and following
    actuators: Actuators
    # None: fixed. Both are compiled apart, so neither costs the other.
    truck: TruckConstants | None


class Constants(_Numbers):
    """Constants of :class:`BoomParameters` for compiled code: N beams, F functions each."""

    __slots__ = ()

    length = Column(LENGTH, 'beams')  # [m]
    mass = Column(MASS, 'beams')  # int sigma dx [kg]
    moment = Column(MOMENT, 'beams')  # int sigma x dx [kg m]
    inertia = Column(INERTIA, 'beams')  # int sigma x^2 dx [kg m^2]
    joint_damping = Column(JOINT_DAMPING, 'beams')  # viscous [N m s]

    def _vectors(self, index: int) -> np.ndarray:
        """Return a block of the beam table with one number for each function, shape (N, F)."""
        first = FUNCTIONS + index * self.functions
        return self.beams[:, first : first + self.functions]

    def _matrices(self, index: int) -> np.ndarray:
        """Return a block of the beam table with one matrix for each beam, shape (N, F, F)."""
        F = self.functions
        first = FUNCTIONS + 4 * F + index * F * F
        return self.beams[:, first : first + F * F].reshape(-1, F, F)

    def pulled(self, forces: np.ndarray) -> Constants:
        """Return these constants with external forces at the tips, x and z (N, 2) [N]."""
        beams = self.beams.copy()
        beams[:, FORCE_X : FORCE_Z + 1] = forces
        return read_only(self._replace(beams=beams))

    @property
    def linkage(self) -> np.ndarray:
        """Rows for :mod:`longreach_dynamics.linkages` (N, 5)."""
        return self.actuators.linkage

    @property
    def tip(self) -> np.ndarray:
        """Values eta(L) (N, F)."""
        return self._vectors(0)

    @property
    def tip_slope(self) -> np.ndarray:
        """Slopes eta'(L) (N, F) [1/m]."""
        return self._vectors(1)

    @property
    def stiffness(self) -> np.ndarray:
        """Int EI eta'' eta'' dx (N, F, F) [N/m]."""
        return self._matrices(1)

    @property
    def damping(self) -> np.ndarray:
        """Damping of the beams (N, F, F) [N s/m]."""
        return self._matrices(2)


@functools.lru_cache(maxsize=64)
def boom_bases(boom: BoomParameters) -> tuple[RitzBasis, ...]:
    """Return the Ritz functions of every beam of a boom."""
    ritz, E = boom.ritz, boom.youngs_modulus
    return tuple(
        _basis(beam.section, E, i == boom.size - 1, ritz.basis, ritz.functions, ritz.order)
        for i, beam in enumerate(boom.beams)
    )


@functools.lru_cache(maxsize=256)
def _basis(section: Section, youngs_modulus: float, *arguments: Any) -> RitzBasis:
    """Return the Ritz functions of a beam; an identification changes one beam at a time."""
    return ritz_basis(section.beam(youngs_modulus), *arguments)


class MassIntegrals(NamedTuple):
    """Integrals over the mass of a beam, loads included, from a position to its tip."""

    moments: tuple[float, float, float]  # int s^k dm for k = 0, 1, 2 [kg m^k]
    eta: np.ndarray  # (F,) int eta dm [kg]
    eta_moment: np.ndarray  # (F,) int s eta dm [kg m]
    matrix: np.ndarray  # (F, F) int eta eta dm [kg]


@functools.lru_cache(maxsize=1024)
def mass_integrals(
    basis: RitzBasis, loads: tuple[Load, ...] = (), start: float = 0.0
) -> MassIntegrals:
    """Return the integrals of a beam and its loads from a position [m] to the tip; read-only."""
    x, weights = basis.beam.gauss(start)
    carried = [load for load in loads if load.position >= start]
    places = np.append(x, [load.position for load in carried])
    masses = np.append(basis.beam.mass_per_length(x) * weights, [load.mass for load in carried])
    eta = basis.at(places)
    first, second, third = (float(np.sum(masses * places**k)) for k in range(3))
    moments = (first, second, third)
    return read_only(
        MassIntegrals(moments, eta @ masses, eta @ (masses * places), (eta * masses) @ eta.T)
    )


def constants_of(
    boom: BoomParameters, loads: tuple[Load, ...] = (), friction: bool = True
) -> Constants:
    """Return the constants of a boom with loads, which are part of its beams' masses."""
    # The cache takes arguments that are given and left out for different ones.
    return _constants_of(boom, loads, friction)


@functools.lru_cache(maxsize=64)
def _constants_of(boom: BoomParameters, loads: tuple[Load, ...], friction: bool) -> Constants:
    for load in loads:
        check_within('beam of a load', load.beam, f'[0, {boom.size})')
        check_within('load', load.mass, '(0, inf) kg')
        boom.beam_at(boom.beams[load.beam].name, load.position, 'load')
    N, F = boom.size, boom.ritz.functions
    bases = boom_bases(boom)
    mass, moment, inertia = np.zeros(N), np.zeros(N), np.zeros(N)
    mass_eta, moment_eta = np.zeros((N, F)), np.zeros((N, F))
    mass_matrix, stiffness = np.zeros((N, F, F)), np.zeros((N, F, F))
    damping = np.zeros((N, F, F))
    for i, (basis, parameters) in enumerate(zip(bases, boom.beams, strict=True)):
        x, weights = basis.beam.gauss()
        outboard = mass_integrals(basis, tuple(load for load in loads if load.beam == i))
        mass[i], moment[i], inertia[i] = outboard.moments
        mass_eta[i], moment_eta[i] = outboard.eta, outboard.eta_moment
        mass_matrix[i] = outboard.matrix
        curvature = basis.at(x, 2)
        stiffness[i] = (curvature * basis.beam.bending_stiffness(x) * weights) @ curvature.T
        if boom.ritz.damping == 'kelvin_voigt':
            damping[i] = parameters.loss_time * stiffness[i]
        else:
            # (8); the functions are orthogonal, (16).
            eta = basis.at(x)
            damping[i] = np.diag(parameters.beam_damping * np.sum(eta**2 * weights, axis=1))
    blocks: list[np.ndarray] = [
        np.array([beam.length for beam in boom.beams])[:, None],
        mass[:, None],
        moment[:, None],
        inertia[:, None],
        np.array([beam.joint_damping for beam in boom.beams])[:, None],
        np.zeros((N, 2)),
        np.stack([basis.at_place(basis.beam.length) for basis in bases]),
        np.stack([basis.at_place(basis.beam.length, 1) for basis in bases]),
        mass_eta,
        moment_eta,
        *(matrices.reshape(N, F * F) for matrices in (mass_matrix, stiffness, damping)),
    ]
    cylinders, scale, truck = boom.cylinders, 1.0 if friction else 0.0, boom.truck
    constants = Constants(
        gravity=boom.gravity,
        printed=boom.ritz.rotation == 'printed',
        functions=F,
        beams=np.ascontiguousarray(np.concatenate(blocks, axis=1)),
        actuators=actuators_of(
            cylinders,
            boom.oil,
            np.stack([c.linkage.row() for c in cylinders]),
            viscous=[scale * c.friction.viscous for c in cylinders],
            coulomb=[scale * c.friction.coulomb for c in cylinders],
            static=[scale * c.friction.static for c in cylinders],
        ),
        truck=None
        if truck is None
        else TruckConstants(
            truck.x,
            truck.z,
            (truck.mass, truck.inertia),
            (truck.heave_stiffness, truck.pitch_stiffness),
            (truck.heave_damping, truck.pitch_damping),
        ),
    )
    for row, cylinder in zip(constants.actuators.table, cylinders, strict=True):
        if cylinder.cushion:
            row[CUSHION_LENGTH] = cylinder.cushion.length
            row[CUSHION_AREA] = cylinder.cushion.area
    return read_only(constants)


# Rows of the workspace: Jacobian columns tau + lambda r, then for each beam its frame and origin,
# the rate of the frame, and the accelerations of both for q'' = 0; real and imaginary parts.
# motion.py uses rows FORCES for forces, CHANGES for accelerations or for changes of velocities by
# impulses, and one row for each joint from HELD on for the inertia of held joints.
TAU, TAU_IM, LAM, LAM_IM, Z, Z_IM, D, D_IM = range(8)
Z_VEL, Z_VEL_IM, Z_ACC, Z_ACC_IM, D_ACC, D_ACC_IM = range(8, 14)
FORCES, CHANGES, HELD = range(14, 17)


@njit
def row_count(p):  # type: ignore[no-untyped-def]
    """Return the number of coordinates, those of a truck on springs included."""
    return p.beams.shape[0] * (1 + p.functions) + (0 if p.truck is None else 2)


@njit
def workspace(N, rows):  # type: ignore[no-untyped-def]
    """Return a workspace (HELD + N, rows) for :func:`mass_and_forces` of N beams."""
    return np.empty((HELD + N, rows))


@njit
def _couple(M, k, last, P, Q, work):  # type: ignore[no-untyped-def]
    """Compute row k of M up to column ``last``, Re(P tau + Q lambda)."""
    p_re, p_im, q_re, q_im = P.real, P.imag, Q.real, Q.imag
    for other in range(last + 1):
        M[k, other] = (
            p_re * work[TAU, other]
            - p_im * work[TAU_IM, other]
            + q_re * work[LAM, other]
            - q_im * work[LAM_IM, other]
        )


@njit
def _couple_truck(M, n, row, P, Q, work):  # type: ignore[no-untyped-def]
    """Compute the inertia between a row and heave and pitch; arguments as for :func:`_couple`."""
    for k in range(n, n + 2):
        tau = complex(work[TAU, k], work[TAU_IM, k])
        M[k, row] = (P * tau + Q * complex(work[LAM, k], work[LAM_IM, k])).real


@njit
def tip_force(y, i, F, beam, z, d):  # type: ignore[no-untyped-def]
    """Return the external force f at the tip r of beam i, and conj(r) f; z, d: its frame."""
    N, w = beam.shape[0], 0.0
    for e in range(F):
        w += beam[i, FUNCTIONS + e] * y[N * (1 + e) + i]
    r = d + z * complex(beam[i, LENGTH], w)
    force = complex(beam[i, FORCE_X], beam[i, FORCE_Z])
    return force, complex(r.real, -r.imag) * force


@njit
def mass_and_forces(y, n, beam, truck, gravity, printed, M, f, work):  # type: ignore[no-untyped-def]
    """
    Compute the lower triangle of M(q), and f = c(q, q') + D q' + g(q).

    Rows are ordered by beam, (phi_1, h_1^1..h_1^F, phi_2, ...), with row i (1 + F) for phi_i, so
    that the coordinates of the chain inboard of a coordinate are the rows before it. Heave and
    pitch of a truck on springs are the last two rows.
    """
    N = beam.shape[0]
    F = n // N - 1
    # Columns of the blocks.
    tip, tip_slope = FUNCTIONS, FUNCTIONS + F
    mass_eta, moment_eta = FUNCTIONS + 2 * F, FUNCTIONS + 3 * F
    mass_matrix = FUNCTIONS + 4 * F
    stiffness, damping = mass_matrix + F * F, mass_matrix + 2 * F * F

    # Outwards: frames z_i and origins d_i, and their accelerations where q'' = 0.
    z, z_vel, z_acc = complex(1.0), complex(0.0), complex(0.0)
    d, d_acc = complex(0.0), complex(0.0)
    if truck is not None:
        heave, pitch, pitch_vel = y[y.size - 4], y[y.size - 3], y[y.size - 1]
        centre = complex(truck.x, truck.z)
        z = complex(math.cos(pitch), math.sin(pitch))
        z_vel, z_acc = complex(0.0, pitch_vel) * z, -pitch_vel * pitch_vel * z
        d, d_acc = centre + complex(0.0, heave) - z * centre, -z_acc * centre
        work[TAU, n], work[TAU_IM, n], work[LAM, n], work[LAM_IM, n] = 0.0, 1.0, 0.0, 0.0
        work[TAU, n + 1], work[TAU_IM, n + 1] = centre.imag + heave, -centre.real
        work[LAM, n + 1], work[LAM_IM, n + 1] = 0.0, 1.0
    for i in range(N):
        turn = complex(math.cos(y[i]), math.sin(y[i]))
        rate = complex(0.0, y[n + i])
        z_acc = (z_acc + 2.0 * rate * z_vel + rate * rate * z) * turn
        z_vel = (z_vel + rate * z) * turn
        z = z * turn
        work[Z, i], work[Z_IM, i] = z.real, z.imag
        work[D, i], work[D_IM, i] = d.real, d.imag
        work[Z_VEL, i], work[Z_VEL_IM, i] = z_vel.real, z_vel.imag
        work[Z_ACC, i], work[Z_ACC_IM, i] = z_acc.real, z_acc.imag
        work[D_ACC, i], work[D_ACC_IM, i] = d_acc.real, d_acc.imag
        row = i * (1 + F)
        # phi_i rotates the outboard part about d_i: lambda = j, tau = -j d_i.
        work[TAU, row], work[TAU_IM, row] = d.imag, -d.real
        work[LAM, row], work[LAM_IM, row] = 0.0, 1.0
        w, w_vel, slope, slope_vel = 0.0, 0.0, 0.0, 0.0
        for e in range(F):
            k = N * (1 + e) + i
            w += beam[i, tip + e] * y[k]
            w_vel += beam[i, tip + e] * y[n + k]
            slope += beam[i, tip_slope + e] * y[k]
            slope_vel += beam[i, tip_slope + e] * y[n + k]
        u = complex(beam[i, LENGTH], w)
        d_acc = d_acc + z_acc * u + complex(0.0, 2.0 * w_vel) * z_vel
        d = d + z * u
        if printed:
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
            # h_i^e translates it by j z eta(L), and rotates it about d_(i+1).
            lam = per_slope * beam[i, tip_slope + e]
            tau = complex(0.0, beam[i, tip + e]) * z - lam * d
            row += 1
            work[TAU, row], work[TAU_IM, row] = tau.real, tau.imag
            work[LAM, row], work[LAM_IM, row] = lam.real, lam.imag
        z_acc = z_acc * bend + 2.0 * z_vel * bend_vel + z * bend_acc
        z_vel = z_vel * bend + z * bend_vel
        z = z * bend

    # Inwards: mass, int r dm, int |r|^2 dm, int r'' dm and int conj(r) r'' dm of the outboard
    # part. Gravity enters as an upward acceleration of the base.
    mass, first, second = 0.0, complex(0.0), 0.0
    push, twist = complex(0.0), complex(0.0)
    for i in range(N - 1, -1, -1):
        base = i * (1 + F)
        z, d = complex(work[Z, i], work[Z_IM, i]), complex(work[D, i], work[D_IM, i])
        conj_z = complex(z.real, -z.imag)
        z_vel = complex(work[Z_VEL, i], work[Z_VEL_IM, i])
        z_acc = complex(work[Z_ACC, i], work[Z_ACC_IM, i])
        acc = complex(work[D_ACC, i], work[D_ACC_IM, i] + gravity)
        stretch = z.real * z.real + z.imag * z.imag
        eta_mass, eta_mass_vel, eta_moment_vel = 0.0, 0.0, 0.0
        square, square_vel = 0.0, 0.0
        if beam[i, FORCE_X] != 0.0 or beam[i, FORCE_Z] != 0.0:
            pull, turn = tip_force(y, i, F, beam, z, d)
            push -= pull
            twist -= turn
        for e in range(F):
            k, row = N * (1 + e) + i, base + 1 + e
            bent, bent_vel, elastic = 0.0, 0.0, 0.0
            for m in range(F):
                other, place = N * (1 + m) + i, e * F + m
                bent += beam[i, mass_matrix + place] * y[other]
                bent_vel += beam[i, mass_matrix + place] * y[n + other]
                elastic += beam[i, stiffness + place] * y[other]
                elastic += beam[i, damping + place] * y[n + other]
            eta_mass += beam[i, mass_eta + e] * y[k]
            eta_mass_vel += beam[i, mass_eta + e] * y[n + k]
            eta_moment_vel += beam[i, moment_eta + e] * y[n + k]
            square += bent * y[k]
            square_vel += bent_vel * y[k]
            # h_i^e moves the part outboard of beam i ...
            conj_tau = complex(work[TAU, row], -work[TAU_IM, row])
            conj_lam = complex(work[LAM, row], -work[LAM_IM, row])
            P = conj_tau * mass + conj_lam * complex(first.real, -first.imag)
            Q = conj_tau * first + conj_lam * second
            for m in range(e + 1):
                other = base + 1 + m
                coupling = P * complex(work[TAU, other], work[TAU_IM, other])
                coupling += Q * complex(work[LAM, other], work[LAM_IM, other])
                M[row, other] = coupling.real + stretch * beam[i, mass_matrix + e * F + m]
            # ... and the beam itself, by j z eta.
            own = complex(0.0, -1.0) * conj_z
            arm = complex(beam[i, moment_eta + e], bent)
            force = conj_tau * push + conj_lam * twist
            force += own * (
                acc * beam[i, mass_eta + e] + z_acc * arm + z_vel * complex(0.0, 2.0 * bent_vel)
            )
            f[row] = force.real + elastic
            P += own * beam[i, mass_eta + e]
            Q += own * (d * beam[i, mass_eta + e] + z * arm)
            _couple(M, row, base, P, Q, work)
            if truck is not None:
                _couple_truck(M, n, row, P, Q, work)
        # Add the beam to the outboard part.
        s1 = complex(beam[i, MOMENT], eta_mass)
        s2 = beam[i, INERTIA] + square
        turned = z * s1
        own_push = acc * beam[i, MASS] + z_acc * s1 + z_vel * complex(0.0, 2.0 * eta_mass_vel)
        twist += (
            complex(d.real, -d.imag) * own_push
            + complex(turned.real, -turned.imag) * acc
            + conj_z * (z_acc * s2 + z_vel * complex(2.0 * square_vel, 2.0 * eta_moment_vel))
        )
        push += own_push
        second += (
            (d.real * d.real + d.imag * d.imag) * beam[i, MASS]
            + 2.0 * (d.real * turned.real + d.imag * turned.imag)
            + stretch * s2
        )
        first += d * beam[i, MASS] + turned
        mass += beam[i, MASS]
        conj_tau = complex(work[TAU, base], -work[TAU_IM, base])
        conj_lam = complex(0.0, -1.0)
        P = conj_tau * mass + conj_lam * complex(first.real, -first.imag)
        Q = conj_tau * first + conj_lam * second
        _couple(M, base, base, P, Q, work)
        if truck is not None:
            _couple_truck(M, n, base, P, Q, work)
        torque = (conj_tau * push + conj_lam * twist).real
        f[base] = torque + beam[i, JOINT_DAMPING] * y[n + i]
    if truck is not None:
        for k in range(2):
            row = n + k
            conj_tau = complex(work[TAU, row], -work[TAU_IM, row])
            conj_lam = complex(work[LAM, row], -work[LAM_IM, row])
            P = conj_tau * mass + conj_lam * complex(first.real, -first.imag)
            Q = conj_tau * first + conj_lam * second
            _couple_truck(M, n, row, P, Q, work)
            M[row, row] += truck.inertia[k]
            f[row] = (conj_tau * push + conj_lam * twist).real
            f[row] += truck.stiffness[k] * y[y.size - 4 + k]
            f[row] += truck.damping[k] * y[y.size - 2 + k]
