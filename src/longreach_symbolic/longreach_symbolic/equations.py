"""
Equations of motion of flexible links in closed form.

    M q'' + velocity_terms + gravity_and_stiffness = force_map @ motor torques

for q = (theta_1, .., theta_N, f_11, f_12, .., f_21, ..). With Phi_i = theta_1 + .. + theta_i and
its rate Omega_i, a point of link i is at p_i + x e_i + y_i n_i, where p_i is the end of chord i,
e_i the direction of the chord and n_i the left of it. The kinetic energy is the sum over links of

    J_i Omega_i^2 / 2 + Omega_i sum_k b_ik f_ik' + sum_kl c_i,kl f_ik' f_il' / 2

and over pairs j < i, with the relative angle Phi_ji = theta_{j+1} + .. + theta_i, of

    L_j Omega_j (u_ji Omega_i + d_i' cos Phi_ji),   u_ji = s_i cos Phi_ji - d_i sin Phi_ji.

s_i is the first moment of link i about its inner end and J_i the second, with all masses beyond
lumped at its far end; d_i = sum_k a_ik f_ik is the first moment of the deflections. Lagrange's
equations of this for Phi_i and f_ik, summed from each joint outward, are the ``reduced`` form: no
term has to be integrated, expanded or simplified.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Sequence
from typing import Any

import sympy

from longreach_symbolic.basis import Basis, basis_of
from longreach_symbolic.links import Model


@dataclasses.dataclass(frozen=True)
class Definition:
    """An abbreviation in symbols defined before it; kind: the quantity, indices: whose."""

    symbol: Any
    expression: Any
    kind: str
    indices: tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Equations:
    """Equations of motion as SymPy expressions; the potential energy is 0 at q = 0, y is up."""

    model: Model
    form: str  # 'reduced' or 'trace'
    as_printed: bool  # with the Coriolis terms and M_ff that the paper prints
    theta: tuple[Any, ...]
    theta_rate: tuple[Any, ...]
    f: tuple[Any, ...]
    f_rate: tuple[Any, ...]
    definitions: tuple[Definition, ...]
    mass_matrix: Any  # (n, n)
    velocity_terms: Any  # (n, 1)
    gravity_and_stiffness: Any
    force_map: Any  # (n, N); its transpose maps q to the motor angles
    potential_energy: Any
    positions: Any  # (N, 2)
    latex_names: dict[str, str]  # of symbols by their names

    @classmethod
    def of(
        cls, model: Model, namer: Namer, links: Sequence[Coefficients], **derived: Any
    ) -> Equations:
        """Return equations with the symbols of a Namer, and the force map of the links."""
        return cls(
            model=model,
            theta=namer.theta,
            theta_rate=namer.theta_rate,
            f=namer.f,
            f_rate=namer.f_rate,
            definitions=tuple(namer.definitions),
            force_map=force_map(model, links),
            latex_names=namer.latex_names,
            **derived,
        )

    @property
    def coordinates(self) -> tuple[Any, ...]:
        """Coordinates q."""
        return (*self.theta, *self.f)

    @property
    def rates(self) -> tuple[Any, ...]:
        """Derivatives of the coordinates."""
        return (*self.theta_rate, *self.f_rate)


class Namer:
    """Coordinates of a model, and abbreviations of some kinds; None: all."""

    def __init__(self, model: Model, abbreviated: Container[str] | None) -> None:
        links = range(1, model.count + 1)
        modes = range(1, model.modes + 1)
        self._abbreviated = abbreviated
        self.definitions: list[Definition] = []
        self.latex_names = {q.name: q.latex for q in model.parameters}
        self.theta = tuple(self._symbol(f'theta_{i}', rf'\theta_{_index(i)}') for i in links)
        self.theta_rate = tuple(
            self._symbol(f'dtheta_{i}', rf'\dot\theta_{_index(i)}') for i in links
        )
        pairs = [(i, k) for i in links for k in modes]
        self.f = tuple(self._symbol(f'f_{i}{k}', f'f_{{{i}{k}}}') for i, k in pairs)
        self.f_rate = tuple(self._symbol(f'df_{i}{k}', rf'\dot f_{{{i}{k}}}') for i, k in pairs)

    def _symbol(self, name: str, latex: str) -> Any:
        """Return a real symbol."""
        self.latex_names[name] = latex
        return sympy.Symbol(name, real=True)

    def define(self, kind: str, latex: str, indices: Sequence[int], expression: Any) -> Any:
        """Return an expression, or a new symbol for it; ``latex`` is its letter in formulas."""
        is_long = not (expression.is_Atom or (-expression).is_Atom)
        if not is_long or (self._abbreviated is not None and kind not in self._abbreviated):
            return expression
        joined = ''.join(map(str, indices)) if max(indices) < 10 else ','.join(map(str, indices))
        tex = f'{latex}_{{{joined}}}' if len(joined) > 1 else f'{latex}_{joined}'
        symbol = self._symbol(f'{kind}_{"_".join(map(str, indices))}', tex)
        self.definitions.append(Definition(symbol, expression, kind, tuple(indices)))
        return symbol


def _index(i: int) -> str:
    """Return an index in LaTeX."""
    return str(i) if i < 10 else f'{{{i}}}'


@dataclasses.dataclass(frozen=True)
class Coefficients:
    """Constants of a link with its lumped mass; of functions phi_k lists (s,), (s, s)."""

    length: Any  # L
    mass: Any  # m
    lumped_mass: Any  # M
    lumped_place: Any  # mu
    first: Any  # integral of x + L over the mass [kg m]
    second: Any  # of (x + L)^2 [kg m^2]
    deflection: list[Any]  # of phi_k [kg]
    turning: list[Any]  # of (x + L) phi_k [kg m]
    product: list[list[Any]]  # of phi_k phi_l [kg]
    printed_product: list[list[Any]]  # the same without the lumped mass
    weight: list[Any]  # of phi_k over what weighs where it is deflected to [kg]
    stiffness: list[list[Any]]  # E I times the integrals of phi_k'' phi_l'' [N/m]
    inner_slope: list[Any]  # phi_k' at the inner end [1/m]
    far_slope: list[Any]
    at_lump: list[Any]  # phi_k at the lumped mass


def number_or_symbol(quantity: Any) -> Any:
    """Return the symbol of a quantity, or its value as an exact number."""
    if quantity.is_symbol:
        return sympy.Symbol(quantity.name, real=True)
    return sympy.Rational(repr(quantity.value))


def rounded(expression: Any) -> Any:
    """Return an expression with its numbers as floating-point ones, exactly 0 left as it is."""
    if expression.is_number:
        value = float(expression.evalf(25))
        return sympy.Float(value) if value else sympy.Integer(0)
    return expression


def coefficients(model: Model, index: int, namer: Namer) -> Coefficients:
    """Return the constants of a link; ``index`` counts from 1, masses beyond are not included."""
    base = 1 + 5 * (index - 1)
    exact = [number_or_symbol(q) for q in model.quantities[base : base + 5]]
    length, mass, stiffness, lump, place = exact
    basis: Basis = basis_of(model.links.basis, model.modes)
    modes = range(model.modes)
    if place.is_Symbol:
        at_lump = [
            namer.define('S', 'S', (index, k + 1), basis.functions[k].subs(basis.place, place))
            for k in modes
        ]
    else:
        at_lump = [basis.functions[k].subs(basis.place, place) for k in modes]
    from_inner = length * (1 + place)

    def listed(kind: str, latex: str, values: list[Any]) -> list[Any]:
        return [
            namer.define(kind, latex, (index, k), rounded(value))
            for k, value in enumerate(values, 1)
        ]

    deflection = listed('a', 'a', [mass * basis.area[k] + lump * at_lump[k] for k in modes])
    weighing = model.links.gravity_on_deflection
    return Coefficients(
        length=rounded(length),
        mass=rounded(mass),
        lumped_mass=rounded(lump),
        lumped_place=rounded(place),
        first=rounded(mass * length / 2 + lump * from_inner),
        second=rounded(mass * length**2 / 3 + lump * from_inner**2),
        deflection=deflection,
        turning=listed(
            'b',
            'b',
            [
                mass * length * (basis.area[k] + basis.moment[k]) + lump * from_inner * at_lump[k]
                for k in modes
            ],
        ),
        product=_symmetric(
            namer, 'c', index, model.modes,
            lambda k, n: mass * basis.product[k][n] + lump * at_lump[k] * at_lump[n],
        ),
        printed_product=[[rounded(mass * basis.product[k][n]) for n in modes] for k in modes],
        weight=deflection if weighing else [rounded(lump * at_lump[k]) for k in modes],
        stiffness=_symmetric(
            namer, 'k', index, model.modes,
            lambda k, n: stiffness * basis.bending[k][n] / length**3,
        ),
        inner_slope=[rounded(basis.inner_slope[k] / length) for k in modes],
        far_slope=[rounded(basis.far_slope[k] / length) for k in modes],
        at_lump=[rounded(value) for value in at_lump],
    )  # fmt: skip


def _symmetric(
    namer: Namer, kind: str, index: int, modes: int, entry: Callable[[int, int], Any]
) -> list[list[Any]]:
    """Return a symmetric matrix of a link, each entry defined once."""
    found = [[sympy.Integer(0)] * modes for _ in range(modes)]
    for k in range(modes):
        for n in range(k + 1):
            value = namer.define(kind, kind, (index, n + 1, k + 1), rounded(entry(n, k)))
            found[k][n] = found[n][k] = value
    return found


def force_map(model: Model, links: Sequence[Coefficients], printed: bool = False) -> Any:
    """Return the matrix (n, N) from motor torques to generalized forces."""
    # The transposed Jacobian of gamma_i = theta_i + y_i'(-L_i) - y_{i-1}'(0). ``printed``: with
    # the signs and ends of the paper's (32) and (A.9), through which PD control is unstable.
    count, modes = model.count, model.modes
    found = sympy.zeros(count * (1 + modes), count)
    for i, link in enumerate(links):
        found[i, i] = 1
        for k in range(modes):
            row = count + i * modes + k
            found[row, i] = link.far_slope[k] if printed else link.inner_slope[k]
            if i + 1 < count:
                found[row, i + 1] = link.inner_slope[k] if printed else -link.far_slope[k]
    return found


def reduced(model: Model, abbreviated: Container[str] | None = None) -> Equations:
    """Derive the reduced form; ``abbreviated``: kinds that get symbols, () for none, None: all."""
    namer = Namer(model, abbreviated)
    define = namer.define
    n, s = model.count, model.modes
    indices, modes = range(n), range(s)
    links = [coefficients(model, i + 1, namer) for i in indices]
    gravity = rounded(number_or_symbol(model.quantities[0]))
    theta, f = namer.theta, [namer.f[i * s : (i + 1) * s] for i in indices]
    f_rate = [namer.f_rate[i * s : (i + 1) * s] for i in indices]

    # Moments about the inner end, with what is beyond at the far end.
    first, second = [], []
    for i in indices:
        beyond = sympy.Add(
            *[part for link in links[i + 1 :] for part in (link.mass, link.lumped_mass)]
        )
        length = links[i].length
        first.append(define('s', 's', (i + 1,), links[i].first + length * beyond))
        second.append(links[i].second + length**2 * beyond)

    # State of each link.
    omega, cosine, sine = [], [], []
    for i in indices:
        angle = sympy.Add(*theta[: i + 1])
        omega.append(define('omega', r'\Omega', (i + 1,), sympy.Add(*namer.theta_rate[: i + 1])))
        cosine.append(define('cos', r'\mathrm{c}', (0, i + 1), sympy.cos(angle)))
        sine.append(define('sin', r'\mathrm{s}', (0, i + 1), sympy.sin(angle)))
    product_f = [
        [
            define('h', 'h', (i + 1, k + 1), dot(links[i].product[k], f[i]))
            for k in modes
        ]
        for i in indices
    ]  # fmt: skip
    inertia = [define('J', 'J', (i + 1,), second[i] + dot(f[i], product_f[i])) for i in indices]
    d = [define('d', 'd', (i + 1,), dot(links[i].deflection, f[i])) for i in indices]
    d_rate = [
        define('dd', r'\dot d', (i + 1,), dot(links[i].deflection, f_rate[i])) for i in indices
    ]
    weight = (
        d
        if model.links.gravity_on_deflection
        else [define('w', 'w', (i + 1,), dot(links[i].weight, f[i])) for i in indices]
    )

    # Pairs j < i: L_j times cosine, sine, u and w = -du/dPhi.
    zero = sympy.Integer(0)
    along = [[zero] * n for _ in indices]
    across = [[zero] * n for _ in indices]
    coupling = [[zero] * n for _ in indices]
    swing = [[zero] * n for _ in indices]
    for i in indices:
        for j in range(i):
            angle, length = sympy.Add(*theta[j + 1 : i + 1]), links[j].length
            pair = (j + 1, i + 1)
            c = define('cos', r'\mathrm{c}', pair, sympy.cos(angle))
            z = define('sin', r'\mathrm{s}', pair, sympy.sin(angle))
            along[j][i] = define('lc', r'\lambda', pair, length * c)
            across[j][i] = define('ls', r'\sigma', pair, length * z)
            coupling[j][i] = define('A', 'A', pair, length * (first[i] * c - d[i] * z))
            swing[j][i] = define('W', 'W', pair, length * (first[i] * z + d[i] * c))

    mass = sympy.zeros(n * (1 + s), n * (1 + s))
    velocity = sympy.zeros(n * (1 + s), 1)
    static = sympy.zeros(n * (1 + s), 1)

    # Joints: the equations of absolute angles, summed outward.
    rows = [[zero] * (n + 1) for _ in range(n)]
    for a in indices:
        for b in reversed(indices):
            pair_ab = inertia[a] if a == b else coupling[min(a, b)][max(a, b)]
            rows[a][b] = define('R', 'R', (a + 1, b + 1), rows[a][b + 1] + pair_ab)
    for b in indices:
        total = zero
        for a in reversed(range(n)):
            total = total + rows[a][b]
            if a <= b:
                kept = define('Q', 'Q', (a + 1, b + 1), total)
                mass[a, b] = mass[b, a] = kept
                total = kept
    square = [define('q', r'\Omega^2', (i + 1,), omega[i] ** 2) for i in indices]
    total_v = total_g = zero
    for a in reversed(range(n)):
        own = 2 * omega[a] * dot(product_f[a], f_rate[a])
        outward = [
            -(square[i] * swing[a][i] + 2 * omega[i] * d_rate[i] * across[a][i])
            for i in range(a + 1, n)
        ]
        inward = [square[j] * swing[j][a] for j in range(a)]
        total_v = define('V', 'V', (a + 1,), total_v + sympy.Add(*[own, *outward, *inward]))
        total_g = define(
            'G', 'G', (a + 1,),
            total_g + gravity * (first[a] * cosine[a] - weight[a] * sine[a]),
        )  # fmt: skip
        velocity[a], static[a] = total_v, total_g

    # Deflections.
    for i in indices:
        reach = links[i].turning
        pull = define('P', 'P', (i + 1,), sympy.Add(*[square[j] * across[j][i] for j in range(i)]))
        lever = zero
        levers = [zero] * (i + 1)
        for a in reversed(range(i)):
            lever = define('E', r'\Lambda', (a + 1, i + 1), lever + along[a][i])
            levers[a] = lever
        for k in modes:
            row = n + i * s + k
            for a in range(i + 1):
                mass[a, row] = mass[row, a] = reach[k] + levers[a] * links[i].deflection[k]
            for m in modes:
                mass[row, n + i * s + m] = links[i].product[k][m]
            velocity[row] = links[i].deflection[k] * pull - square[i] * product_f[i][k]
            static[row] = gravity * links[i].weight[k] * cosine[i] + dot(
                links[i].stiffness[k], f[i]
            )

    potential = sympy.Add(
        *[
            gravity * (first[i] * sine[i] + weight[i] * cosine[i])
            + dot(f[i], [dot(links[i].stiffness[k], f[i]) for k in modes]) / 2
            for i in indices
        ]
    )
    positions = sympy.zeros(n, 2)
    for i in indices:
        positions[i, 0] = sympy.Add(*[links[j].length * cosine[j] for j in range(i + 1)])
        positions[i, 1] = sympy.Add(*[links[j].length * sine[j] for j in range(i + 1)])
    return Equations.of(
        model,
        namer,
        links,
        form='reduced',
        as_printed=False,
        mass_matrix=mass,
        velocity_terms=velocity,
        gravity_and_stiffness=static,
        potential_energy=potential,
        positions=positions,
    )


def dot(first: Sequence[Any], second: Sequence[Any]) -> Any:
    """Return the sum of products."""
    return sympy.Add(*[a * b for a, b in zip(first, second, strict=True)])
