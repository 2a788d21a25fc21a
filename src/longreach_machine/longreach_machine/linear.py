"""
Linear models of machines about a state.

Between two events a machine obeys smooth equations x' = f(x, u) and shows y = g(x, u), which a
declaration gives as a :class:`SmoothModel`. :func:`linearize` differentiates them,

    x' = x'_0 + A (x - x_0) + B (u - u_0),    y = y_0 + C (x - x_0) + D (u - u_0),

by central differences, extrapolated to a step of zero (Ridders 1982). Each derivative is that of
the step at which two extrapolations agree best, and their difference is its stated error. Where
the derivative from above differs from that from below the equations have a kink, which is stated.
What jumps has no derivative: NaN stands for that of an output, and rates that jump are refused.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_among, check_distinct, check_within
from longreach_dynamics.tables import for_json
from longreach_machine.control import held_input

if TYPE_CHECKING:
    import control

# Steps of the differences, as a share of the size of a variable: the first one, and how many
# halvings follow. The longest ones serve smooth equations, the shortest ones orifices.
_FIRST, _HALVINGS = 3e-3, 9
# Size of a variable near zero, by its unit.
_SIZES = {'Pa': 1e6, 'N': 1e4, 'N m': 1e4, 'm^3/s': 1e-3, 'J': 1e3}
# A difference of the derivatives on both sides is a kink beyond this share of the row's largest
# derivative.
_KINK = 1e-3
# A change without a step is a jump beyond this share of that with the first step.
_JUMP = 0.1
# Stated errors above are worth a note.
_WORST = 1e-6
# Singular values below this share of the largest one are zero, and poles below this one.
_NULL, _ZERO = 1e-12, 1e-9


class Signal(NamedTuple):
    """A state, an input or an output."""

    name: str
    unit: str


class SmoothModel(NamedTuple):
    """
    Equations of a machine between two events, and a point at which they hold.

    Modes do not change: what sticks keeps sticking, valves that are closed stay closed.
    """

    states: tuple[Signal, ...]
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    x: np.ndarray  # (n,)
    u: np.ndarray  # (m,)
    rates: Callable[[np.ndarray, np.ndarray], np.ndarray]  # f(x, u), (n,)
    observe: Callable[[np.ndarray, np.ndarray], np.ndarray]  # g(x, u), (p,)
    notes: tuple[str, ...] = ()  # what is locked at this point, or left out


class Pole(NamedTuple):
    """An eigenvalue of A; of a pair, the one with the positive imaginary part."""

    value: complex  # [1/s]
    frequency: float  # |value| / 2 pi [Hz]
    damping: float  # -Re(value) / |value|; 1 for a real stable pole, NaN at zero
    state: str  # that takes the largest part in it


@dataclasses.dataclass(frozen=True)
class LinearModel:
    """
    A linear model x' = x'_0 + A dx + B du, y = y_0 + C dx + D du in SI units and radians.

    ``x``, ``u``, ``y`` are the point of linearisation, ``rate`` is x'_0 (n,), 0 at rest. C and D
    have NaN where an output jumps. ``error`` is the largest stated error of a derivative, over the
    largest derivative of its row, each times the size of its variable. ``notes`` say what is
    locked at this point, and where the equations have kinks or jumps.
    """

    A: np.ndarray  # (n, n)
    B: np.ndarray  # (n, m)
    C: np.ndarray  # (p, n)
    D: np.ndarray  # (p, m)
    states: tuple[Signal, ...]
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    x: np.ndarray  # (n,)
    u: np.ndarray  # (m,)
    y: np.ndarray  # (p,)
    rate: np.ndarray  # (n,)
    error: float = 0.0
    notes: tuple[str, ...] = ()
    fastest: float = 0.0  # pole of the whole model, of a reduced one [1/s]

    def poles(self) -> list[Pole]:
        """Return the poles, slowest first, of complex pairs one."""
        values, vectors = np.linalg.eig(self.A)
        values[np.abs(values) < _ZERO * np.abs(values).max(initial=self.fastest)] = 0.0
        # A state takes part by the product of right and left eigenvector, which has no unit.
        left = np.linalg.pinv(vectors, rcond=_NULL)
        found = []
        for k in np.argsort(np.abs(values), kind='stable'):
            value = complex(values[k])
            if value.imag < 0.0:
                continue
            size = abs(value)
            part = int(np.argmax(np.abs(vectors[:, k] * left[k])))
            damping = -value.real / size if size else np.nan
            found.append(Pole(value, size / (2.0 * np.pi), damping, self.states[part].name))
        return found

    def response(self, frequencies: np.ndarray) -> np.ndarray:
        """
        Return C (j w - A)^-1 B + D at frequencies (F,) [Hz], complex (F, p, m); NaN if C or D is.

        InputError for a frequency that is a pole, such as 0 Hz of a model with integrators.
        """
        omega = 2.0 * np.pi * np.asarray(frequencies, dtype=float)
        shifted = 1j * omega[:, None, None] * np.eye(len(self.A)) - self.A
        try:
            return np.asarray(self.C @ np.linalg.solve(shifted, self.B[None]) + self.D)
        except np.linalg.LinAlgError as error:
            raise InputError('a frequency is a pole of the model, allowed: others') from error

    def discretize(self, sample_time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return A_d and B_d of x_(k+1) = A_d x_k + B_d u_k, inputs held over the sample [s]."""
        return held_input(self.A, self.B, sample_time)

    def reduce(self, order: int) -> LinearModel:
        """
        Return a model of ``order`` states by balanced truncation.

        Poles that are not stable are kept, the stable rest is balanced (Moore 1981), with inputs
        and outputs over their sizes: their values at the point, at least 1 MPa, 10 kN, 10 kN m,
        1e-3 m^3/s, 1 kJ, and 1 of other units. A note states the bound of the error at all
        frequencies (Glover 1984). The reduced states have no units. InputError for an order that
        is not between the number of poles kept and n, and with NaN in C.
        """
        from scipy.linalg import (
            matrix_balance,
            schur,
            solve_continuous_lyapunov,
            solve_sylvester,
            svd,
        )

        if np.isnan(self.C).any():
            bad = self.outputs[int(np.flatnonzero(np.isnan(self.C).any(axis=1))[0])].name
            raise InputError(
                f'{bad} jumps at this state and cannot be reduced; choose other outputs'
            )
        # Diagonal scaling first: with pascals beside metres the Schur form would be inexact.
        balanced, (scale, _) = matrix_balance(self.A, permute=False, separate=True)
        fastest = float(np.abs(np.linalg.eigvals(balanced)).max(initial=0.0))
        edge = -_ZERO * fastest
        T, Q, k = schur(balanced, output='real', sort=lambda real, _: real < edge)
        n = len(T)
        kept = n - k
        check_within('order', order, f'[{kept}, {n}]; {kept} poles are not stable and stay')
        # Decouple the stable part: T11 X - X T22 = -T12.
        X = (
            solve_sylvester(T[:k, :k], -T[k:, k:], -T[:k, k:])
            if kept and k
            else np.zeros((k, kept))
        )
        # The rate at the point is one more column of B, which does not count for the balance.
        B = Q.T @ (np.column_stack([self.B, self.rate]) / scale[:, None])
        C = self.C * scale @ Q
        B1, C2 = B[:k] - X @ B[k:], C[:, k:] + C[:, :k] @ X
        A1, C1 = T[:k, :k], C[:, :k]
        bound = 0.0
        if order < n and k:
            sized = B1[:, :-1] * _sizes(self.inputs, self.u)
            shown = C1 / _sizes(self.outputs, self.y)[:, None]
            W = _root(solve_continuous_lyapunov(A1, -sized @ sized.T))
            V = _root(solve_continuous_lyapunov(A1.T, -shown.T @ shown))
            left, values, right = svd(V.T @ W)
            size = min(order - kept, int((values > _NULL * values[0]).sum()))
            share = values[:size] ** -0.5
            bound = 2.0 * values[size:].sum() / (values[0] or 1.0)
            into, back = W @ right[:size].T * share, (left[:, :size] * share).T @ V.T
            A1, B1, C1 = back @ A1 @ into, back @ B1, C1 @ into
        size = len(A1)
        A = np.zeros((size + kept, size + kept))
        A[:size, :size], A[size:, size:] = A1, T[k:, k:]
        states = tuple(Signal(f'z_{i + 1}', '') for i in range(len(A)))
        B = np.vstack([B1, B[k:]])
        note = (
            f'reduced from {n} to {len(A)} states: responses are off by up to {bound:.2g} of the'
            ' largest one, inputs and outputs over their sizes'
        )
        return dataclasses.replace(
            self,
            A=A,
            B=B[:, :-1],
            C=np.hstack([C1, C2]),
            states=states,
            x=np.zeros(len(A)),
            rate=B[:, -1],
            fastest=fastest,
            notes=(*self.notes, note),
        )

    def to_control(self) -> control.StateSpace:
        """Return the model for the package ``control`` of PyPI, which must be installed."""
        import control

        parts = ('states', 'inputs', 'outputs')
        names = {part: [one.name for one in getattr(self, part)] for part in parts}
        return control.ss(self.A, self.B, self.C, self.D, **names)

    def save(self, file: str | Path) -> None:
        """Write a .mat file of MATLAB or a .json file, after its suffix."""
        file = Path(file)
        data: dict[str, Any] = {name: getattr(self, name) for name in (*'ABCD', 'error')}
        data |= {f'{name}0': getattr(self, name) for name in ('x', 'u', 'y', 'rate')}
        data['notes'] = list(self.notes)
        for what in ('states', 'inputs', 'outputs'):
            signals = getattr(self, what)
            data[what] = [one.name for one in signals]
            data[f'{what[:-1]}_units'] = [one.unit for one in signals]
        if file.suffix.lower() == '.json':
            file.write_text(json.dumps(for_json(data), indent=1) + '\n', encoding='utf-8')
        elif file.suffix.lower() == '.mat':
            from scipy.io import savemat

            lists = {
                k: np.array(v, dtype=object) if isinstance(v, list) else v for k, v in data.items()
            }
            with file.open('wb') as stream:
                savemat(stream, lists, oned_as='column')
        else:
            raise InputError(f'{file} ends in {file.suffix!r}, allowed: .mat | .json')


