"""
Bending of the beams at given positions: strain gauge readings, and stress of the drawn beams.

``ritz.strain: moment`` computes the curvature from the bending moment of the outboard part,
EI w'' = -B(x); ``curvature`` computes it from the Ritz functions, w'' = sum_e h_e eta_e''(x),
Henikl 2015, (28). Second derivatives of a few functions are much less accurate than the functions;
the moment contains only deflections, slopes and accelerations. With r_x the point x of the bent
beam and a = r'' + j g,

    M(x) = int Im(conj(r - r_x) a) dm   over the mass outboard of x, loads included,
    D(x) = int_x^L (s - x) d_w w'(s, t) ds   (w' the rate of w; the damping (8)),
    B(x) = M(x) + D(x)                                     from the support x_m on,
    B(x) = M(x) + D(x) - (1 - x / x_m) (M(0) + D(0))       inboard of it,

because the root is a pin, B(0) = 0: the cylinder at x_m, whose force is taken as perpendicular to
the beam, carries the moment of the outboard part. With ``damping: kelvin_voigt`` D is zero,
and the rate of w'' times T EI carries a part of B.

Accelerations follow from the equations of motion for the state and the modes of its pistons.

Symbols of the kernels beside those of :mod:`longreach_boom.motion`: ``table`` and ``first`` are
those of :class:`_Sections`, with P sections.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_boom.model import (
    CHANGES,
    D_ACC,
    D_ACC_IM,
    D_IM,
    FORCE_X,
    FORCE_Z,
    LAM,
    LAM_IM,
    TAU,
    TAU_IM,
    Z_ACC,
    Z_ACC_IM,
    Z_IM,
    Z_VEL,
    Z_VEL_IM,
    D,
    Load,
    Z,
    boom_bases,
    constants_of,
    mass_integrals,
    row_count,
    tip_force,
    workspace,
)
from longreach_boom.motion import _derivative
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import BoomState
from longreach_dynamics.kernels import kernel, read_only

# Columns of the table of sections: position x, EI, share of the moment at the root that the
# support carries, loss time, int s^k dm outboard for k = 0, 1, 2. Then blocks of F columns: eta,
# eta'', and outboard int eta dm, int s eta dm, int (s - x) d_w eta ds; and of F^2: int eta eta dm.
_PLACE, _STIFFNESS, _SHARE, _LOSS_TIME, _MASS, _MOMENT, _INERTIA, _FUNCTIONS = range(8)


class _Sections(NamedTuple):
    """Sections of all beams, in order; the first one of each beam is its root."""

    table: np.ndarray  # (P, 7 + 5 F + F^2), see _PLACE and following
    first: np.ndarray  # (N + 1,) of int64: the row of each root, then P
    asked: np.ndarray  # of int64: the requested rows, without these roots


def strains(boom: BoomParameters, state: BoomState, friction: bool = True) -> np.ndarray:
    """Return gauge readings k_SG w'' + b_SG (..., N) of states with the same loads and forces."""
    places, gains, biases = _gauges(boom)
    return np.asarray(curvatures(boom, state, places, friction) * gains + biases)


@functools.lru_cache(maxsize=64)
def _gauges(boom: BoomParameters) -> tuple[tuple[tuple[float], ...], np.ndarray, np.ndarray]:
    """Return positions [m], gains [m] and biases of the gauges."""
    gauges = [beam.strain_gauge for beam in boom.beams]
    gains, biases = (np.array([getattr(g, name) for g in gauges]) for name in ('gain', 'bias'))
    return read_only((tuple((gauge.position,) for gauge in gauges), gains, biases))


def curvatures(
    boom: BoomParameters,
    state: BoomState,
    places: tuple[tuple[float, ...], ...],
    friction: bool = True,
) -> np.ndarray:
    """Return w'' (..., P) [1/m] at places along each beam [m] by the boom's method."""
    sections = _sections(boom, state.loads, places)
    y = np.ascontiguousarray(np.reshape(state.y, (-1, state.y.shape[-1])))
    modes = np.ascontiguousarray(np.reshape(state.modes, (-1, boom.size)))
    bent = np.empty((len(y), len(sections.table)))
    constants = constants_of(boom, state.loads, friction)
    if state.forces is not None:
        constants = constants.pulled(state.forces)
    fill_curvatures(
        y, modes, constants, sections.table, sections.first, boom.ritz.strain == 'moment', bent
    )
    return np.reshape(bent[:, sections.asked], (*state.y.shape[:-1], sections.asked.size))


