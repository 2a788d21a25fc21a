"""
Equations of motion in the form of Yu and Chen (2019): traces of products of 3 x 3 matrices.

Numbers in comments are those of the paper's equations. Three are corrected, the printed ones are
kept as a variant: the Coriolis terms theta' f' of (24) and (39), and M_ff of (37), which lacks the
lumped masses. The lost signs of (16) and the missing factors of the appendix are restored.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import sympy

from longreach_symbolic.basis import basis_of
from longreach_symbolic.equations import (
    Coefficients,
    Equations,
    Namer,
    coefficients,
    dot,
    number_or_symbol,
    rounded,
)
from longreach_symbolic.links import Model

# (7): the derivative of a rotation about z.
_Q = sympy.Matrix([[0, -1, 0], [1, 0, 0], [0, 0, 0]])


def trace(
    model: Model, as_printed: bool = False, abbreviated: Container[str] | None = None
) -> Equations:
    """Derive the equations in the paper's form; parameters as of :func:`equations.reduced`."""
    namer = Namer(model, abbreviated)
    n, s = model.count, model.modes
    links = [coefficients(model, i + 1, namer) for i in range(n)]
    gravity = rounded(number_or_symbol(model.quantities[0]))
    # From here on indices of links count from 1, as in the paper.
    to_end = _transformations(namer, links)
    u = {
        (i, j): _named(namer, 'U', (i, j), to_end[0, j - 1] * _Q * to_end[j - 1, i])
        for i in range(1, n + 1)
        for j in range(1, i + 1)
    }
    inertias = {i: _Inertias(model, namer, link, i) for i, link in enumerate(links, 1)}

    def second(i: int, j: int, k: int) -> Any:
        """(11): the derivative of A_i^0 by theta_j and theta_k."""
        j, k = min(j, k), max(j, k)
        return to_end[0, j - 1] * _Q * to_end[j - 1, k - 1] * _Q * to_end[k - 1, i]

    u2 = {
        (i, j, k): _named(namer, 'U', (i, j, k), second(i, j, k))
        for i in range(1, n + 1)
        for j in range(1, i + 1)
        for k in range(1, j + 1)
    }
    u2 |= {(i, k, j): matrix for (i, j, k), matrix in u2.items()}

    joints, shapes = range(1, n + 1), range(s)
    rate = (None, *namer.theta_rate)
    mass = sympy.zeros(n * (1 + s), n * (1 + s))
    velocity = sympy.zeros(n * (1 + s), 1)
    static = sympy.zeros(n * (1 + s), 1)

    def row(i: int, k: int) -> int:
        return n + (i - 1) * s + k

    for i in joints:
        for k in range(1, i + 1):
            # (34)
            mass[i - 1, k - 1] = mass[k - 1, i - 1] = sympy.Add(
                *[_trace(u[j, k], inertias[j].u, u[j, i]) for j in range(i, n + 1)]
            )
        terms = []
        for j in range(i, n + 1):
            # (38)
            for k in range(1, j + 1):
                for m in range(1, k + 1):
                    twice = 1 if k == m else 2
                    terms.append(
                        twice * _trace(u2[j, k, m], inertias[j].u, u[j, i]) * rate[k] * rate[m]
                    )
            for shape in shapes:
                # (35)
                mass[i - 1, row(j, shape)] = mass[row(j, shape), i - 1] = _trace(
                    u[j, i], inertias[j].v_by[shape], to_end[0, j]
                )
                # (39)
                f_rate = namer.f_rate[(j - 1) * s + shape]
                for k in range(1, j + 1):
                    if as_printed:
                        factor = _trace(u[j, k], inertias[j].u_by[shape], u[j, i])
                    else:
                        factor = 2 * _trace(u[j, i], inertias[j].v_by[shape], u[j, k])
                    terms.append(factor * rate[k] * f_rate)
        velocity[i - 1] = sympy.Add(*terms)
        # (41)
        static[i - 1] = sympy.Add(
            *[gravity * (u[j, i] * inertias[j].weight)[1] for j in range(i, n + 1)]
        )
    for i in joints:
        link, own = links[i - 1], inertias[i]
        for shape in shapes:
            place = row(i, shape)
            # (37)
            products = link.printed_product if as_printed else link.product
            for m in shapes:
                mass[place, row(i, m)] = products[shape][m]
            # (40)
            velocity[place] = sympy.Add(
                *[
                    rate[j]
                    * rate[k]
                    * (
                        _trace(u2[i, j, k], own.v_by[shape], to_end[0, i])
                        + _trace(u[i, j], own.v_by[shape] - own.u_by[shape] / 2, u[i, k])
                    )
                    for j in range(1, i + 1)
                    for k in range(1, i + 1)
                ]
            )
            # (42), (43)
            static[place] = gravity * link.weight[shape] * to_end[0, i][1, 1] + sympy.Add(
                *[link.stiffness[shape][m] * namer.f[(i - 1) * s + m] for m in shapes]
            )
    stiffness = [
        namer.f[(i - 1) * s + k] * namer.f[(i - 1) * s + m] * links[i - 1].stiffness[k][m] / 2
        for i in joints
        for k in shapes
        for m in shapes
    ]
    weights = [gravity * (to_end[0, i] * inertias[i].weight)[1] for i in joints]
    return Equations.of(
        model,
        namer,
        links,
        form='trace',
        as_printed=as_printed,
        mass_matrix=mass,
        velocity_terms=velocity,
        gravity_and_stiffness=static,
        potential_energy=sympy.Add(*weights, *stiffness),
        positions=sympy.Matrix(n, 2, lambda i, axis: to_end[0, i + 1][axis, 2]),
    )


