"""
Kinematics of planar chains: joints to places, and places to joints within limits.

Conventions are those of :mod:`longreach_dynamics.planar_chain`: x forward, z up, relative joint
angles, positive ones lift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from longreach_dynamics.errors import InputError

# A pose is found when no component is further off than this [m] or [rad].
_CLOSE = 1e-6
_DIFFERENCE = 1e-7
# Poses that are drawn, in which searches begin.
_STARTS = 4


def joint_places(lengths: Sequence[float], angles: np.ndarray) -> np.ndarray:
    """
    Return the places of all joints and of the tip of a rigid chain, x + j z [m], (..., n + 1).

    ``lengths`` (n,) [m], relative joint angles (..., n) [rad]; the first joint is at the origin.
    """
    links = np.asarray(lengths) * np.exp(1j * np.cumsum(angles, axis=-1))
    start = np.zeros((*links.shape[:-1], 1), complex)
    return np.concatenate([start, np.cumsum(links, axis=-1)], axis=-1)


def solve_pose(
    place: Callable[[np.ndarray], np.ndarray],
    target: Sequence[float] | np.ndarray,
    limits: np.ndarray,
    start: np.ndarray,
    what: str = 'tip',
) -> np.ndarray:
    """
    Return joint angles (n,) that bring a tip to a place: inverse kinematics within limits.

    Of all such poses, one whose angles differ least from ``start`` (n,) [rad]: by sequential
    quadratic programming, begun there and in other poses within the limits. ``place`` takes angles
    (n,) within the limits, and returns the quantities of ``target`` (m,): x and z of a tip [m],
    and possibly an attitude [rad]. ``limits`` (n, 2) [rad]; a joint whose limits coincide stays
    there. InputError, with ``what`` for the quantity, when no pose is found, with the nearest
    place that was; for limits that are not in order.
    """
    # Only here: SciPy's optimisers would add a quarter of a second to the start of every command.
    from scipy.optimize import least_squares, minimize

    wanted, (low, high) = np.asarray(target, dtype=float), np.asarray(limits, dtype=float).T
    if not np.isfinite(wanted).all():
        raise InputError(f'{what} = {wanted.tolist()}, allowed: finite numbers')
    for k, (least, most) in enumerate(zip(low, high, strict=True)):
        if not least <= most:
            raise InputError(
                f'limits of joint {k + 1} = {least:g} to {most:g} rad, allowed: the upper one at'
                ' least the lower one'
            )
    free = high - low > 2.0 * _DIFFERENCE
    if not free.all():
        pose = np.clip(start, low, high)

        def placed(angles: np.ndarray) -> np.ndarray:
            whole = pose.copy()
            whole[free] = angles
            return np.asarray(place(whole))

        pose[free] = solve_pose(placed, wanted, np.asarray(limits)[free], pose[free], what)
        return np.asarray(pose)

    def miss(angles: np.ndarray) -> np.ndarray:
        return np.asarray(place(np.clip(angles, low, high)) - wanted)

    def slopes(angles: np.ndarray) -> np.ndarray:
        here, columns = np.clip(angles, low, high), []
        for i in range(here.size):
            # Towards the inside, so that the limits are kept.
            step = _DIFFERENCE if here[i] + _DIFFERENCE <= high[i] else -_DIFFERENCE
            moved = here.copy()
            moved[i] += step
            columns.append((place(moved) - place(here)) / step)
        return np.stack(columns, axis=1)

    inside = np.clip(start, low, high)

    def closest(begin: np.ndarray) -> np.ndarray:
        found = minimize(
            lambda angles: np.sum((angles - inside) ** 2),
            begin,
            jac=lambda angles: 2.0 * (angles - inside),
            method='SLSQP',
            bounds=np.stack([low, high], axis=1),
            constraints={'type': 'eq', 'fun': miss, 'jac': slopes},
            options={'maxiter': 200, 'ftol': 1e-12},
        )
        return np.asarray(np.clip(found.x, low, high))

    def fits(angles: np.ndarray) -> bool:
        return bool(np.abs(miss(angles)).max() < _CLOSE)

    def out_of_reach(nearest: np.ndarray) -> InputError:
        reached = place(nearest)
        off = math.hypot(*(reached - wanted)[:2])
        return InputError(
            f'{what} = {wanted.round(6).tolist()}, allowed: places within the limits of the'
            f' joints; the nearest that was found is {reached.round(3).tolist()}, {off:.3g} m away'
        )

    if not inside.size:
        if fits(inside):
            return np.asarray(inside)
        raise out_of_reach(inside)
    width = 1e-9 * (high - low)
    nearest = least_squares(
        miss, np.clip(inside, low + width, high - width), slopes, bounds=(low, high)
    ).x
    # Several poses may have the place, and the search may end in another one, or in none.
    drawn = np.random.default_rng(0).uniform(low, high, (_STARTS, low.size))
    found = [closest(begin) for begin in (inside, 0.5 * (low + high), nearest, *drawn)]
    poses = [angles for angles in (*found, nearest) if fits(angles)]
    if not poses:
        raise out_of_reach(nearest)
    return min(poses, key=lambda angles: float(np.sum((angles - inside) ** 2)))
