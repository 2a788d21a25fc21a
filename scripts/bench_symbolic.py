"""
Benchmark of the equations of flexible links: their derivation, and their evaluation.

Derivation: all quantities are symbols, two sine functions for each link; SymPy's cache is emptied
before. The times are processor times, as SymPy uses one core. By hand means Lagrange's method with
SymPy, where T and V of each link are integrated along it; LagrangesMethod is SymPy's, with T and V
already integrated. Evaluation: mass matrix, velocity terms, gravity and stiffness at one state of
four links with 12 coordinates, called from Python.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi
import numpy as np
import sympy
from bench_chain import CALLS, module, repeated
from bench_ros import BenchmarkError
from bench_table import Row, Section, measure
from sympy.core.cache import clear_cache
from sympy.physics.mechanics import LagrangesMethod, dynamicsymbols

from longreach_symbolic import code
from longreach_symbolic.generated import compiled, derive, parameter_values
from longreach_symbolic.links import Link, Links, model_of, symbolic_model

_MOST = 8
_COUNT = 4
# Table 1 of the paper, on an i3-7100 with Mathematica [s].
_PAPER = {'its traditional method': 1316.45, 'its method': 114.6}


def _timed(action: Callable[[], Any]) -> float:
    """Return the processor time of a call that finds SymPy's cache empty [s]."""
    clear_cache()
    started = time.process_time()
    action()
    return time.process_time() - started


def _reduced(count: int, repeats: int) -> Row:
    """Derive the reduced form and write it as C; the part is the derivation."""
    model = symbolic_model(count)
    whole, part = [], []
    for _ in range(repeats):
        clear_cache()
        started = time.process_time()
        equations = derive(model)
        part.append(time.process_time() - started)
        code.as_single_c(equations)
        whole.append(time.process_time() - started)
    note = f'{code.parts_of(equations, True).equations.operations} operations'
    return Row(f'reduced, N = {count}', tuple(whole), part=tuple(part), note=note)


def _energies(count: int, integrate: bool) -> tuple[Any, Any, list[Any]]:
    """Return T, V and the coordinates; with lumped masses at the ends of the links."""
    t, x, g = dynamicsymbols._t, sympy.Symbol('x'), sympy.Symbol('g')
    coordinates: list[Any] = []
    deflections: list[Any] = []
    kinetic = potential = angle = 0
    end = sympy.zeros(2, 1)
    for i in range(1, count + 1):
        length, mass, lump, stiffness = sympy.symbols(f'L_{i} m_{i} M_{i} EI_{i}', positive=True)
        theta, first, second = (dynamicsymbols(f'{name}_{i}') for name in ('theta', 'f1', 'f2'))
        coordinates.append(theta)
        deflections += [first, second]
        angle = angle + theta
        along = sympy.Matrix([sympy.cos(angle), sympy.sin(angle)])
        across = sympy.Matrix([-sympy.sin(angle), sympy.cos(angle)])
        end = end + length * along
        y = first * sympy.sin(sympy.pi * x / length)
        y += second * sympy.sin(2 * sympy.pi * x / length)
        velocity = (end + x * along + y * across).diff(t)
        square = sympy.expand(velocity.dot(velocity))
        bending = sympy.expand(y.diff(x, 2) ** 2)
        if integrate:
            kinetic += mass / length * sympy.integrate(square, (x, -length, 0)) / 2
            potential += stiffness * sympy.integrate(bending, (x, -length, 0)) / 2
        else:
            kinetic += mass * square.subs(x, -length / 3) / 2
            potential += stiffness * bending.subs(x, -length / 3) / 2
        kinetic += lump * end.diff(t).dot(end.diff(t)) / 2
        potential += g * (mass * (end - length / 2 * along)[1] + lump * end[1])
    return kinetic, potential, coordinates + deflections


def _by_hand(count: int) -> None:
    """Apply Lagrange's method with integrals along the links."""
    kinetic, potential, coordinates = _energies(count, integrate=True)
    t = dynamicsymbols._t
    for q in coordinates:
        rate = q.diff(t)
        sympy.expand(kinetic.diff(rate).diff(t) - kinetic.diff(q) + potential.diff(q))


