"""
Links, states of them, and which quantities of the links stay symbols in their equations.

The links turn in a vertical plane. Frame i has its origin at the far end of link i and its x axis
along the chord from the inner end, which is at x = -L_i, to the far end, at x = 0; y is to the
left of x. theta_i is the angle from chord i - 1 to chord i, theta_1 that from the horizontal to
chord 1. The deflection is y_i(x, t) = sum over k of phi_k(x) f_ik(t), Yu and Chen (2019), eq. 3.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_count
from longreach_dynamics.parameters import Parameters, choice, from_mapping, load, quantity
from longreach_dynamics.resources import data_directory, open_text

BASES = ('sine', 'cubic')
"""Families of functions of the deflection; :mod:`longreach_symbolic.basis` has their formulas."""

MOST_LINKS = 12
"""Largest number of links. Operations of the closed form grow with about the square of it, written
out with its third to fourth power; those of a recursive method would grow with it."""

LINK_QUANTITIES = ('length', 'mass', 'bending_stiffness', 'lumped_mass', 'lumped_place')


@dataclasses.dataclass(frozen=True)
class Link(Parameters):
    """A uniform Euler-Bernoulli beam with a point mass."""

    length: float = quantity('length, L', 'm', above=0.0, at_most=1e4)
    mass: float = quantity('mass without the lumped mass, m', 'kg', above=0.0, at_most=1e9)
    bending_stiffness: float = quantity('bending stiffness, E I', 'N m^2', above=0.0, at_most=1e18)
    lumped_mass: float = quantity('lumped mass, M', 'kg', at_least=0.0, at_most=1e9)
    lumped_place: float = quantity(
        'place of the lumped mass in lengths, mu: 0 far end, -1 inner end',
        at_least=-1.0,
        at_most=0.0,
    )
    symbols: tuple[str, ...] = choice(
        'quantities that stay symbols in generated equations', LINK_QUANTITIES, default=()
    )


@dataclasses.dataclass(frozen=True)
class Links(Parameters):
    """The contents of a file of links."""

    gravity: float = quantity('gravity, g', 'm/s^2', at_least=0.0, at_most=1000.0)
    gravity_on_deflection: bool = quantity(
        'whether a deflected link weighs where it is; false: as if it were straight, as in the'
        ' paper (the lumped mass weighs where it is in both)'
    )
    basis: str = choice('functions of the deflection', BASES)
    links: tuple[Link, ...] = quantity('the links, from the base on')
    modes: int = quantity('functions for each link', default=2, at_least=1, at_most=4)
    symbols: tuple[str, ...] = choice(
        'quantities of all that stay symbols', ('gravity',), default=()
    )

    def check(self) -> None:
        """Raise InputError for no links, and for too many."""
        check_size(len(self.links), 'links has {} entries')

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.links) * (1 + self.modes)

    def largest_deflections(self, f: np.ndarray) -> np.ndarray:
        """Return the largest deflection of each link (.., N) [m], from f_11, .. (.., N s)."""
        own = f.reshape(*f.shape[:-1], len(self.links), self.modes)
        return np.asarray(np.abs(own @ _along(self.basis, self.modes)).max(axis=-1))


def functions_at(basis: str, modes: int, xi: np.ndarray) -> np.ndarray:
    """Return functions at places xi (K,) in [-1, 0], (s, K); without SymPy, slow to load."""
    orders = np.arange(1, modes + 1)[:, None]
    if basis == 'cubic':
        return np.asarray(xi ** (orders + 1) - (-1.0) ** orders * xi)
    return np.asarray(np.sin(np.pi * orders * xi))


@functools.cache
def _along(basis: str, modes: int) -> np.ndarray:
    """Return the functions where the largest deflection is looked for, after each step."""
    return functions_at(basis, modes, np.linspace(-1.0, 0.0, 65))


def check_size(count: int, text: str) -> None:
    """Raise InputError for a number of links that is not allowed; ``text`` says what it is."""
    if not 1 <= count <= MOST_LINKS:
        reason = (
            '; closed forms of more have over 3,000 operations, 300,000 written out: longer chains'
            ' need a recursive method'
            if count > MOST_LINKS
            else ''
        )
        raise InputError(f'{text.format(count)}, allowed: 1 to {MOST_LINKS} links{reason}')


@dataclasses.dataclass(frozen=True)
class State(Parameters):
    """The contents of a file of a state of N links with s functions each."""

    theta: tuple[float, ...] = quantity('joint angles (N,)', 'rad')
    theta_rate: tuple[float, ...] = quantity('joint rates (N,)', 'rad/s')
    f: tuple[float, ...] = quantity('deflections (N s,): f_11, f_12, .., f_21, ..', 'm')
    f_rate: tuple[float, ...] = quantity('their rates (N s,)', 'm/s')

    def check_lengths(self, links: Links) -> None:
        """Raise InputError for lists that do not fit the links."""
        count = len(links.links)
        for name, length in (
            ('theta', count),
            ('theta_rate', count),
            ('f', count * links.modes),
            ('f_rate', count * links.modes),
        ):
            each = f'for {count} links with {links.modes} functions each'
            check_count(name, getattr(self, name), length, each)


def chord_ends(links: Links, theta: np.ndarray) -> np.ndarray:
    """Return the ends of the chords (K, N, 2) [m] for joint angles (K, N); y is up."""
    angle = np.cumsum(theta, axis=1)
    lengths = np.array([link.length for link in links.links])
    return np.cumsum(np.stack((lengths * np.cos(angle), lengths * np.sin(angle)), axis=2), axis=1)


class Quantity(NamedTuple):
    """A quantity of the links, named as in code: g, and L_1, m_1, EI_1, M_1, mu_1 of link 1."""

    name: str
    latex: str
    unit: str
    meaning: str
    value: float
    is_symbol: bool  # whether it stays one


@dataclasses.dataclass(frozen=True)
class Model:
    """What equations are derived for, and which of its ``quantities`` stay symbols."""

    links: Links
    symbols: tuple[bool, ...]
    has_values: bool = True  # whether symbols have those of links, as defaults of generated code

    @property
    def count(self) -> int:
        """Number of links, N."""
        return len(self.links.links)

    @property
    def modes(self) -> int:
        """Number of functions of each link, s."""
        return self.links.modes

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Gravity, then L, m, EI, M, mu of each link."""
        flags = iter(self.symbols)
        found = [Quantity('g', 'g', 'm/s^2', 'gravity', self.links.gravity, next(flags))]
        for i, link in enumerate(self.links.links, 1):
            found += [
                Quantity(
                    f'{short}_{i}',
                    tex.replace('#', str(i) if i < 10 else f'{{{i}}}'),
                    unit,
                    f'{text} of link {i}',
                    value,
                    next(flags),
                )
                for short, tex, unit, text, value in (
                    ('L', 'L_#', 'm', 'length', link.length),
                    ('m', 'm_#', 'kg', 'mass', link.mass),
                    ('EI', 'E_#I_#', 'N m^2', 'bending stiffness', link.bending_stiffness),
                    ('M', 'M_#', 'kg', 'lumped mass', link.lumped_mass),
                    ('mu', r'\mu_#', '1', 'place of the lumped mass', link.lumped_place),
                )
            ]
        return tuple(found)

    @property
    def parameters(self) -> tuple[Quantity, ...]:
        """The quantities that stay symbols: the parameters of generated code."""
        return tuple(q for q in self.quantities if q.is_symbol)


