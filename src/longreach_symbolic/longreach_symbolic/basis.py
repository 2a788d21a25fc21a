"""
Functions of the deflection of a link, and their integrals.

With xi = x / L in [-1, 0], for k = 1, 2, ..:

``sine``    phi_k = sin(k pi xi), of the paper: no bending moment at the ends of a link
``cubic``   phi_k = xi^(k+1) - (-1)^k xi: x^2, x^3, .. without the chord

All vanish at both ends of the link, where the chord passes through it. The first two of ``cubic``
are the cubic polynomials that do, so they describe exactly what moments at the ends bend.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import sympy

_XI = sympy.Symbol('xi', real=True)


class Basis(NamedTuple):
    """Functions of the deflection of a link of length 1, and integrals over xi from -1 to 0."""

    functions: tuple[Any, ...]  # phi_k, k = 1 to s, in place
    place: Any  # xi
    area: tuple[Any, ...]  # integrals of phi_k
    moment: tuple[Any, ...]  # of xi phi_k
    product: tuple[tuple[Any, ...], ...]  # of phi_k phi_l
    bending: tuple[tuple[Any, ...], ...]  # of phi_k'' phi_l''
    inner_slope: tuple[Any, ...]  # phi_k' at xi = -1
    far_slope: tuple[Any, ...]  # at xi = 0


@functools.cache
def basis_of(name: str, modes: int) -> Basis:
    """Return the first functions of a family, ``sine`` or ``cubic``, with exact integrals."""
    return {'sine': _sine, 'cubic': _cubic}[name](modes)


def _sine(modes: int) -> Basis:
    """Return sin(k pi xi); the integrals are known."""
    orders = range(1, modes + 1)
    wave = [k * sympy.pi for k in orders]
    sign = [(-1) ** k for k in orders]
    half = sympy.Rational(1, 2)
    return Basis(
        functions=tuple(sympy.sin(w * _XI) for w in wave),
        place=_XI,
        area=tuple((s - 1) / w for s, w in zip(sign, wave, strict=True)),
        moment=tuple(-s / w for s, w in zip(sign, wave, strict=True)),
        product=tuple(tuple(half * int(k == n) for n in orders) for k in orders),
        bending=tuple(
            tuple(half * wave[k - 1] ** 4 * int(k == n) for n in orders) for k in orders
        ),
        inner_slope=tuple(s * w for s, w in zip(sign, wave, strict=True)),
        far_slope=tuple(wave),
    )


def _cubic(modes: int) -> Basis:
    """Return xi^(k+1) - (-1)^k xi, and integrate."""
    functions = [sympy.Poly(_XI ** (k + 1) - (-1) ** k * _XI, _XI) for k in range(1, modes + 1)]

    def integral(polynomial: Any) -> Any:
        whole = polynomial.integrate()
        return whole.eval(0) - whole.eval(-1)

    slopes = [function.diff() for function in functions]
    curvatures = [slope.diff() for slope in slopes]
    return Basis(
        functions=tuple(function.as_expr() for function in functions),
        place=_XI,
        area=tuple(integral(function) for function in functions),
        moment=tuple(integral(function * _XI) for function in functions),
        product=tuple(tuple(integral(a * b) for b in functions) for a in functions),
        bending=tuple(tuple(integral(a * b) for b in curvatures) for a in curvatures),
        inner_slope=tuple(slope.eval(-1) for slope in slopes),
        far_slope=tuple(slope.eval(0) for slope in slopes),
    )