@functools.lru_cache(maxsize=64)
def _sections(
    boom: BoomParameters, loads: tuple[Load, ...], places: tuple[tuple[float, ...], ...]
) -> _Sections:
    """Return the table of the sections of all beams."""
    rows: list[np.ndarray] = []
    first = []
    distributed = boom.ritz.damping == 'distributed'
    for i, (basis, beam, own) in enumerate(zip(boom_bases(boom), boom.beams, places, strict=True)):
        carried = tuple(load for load in loads if load.beam == i)
        first.append(len(rows))
        for x in (0.0, *own):
            outboard = mass_integrals(basis, carried, x)
            s, weights = basis.beam.gauss(x)
            damped = beam.beam_damping * distributed * (s - x) * weights
            share = max(0.0, 1.0 - x / beam.support) if beam.support else 0.0
            loss_time = 0.0 if distributed else beam.loss_time
            stiffness = float(basis.beam.bending_stiffness(np.array([x]))[0])
            blocks = [
                np.array([x, stiffness, share, loss_time, *outboard.moments]),
                basis.at_place(x),
                basis.at_place(x, 2),
                outboard.eta,
                outboard.eta_moment,
                basis.at(s) @ damped,
                outboard.matrix.ravel(),
            ]
            rows.append(np.concatenate(blocks))
    asked = [row for row in range(len(rows)) if row not in first]
    ends = np.array([*first, len(rows)], dtype=np.int64)
    return read_only(_Sections(np.array(rows), ends, np.array(asked, dtype=np.int64)))


@njit
def _accelerate(p, N, work):  # type: ignore[no-untyped-def]
    """Add q'' and gravity to the accelerations of the frames in ``work``, those for q'' = 0."""
    # A column of the Jacobian is tau + lambda r, so sums of them give r'' of any point r.
    shift, spin, width = complex(0.0, p.gravity), complex(0.0), 1 + p.functions
    for row in range(N * width, work.shape[1]):
        # The truck on springs.
        shift += complex(work[TAU, row], work[TAU_IM, row]) * work[CHANGES, row]
        spin += complex(work[LAM, row], work[LAM_IM, row]) * work[CHANGES, row]
    for i in range(N):
        z, d = complex(work[Z, i], work[Z_IM, i]), complex(work[D, i], work[D_IM, i])
        for row in range(i * width, (i + 1) * width):
            shift += complex(work[TAU, row], work[TAU_IM, row]) * work[CHANGES, row]
            spin += complex(work[LAM, row], work[LAM_IM, row]) * work[CHANGES, row]
            if row == i * width:
                # The joint moves this frame; the functions move the part outboard of the beam.
                z_acc, d_acc = spin * z, shift + spin * d
                work[Z_ACC, i] += z_acc.real
                work[Z_ACC_IM, i] += z_acc.imag
                work[D_ACC, i] += d_acc.real
                work[D_ACC_IM, i] += d_acc.imag