def _lagranges_method(count: int) -> Callable[[], None]:
    """Return a call of SymPy's method; points in place of integrals, so only it is measured."""
    kinetic, potential, coordinates = _energies(count, integrate=False)

    def run() -> None:
        method = LagrangesMethod(kinetic - potential, coordinates)
        method.form_lagranges_equations()
        method.mass_matrix  # noqa: B018
        method.forcing  # noqa: B018

    return run


def derivation(quick: bool) -> list[Row]:
    """Time derivations by the number of links."""
    repeats = 1 if quick else 3
    derive(symbolic_model(1))
    rows = [_reduced(count, repeats) for count in range(1, _MOST + 1)]
    none = (float('nan'),)
    for count in range(1, 3 if quick else 4):
        model = symbolic_model(count)
        times = tuple(_timed(lambda: derive(model, 'trace')) for _ in range(repeats))  # noqa: B023
        rows.append(Row(f'trace, N = {count}', times, part=times))
    for count in range(1, 3 if quick else 4):
        times = (_timed(lambda: _by_hand(count)),)  # noqa: B023
        rows.append(Row(f'by hand with integrals, N = {count}', times, part=none))
        times = (_timed(_lagranges_method(count)),)
        rows.append(Row(f'LagrangesMethod, N = {count}', times, part=none))
    rows += [
        Row(f'the paper, N = 5, {name}', (seconds,), part=none, note='as printed, i3-7100')
        for name, seconds in _PAPER.items()
    ]
    return rows


def _links() -> Links:
    """Return four links."""
    link = Link(
        length=0.475, mass=0.374, bending_stiffness=32.96, lumped_mass=0.5, lumped_place=-0.2
    )
    return Links(gravity=9.81, gravity_on_deflection=True, basis='sine', links=(link,) * _COUNT)