def _transformations(namer: Namer, links: Sequence[Coefficients]) -> dict[tuple[int, int], Any]:
    """Return A_j^i, from frame j to frame i, for i <= j."""
    found = {(i, i): sympy.eye(3) for i in range(len(links) + 1)}
    for j, (angle, link) in enumerate(zip(namer.theta, links, strict=True), 1):
        c = namer.define('cos', r'\mathrm{c}', (j,), sympy.cos(angle))
        z = namer.define('sin', r'\mathrm{s}', (j,), sympy.sin(angle))
        # (1)
        step = sympy.Matrix([[c, -z, link.length * c], [z, c, link.length * z], [0, 0, 1]])
        for i in range(j):
            found[i, j] = _named(namer, 'A', (i, j), found[i, j - 1] * step)
    return found


def _named(namer: Namer, kind: str, indices: Sequence[int], matrix: Any) -> Any:
    """Return a matrix of symbols for the entries of a 3 x 3 matrix."""
    return sympy.Matrix(
        3,
        3,
        lambda row, column: namer.define(
            f'{kind}{row + 1}{column + 1}',
            f'{kind}^{{{row + 1}{column + 1}}}',
            indices,
            matrix[row, column],
        ),
    )


def _trace(left: Any, middle: Any, right: Any) -> Any:
    """Return Tr(left middle right^T)."""
    product = left * middle
    return sympy.Add(*[product[i, j] * right[i, j] for i in range(3) for j in range(3)])


class _Inertias:
    """Pseudo-inertia matrices J_u (16), (17), J_u,lam and J_v,lam (28), and weights of (20)."""

    def __init__(self, model: Model, namer: Namer, link: Coefficients, index: int) -> None:
        s, length = model.modes, link.length
        f = namer.f[(index - 1) * s : index * s]
        basis = basis_of(model.links.basis, s)
        lump, place = link.lumped_mass, link.lumped_place * length
        # Integrals of 1, x, x^2, phi and x phi over the mass.
        total = link.mass + lump
        first = -link.mass * length / 2 + lump * place
        second = link.mass * length**2 / 3 + lump * place**2
        moment = [
            link.mass * length * rounded(basis.moment[k]) + lump * place * link.at_lump[k]
            for k in range(s)
        ]
        along = [dot(products, f) for products in link.product]
        entries = {
            'xx': second,
            'x': first,
            'xy': dot(moment, f),
            'y': dot(link.deflection, f),
            'yy': dot(along, f),
            'm': total,
        }
        named = {
            name: namer.define(f'J{name}', f'J^{{{name}}}', (index,), value)
            for name, value in entries.items()
        }
        self.u = sympy.Matrix(
            [
                [named['xx'], named['xy'], named['x']],
                [named['xy'], named['yy'], named['y']],
                [named['x'], named['y'], named['m']],
            ]
        )
        self.v_by = []
        self.u_by = []
        for k in range(s):
            deflected = namer.define('Jv', 'J', (index, k + 1), along[k])
            v = sympy.Matrix([[0, moment[k], 0], [0, deflected, 0], [0, link.deflection[k], 0]])
            self.v_by.append(v)
            self.u_by.append(v + v.T)
        self.weight = sympy.Matrix([first, dot(link.weight, f), total])