@njit
def _moments(y, p, table, first, work, moments):  # type: ignore[no-untyped-def]
    """Compute moments (P,) = M(x) + D(x) at all sections [N m]; ``work`` is from _accelerate."""
    N, F = first.size - 1, p.functions
    n = N * (1 + F)
    mass_eta, moment_eta = _FUNCTIONS + 2 * F, _FUNCTIONS + 3 * F
    damping, matrix = _FUNCTIONS + 4 * F, _FUNCTIONS + 5 * F
    push, twist = complex(0.0), complex(0.0)
    for i in range(N - 1, -1, -1):
        z, d = complex(work[Z, i], work[Z_IM, i]), complex(work[D, i], work[D_IM, i])
        z_vel = complex(work[Z_VEL, i], work[Z_VEL_IM, i])
        z_acc = complex(work[Z_ACC, i], work[Z_ACC_IM, i])
        d_acc = complex(work[D_ACC, i], work[D_ACC_IM, i])
        own_push, own_twist = complex(0.0), complex(0.0)
        if p.beams[i, FORCE_X] != 0.0 or p.beams[i, FORCE_Z] != 0.0:
            pull, turn = tip_force(y, i, F, p.beams, z, d)
            push -= pull
            twist -= turn
        # The root comes last: the whole beam lies outboard of it.
        for row in range(first[i + 1] - 1, first[i] - 1, -1):
            w, damped = 0.0, 0.0
            first_w, first_vel, first_acc, moment_vel, moment_acc = 0.0, 0.0, 0.0, 0.0, 0.0
            square, square_vel, square_acc = 0.0, 0.0, 0.0
            for e in range(F):
                k = N * (1 + e) + i
                h, vel, acc = y[k], y[n + k], work[CHANGES, i * (1 + F) + 1 + e]
                w += table[row, _FUNCTIONS + e] * h
                damped += table[row, damping + e] * vel
                first_w += table[row, mass_eta + e] * h
                first_vel += table[row, mass_eta + e] * vel
                first_acc += table[row, mass_eta + e] * acc
                moment_vel += table[row, moment_eta + e] * vel
                moment_acc += table[row, moment_eta + e] * acc
                bent = 0.0
                for m in range(F):
                    bent += table[row, matrix + e * F + m] * y[N * (1 + m) + i]
                square += bent * h
                square_vel += bent * vel
                square_acc += bent * acc
            # int a dm and int conj(r) a dm over the beam, with u = s + j w and r = d + z u.
            mass, moment, inertia = table[row, _MASS], table[row, _MOMENT], table[row, _INERTIA]
            own_push = d_acc * mass + z_acc * complex(moment, first_w)
            own_push += z_vel * complex(0.0, 2.0 * first_vel) + z * complex(0.0, first_acc)
            turned = d_acc * complex(moment, -first_w) + z_acc * (inertia + square)
            turned += z_vel * complex(2.0 * square_vel, 2.0 * moment_vel)
            turned += z * complex(square_acc, moment_acc)
            own_twist = complex(d.real, -d.imag) * own_push + complex(z.real, -z.imag) * turned
            place = d + z * complex(table[row, _PLACE], w)
            lever = complex(place.real, -place.imag) * (push + own_push)
            moments[row] = (twist + own_twist - lever).imag + damped
        push += own_push
        twist += own_twist


@kernel
def fill_curvatures(states, modes, p, table, first, by_moment, bent):  # type: ignore[no-untyped-def]
    """Compute curvatures (rows, P) [1/m] by the bending moment, or by the Ritz functions."""
    N, F = modes.shape[1], p.functions
    n, curvature, rows = N * (1 + F), _FUNCTIONS + F, row_count(p)
    M, work, spools = np.empty((rows, rows)), workspace(N, rows), np.zeros(N)
    dy = np.empty(states.shape[1])
    for k in range(states.shape[0]):
        y = states[k]
        if by_moment:
            _derivative(y, modes[k], spools, p, M, work, dy)
            _accelerate(p, N, work)
            _moments(y, p, table, first, work, bent[k])
        for i in range(N):
            # From the tip inwards, so that the moment at the root is overwritten last.
            for row in range(first[i + 1] - 1, first[i] - 1, -1):
                by_functions, rate = 0.0, 0.0
                for e in range(F):
                    by_functions += table[row, curvature + e] * y[N * (1 + e) + i]
                    rate += table[row, curvature + e] * y[n + N * (1 + e) + i]
                if by_moment:
                    moment = bent[k, row] - table[row, _SHARE] * bent[k, first[i]]
                    carried = -moment / table[row, _STIFFNESS]
                    bent[k, row] = carried - table[row, _LOSS_TIME] * rate
                else:
                    bent[k, row] = by_functions