def _state(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return q and rates."""
    rng = np.random.default_rng(1)
    q = np.append(rng.uniform(-1.0, 1.0, _COUNT), rng.uniform(-0.01, 0.01, size - _COUNT))
    return q, rng.uniform(-1.0, 1.0, size)


def _c_call(links: Links, directory: Path) -> Callable[[], tuple[np.ndarray, ...]]:
    """Return a call of the compiled C, all numbers as parameters."""
    compiler = shutil.which('cc') or shutil.which('gcc')
    if compiler is None:
        raise BenchmarkError('no C compiler')
    source, library = directory / 'links.c', directory / 'links.so'
    source.write_text(code.as_single_c(derive(model_of(links, 'all'))))
    command = [compiler, '-O2', '-shared', '-fPIC', str(source), '-o', str(library), '-lm']
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).links_equations
    size = links.size
    arrays = (*_state(size), parameter_values(links))
    out = np.empty((size, size)), np.empty(size), np.empty(size)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, *out)]

    def call() -> tuple[np.ndarray, ...]:
        function(*pointers)
        return out

    call()
    # The arrays live as long as the function that has their addresses.
    call.arrays = arrays  # type: ignore[attr-defined]
    return call


def _numba_call(links: Links) -> Callable[[], tuple[np.ndarray, ...]]:
    """Return a call of the compiled functions of the package."""
    size = links.size
    function, parameters = compiled(links).equations, parameter_values(links)
    q, rates = _state(size)
    out = np.empty((size, size)), np.empty(size), np.empty(size)

    def call() -> tuple[np.ndarray, ...]:
        function(q, rates, parameters, *out)
        return out

    return call


def _generated_call(links: Links, write: Callable[[Any], str]) -> Callable[[], Any]:
    """Return a call of generated Python, or of its function of CasADi, numbers in the code."""
    namespace: dict[str, Any] = {}
    exec(write(derive(model_of(links, 'none'))), namespace)
    q, rates = _state(links.size)
    if write is code.as_python:
        return lambda: namespace['equations'](q, rates)[:3]
    x, v = casadi.SX.sym('q', links.size), casadi.SX.sym('rates', links.size)
    terms = namespace['equations']()(x, v, casadi.SX(0, 1))[:3]
    return _buffered(casadi.Function('links', [x, v], [casadi.densify(t) for t in terms]), links)


def _buffered(function: Any, links: Links) -> Callable[[], Any]:
    """Return a call of a function of CasADi that reads and fills arrays, its fastest way."""
    buffer, evaluate = function.buffer()
    size = links.size
    state = _state(size)
    out = np.empty((size, size)), np.empty(size), np.empty(size)
    for index, array in enumerate(state):
        buffer.set_arg(index, array.data)
    for index, array in enumerate(out):
        buffer.set_res(index, array.data)

    def call() -> tuple[np.ndarray, ...]:
        evaluate()
        return out

    # The arrays live as long as the function that has their addresses.
    call.kept = buffer, state  # type: ignore[attr-defined]
    return call


def _differentiated(links: Links) -> Callable[[], Any]:
    """Return a call of CasADi that differentiates M for the velocity terms."""
    namespace: dict[str, Any] = {}
    exec(code.as_casadi(derive(model_of(links, 'none'))), namespace)
    size = links.size
    q, rates = casadi.SX.sym('q', size), casadi.SX.sym('rates', size)
    mass, _, static, _ = namespace['equations']()(q, rates, casadi.SX(0, 1))
    kinetic = casadi.bilin(mass, rates, rates) / 2.0
    velocity = casadi.jtimes(mass @ rates, q, rates) - casadi.gradient(kinetic, q)
    terms = [casadi.densify(term) for term in (mass, velocity, static)]
    return _buffered(casadi.Function('links', [q, rates], terms), links)


def _pinocchio() -> Callable[[], Any]:
    """Return a call of Pinocchio for rigid pieces, as many as there are coordinates."""
    pin = module('pinocchio', 'pin')
    links = _links()
    model, parent, length = pin.Model(), 0, 0.0
    model.gravity.linear = np.array([0.0, -links.gravity, 0.0])
    for link in links.links:
        for _ in range(1 + links.modes):
            place = pin.SE3(np.eye(3), np.array([length, 0.0, 0.0]))
            parent = model.addJoint(parent, pin.JointModelRZ(), place, f'joint_{model.njoints}')
            length = link.length / (1 + links.modes)
            mass = link.mass / (1 + links.modes)
            center = np.array([length / 2.0, 0.0, 0.0])
            body = pin.Inertia(mass, center, mass * length**2 / 12.0 * np.eye(3))
            model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    data = model.createData()
    q, rates = _state(links.size)

    def call() -> tuple[Any, Any]:
        return pin.crba(model, data, q), pin.nonLinearEffects(model, data, q, rates)

    return call


def evaluation(quick: bool) -> list[Row]:
    """Time evaluations of four links."""
    links = _links()
    repeats = 5 if quick else 25
    with tempfile.TemporaryDirectory() as directory:
        makers: dict[str, tuple[Callable[[], Callable[[], Any]], str]] = {
            'numba, generated': (lambda: _numba_call(links), 'numbers are parameters'),
            'C, generated': (
                lambda: _c_call(links, Path(directory)),
                'numbers are parameters; called by ctypes',
            ),
            'CasADi, generated': (lambda: _generated_call(links, code.as_casadi), ''),
            'CasADi, M differentiated': (lambda: _differentiated(links), ''),
            'Python, generated': (lambda: _generated_call(links, code.as_python), ''),
            'Pinocchio': (
                _pinocchio,
                '12 rigid pieces: crba and nonLinearEffects, no deflections',
            ),
        }
        rows, exact = [], None
        for name, (make, note) in makers.items():
            try:
                call = make()
            except BenchmarkError as error:
                rows.append(Row(name, (float('nan'),), note=str(error)))
                continue
            found = call()
            difference = None
            if exact is None:
                exact = [np.array(part) for part in found]
            elif len(found) == len(exact):
                difference = max(
                    float(np.abs(one - other).max() / np.abs(other).max())
                    for one, other in zip(found, exact, strict=True)
                )
            times, _ = measure(repeated(call), repeats)
            each = f'{1e6 * statistics.median(times) / CALLS:.3g} us each'
            rows.append(Row(name, times, difference, note=f'{each}; {note}'.rstrip('; ')))
    return rows


SECTIONS = {
    's': Section(
        f'Equations of N flexible links with {_MOST} at most: derived and written as C',
        derivation,
        'derived',
    ),
    't': Section(f'Equations of four flexible links, {CALLS} evaluations', evaluation),
}