def model_of(links: Links, symbols: str = 'file') -> Model:
    """Return links with symbols: of 'file' (those that it names), 'all' or 'none'."""
    flags = ['gravity' in links.symbols]
    for link in links.links:
        flags += [name in link.symbols for name in LINK_QUANTITIES]
    if symbols != 'file':
        flags = [symbols == 'all'] * len(flags)
    return Model(links, tuple(flags))


def symbolic_model(
    count: int, modes: int = 2, basis: str = 'sine', gravity_on_deflection: bool = False
) -> Model:
    """Return a model all of whose quantities are symbols without values."""
    check_size(count, 'links = {}')
    link = Link(length=1.0, mass=1.0, bending_stiffness=1.0, lumped_mass=1.0, lumped_place=0.0)
    links = Links(
        gravity=1.0,
        gravity_on_deflection=gravity_on_deflection,
        basis=basis,
        links=(link,) * count,
        modes=modes,
    )
    return dataclasses.replace(model_of(links, 'all'), has_values=False)


def default_file() -> Path:
    """Return the installed file of the paper's two links."""
    return data_directory('longreach_symbolic') / 'config' / 'two_links.yaml'


def load_links(file: str | Path | None = None) -> Links:
    """Read a file of links; None for the paper's two links."""
    return load(Links, file or default_file())


def load_state(file: str | Path, links: Links) -> State:
    """Read a state from a JSON file."""
    with open_text(file) as stream:
        text = stream.read()
    try:
        values = json.loads(text, object_pairs_hook=_without_repetition)
        if not isinstance(values, Mapping):
            raise InputError(
                'the file must be an object with the keys theta, theta_rate, f, f_rate'
            )
        state = from_mapping(State, values)
        state.check_lengths(links)
    except (ValueError, RecursionError) as error:
        what = '' if isinstance(error, InputError) else 'not valid JSON: '
        raise InputError(f'{file}: {what}{error}') from error
    return state


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON file, or raise InputError for a key that stands twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InputError(f'a key stands twice among {", ".join(key for key, _ in pairs)}')
    return values