def linearize(
    model: SmoothModel, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> LinearModel:
    """
    Return the linear model of a machine's equations about their point.

    ``inputs`` and ``outputs`` are names, by default all. InputError for an unknown or repeated
    name, and where the equations are not finite or rates jump.
    """
    m = _indices('input', model.inputs, inputs)
    p = _indices('output', model.outputs, outputs)
    n = len(model.x)

    def both(point: np.ndarray) -> np.ndarray:
        u = model.u.copy()
        u[m] = point[n:]
        x = point[:n]
        shown = model.observe(x, u)[p] if p else np.zeros(0)
        return np.concatenate([model.rates(x, u), shown])

    signals = (*model.states, *(model.inputs[k] for k in m))
    rows = (*model.states, *(model.outputs[k] for k in p))
    point = np.concatenate([model.x, model.u[m]])
    sizes = _sizes(signals, point)
    middle = both(point)
    if not np.isfinite(middle).all():
        bad = rows[int(np.flatnonzero(~np.isfinite(middle))[0])].name
        raise InputError(f'{bad} is not finite at this state, which has no linear model')
    found, errors, kinks, jumps = _derivatives(both, point, sizes, middle)

    def shares() -> np.ndarray:
        largest = np.abs(found * sizes).max(axis=1, keepdims=True)
        return np.asarray(sizes / np.where(largest == 0.0, 1.0, largest))

    jumps &= errors * shares() > _WORST
    if jumps[:n].any():
        row, column = np.argwhere(jumps[:n])[0]
        raise InputError(
            f'the rate of {rows[row].name} jumps with {signals[column].name} at this state, which'
            ' has no linear model'
        )
    # What has no derivative says nothing about the others of its row.
    found[jumps] = errors[jumps] = kinks[jumps] = 0.0
    kinks, errors = kinks * shares(), errors * shares()
    found[jumps] = np.nan
    notes = list(model.notes)

    def note(found: np.ndarray, text: str) -> None:
        for row, column in found:
            what = f'the rate of {rows[row].name}' if row < n else rows[row].name
            notes.append(text.format(what, signals[column].name, errors[row, column]))

    note(np.argwhere(jumps), '{} jumps with {}: there is no derivative, and NaN stands for it')
    note(
        np.argwhere(kinks > _KINK),
        '{} has a kink in {}: its derivatives on both sides differ, and the mean is taken',
    )
    note(
        np.argwhere((errors > _WORST) & (kinks <= _KINK)),
        'the derivative of {} by {} is uncertain, by a share of {:.1g}',
    )
    return LinearModel(
        found[:n, :n],
        found[:n, n:],
        found[n:, :n],
        found[n:, n:],
        model.states,
        tuple(signals[n:]),
        tuple(rows[n:]),
        model.x,
        point[n:],
        middle[n:],
        middle[:n],
        float(errors.max()),
        tuple(notes),
    )


def _derivatives(
    function: Callable[[np.ndarray], np.ndarray],
    point: np.ndarray,
    sizes: np.ndarray,
    middle: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return derivatives, stated errors, how much those of both sides differ, and any jumps."""
    shape = (middle.size, point.size)
    found, errors, kinks = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    jumps = np.zeros(shape, dtype=bool)
    for k, size in enumerate(sizes):
        best, error = np.zeros(middle.size), np.full(middle.size, np.inf)
        kink = np.full(middle.size, np.inf)
        changes: list[np.ndarray] = []
        row: list[np.ndarray] = []
        bend_before = None
        for halving in range(_HALVINGS + 1):
            step = np.zeros(point.size)
            step[k] = h = _FIRST * size / 2.0**halving
            above, below = function(point + step), function(point - step)
            before, row = row, [(above - below) / (2.0 * h)]
            # Neville's scheme: each column removes one more even power of the step.
            for order, last in enumerate(before[:3]):
                row.append(row[-1] + (row[-1] - last) / (4.0 ** (order + 1) - 1.0))
                apart = np.maximum(np.abs(row[-1] - row[-2]), np.abs(row[-1] - last))
                better = apart < error
                error[better], best[better] = apart[better], row[-1][better]
            # Twice the mean curvature times the step; what is left without a step is a kink.
            bend = np.abs(above - 2.0 * middle + below) / h
            if bend_before is not None:
                kink = np.minimum(kink, np.maximum(2.0 * bend - bend_before, 0.0))
            bend_before = bend
            changes.append(np.maximum(np.abs(above - middle), np.abs(below - middle)))
        found[:, k], errors[:, k], kinks[:, k] = best, error, kink
        # A change that does not fade with the step.
        jumps[:, k] = 2.0 * changes[-1] - changes[-2] > _JUMP * changes[0]
    return found, errors, kinks, jumps


def _indices(what: str, signals: Sequence[Signal], names: Sequence[str] | None) -> list[int]:
    """Return the indices of names, of all by default; InputError for unknown, repeated ones."""
    known = [signal.name for signal in signals]
    if names is None:
        return list(range(len(known)))
    check_distinct(f'{what}s', names)
    for name in names:
        check_among(what, name, known)
    return [known.index(name) for name in names]


def _sizes(signals: Sequence[Signal], values: np.ndarray) -> np.ndarray:
    """Return the sizes of variables."""
    least = [_SIZES.get(one.unit, 1.0) for one in signals]
    return np.asarray(np.maximum(np.abs(values), least))


def _root(gramian: np.ndarray) -> np.ndarray:
    """Return W with W W^T = a Gramian, whose small negative eigenvalues are rounding."""
    values, vectors = np.linalg.eigh(0.5 * (gramian + gramian.T))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
