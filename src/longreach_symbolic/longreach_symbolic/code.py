"""
Equations as code: Python, numba, C, CasADi, and as JSON.

Each text stands by itself. Arrays: ``q`` = (theta_1, .., f_11, f_12, ..), ``rates`` its
derivative, ``parameters`` the quantities that stayed symbols. Matrices of C are by rows.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from string import Template
from typing import Any, NamedTuple

import sympy
from sympy.printing.c import C99CodePrinter
from sympy.printing.pycode import PythonCodePrinter

from longreach_dynamics.errors import InputError
from longreach_symbolic.equations import Definition, Equations

_SOURCE = 'Yu and Chen (2019), doi:10.1155/2019/5627271'


class Assignments(NamedTuple):
    """Code of some results without a language: variables in order, and results in them."""

    locals: list[tuple[str, Any]]
    results: list[Any]

    @property
    def operations(self) -> int:
        """Number of operations."""
        return operations([value for _, value in self.locals] + self.results)


def operations(expressions: Iterable[Any], definitions: Iterable[Definition] = ()) -> int:
    """Return the number of operations of expressions; a symbol counts as its definition."""
    known: dict[Any, int] = {}

    def count(expression: Any) -> int:
        if not expression.args:
            return known.get(expression, 0)
        if expression not in known:
            # Sums and products of n terms have n - 1, powers and functions one.
            own = len(expression.args) - 1
            if expression.is_Function:
                own = 1
            elif expression.is_Mul and expression.args[0] == -1:
                # The sign of a term is counted with the sum.
                own -= 1
            known[expression] = own + sum(map(count, expression.args))
        return known[expression]

    for definition in definitions:
        known[definition.symbol] = count(definition.expression)
    return sum(map(count, expressions))


def assignments(equations: Equations, results: Sequence[Any], cse: bool) -> Assignments:
    """Return the code of results and of the definitions they need; cse: share what repeats."""
    needed = _needed(equations, results)
    if not cse:
        return Assignments([(d.symbol.name, d.expression) for d in needed], list(results))
    names = (sympy.Symbol(f'x{number}', real=True) for number in range(10**9))
    replaced, shortened = sympy.cse(
        [*(d.expression for d in needed), *results], symbols=names, order='none'
    )
    values = dict(replaced)
    values |= {d.symbol: e for d, e in zip(needed, shortened, strict=False)}
    order: dict[Any, None] = {}

    def compute(symbol: Any) -> None:
        if symbol in values and symbol not in order:
            for other in sorted(values[symbol].free_symbols, key=str):
                compute(other)
            order[symbol] = None

    for symbol in values:
        compute(symbol)
    return Assignments(
        [(symbol.name, values[symbol]) for symbol in order], shortened[len(needed) :]
    )


def _needed(equations: Equations, results: Sequence[Any]) -> list[Any]:
    """Return the definitions that results need, directly or through others."""
    wanted = set().union(*(result.free_symbols for result in results))
    found = []
    for definition in reversed(equations.definitions):
        if definition.symbol in wanted:
            found.append(definition)
            wanted |= definition.expression.free_symbols
    return found[::-1]


# --- printers -------------------------------------------------------------------------------


class _Plain:
    """Floats with all digits, small powers of variables as products."""

    def _print_Pow(self, expr: Any, **options: Any) -> str:  # noqa: N802
        base, exponent = expr.args
        if base.is_Symbol and exponent in (2, 3):
            return '(' + '*'.join([self.doprint(base)] * int(exponent)) + ')'  # type: ignore[attr-defined]
        return str(super()._print_Pow(expr, **options))  # type: ignore[misc]

    def _print_Float(self, expr: Any) -> str:  # noqa: N802
        return repr(float(expr))


class _Python(_Plain, PythonCodePrinter):  # type: ignore[misc]
    """Python with the names of module math."""

    def __init__(self) -> None:
        super().__init__({'fully_qualified_modules': False, 'precision': 17})

    def _print_Rational(self, expr: Any) -> str:  # noqa: N802
        return f'{expr.p}.0/{expr.q}.0'


class _C(_Plain, C99CodePrinter):  # type: ignore[misc]
    """C99 without the constants that only some compilers' math.h has."""

    def __init__(self) -> None:
        super().__init__({'math_macros': {}, 'precision': 17})

    def _print_Pi(self, expr: Any) -> str:  # noqa: ARG002, N802
        return '3.14159265358979323846'


# --- parts of all languages -----------------------------------------------------------------


class Parts(NamedTuple):
    """The functions of a text, as assignments."""

    equations: Assignments
    potential: Assignments
    positions: Assignments
    force_map: Assignments


# Kept, as texts and their numbers of operations are asked for one after the other.
@functools.lru_cache(maxsize=1)
def parts_of(equations: Equations, cse: bool) -> Parts:
    """Return the functions of a text; ``cse`` as of :func:`assignments`."""
    results = (
        entries(equations),
        [equations.potential_energy],
        equations.positions,
        equations.force_map,
    )
    return Parts(*(assignments(equations, list(one), cse) for one in results))


def entries(equations: Equations) -> list[Any]:
    """Return mass matrix, velocity terms, gravity and stiffness one after the other."""
    parts = (equations.mass_matrix, equations.velocity_terms, equations.gravity_and_stiffness)
    return [entry for part in parts for entry in part]


def description(equations: Equations) -> list[str]:
    """Return the heading of generated texts: model, coordinates, parameters with units."""
    model = equations.model
    n, s, links = model.count, model.modes, model.links
    form = equations.form + (
        ', Coriolis terms and M_ff as printed' if equations.as_printed else ''
    )
    weighs = 'where it is' if links.gravity_on_deflection else 'as if it were straight'
    functions = {'sine': 'sin(k pi x/L)', 'cubic': '(x/L)^(k+1) - (-1)^k x/L'}[links.basis]
    lines = [
        f'Equations of motion of {n} flexible links in a vertical plane.',
        '',
        '    mass_matrix q\'\' + velocity_terms + gravity_and_stiffness = force_map @ torques',
        '',
        f'After {_SOURCE}, corrected. Form: {form}.',
        f'Deflection of link i: y_i = sum over k = 1..{s} of phi_k f_ik, phi_k = {functions},',
        'x in [-L_i, 0] along the chord, 0 at the far end. A deflected link weighs',
        f'{weighs}; its lumped mass weighs where it is.',
        '',
        f'q, {n * (1 + s)} values:',
        f'    theta_1 .. theta_{n}  angle from chord i - 1 to chord i; the first from x [rad]',
        f'    f_11 .. f_{n}{s}      f_ik of each link, one link after the other [m]',
        'rates: derivative of q (dtheta_1, .., df_11, ..) [rad/s, m/s]',
        f'torques, {n} values: of motor i between the ends of links i - 1 and i [N m]',
        'motor angles: force_map.T @ q [rad]',
    ]  # fmt: skip
    parameters = model.parameters
    if parameters:
        lines += ['', f'parameters, {len(parameters)} values:']
        lines += [f'    {p.name:<6} {p.meaning} [{p.unit}]' for p in parameters]
    fixed = [q for q in model.quantities if not q.is_symbol]
    if fixed:
        lines += ['', 'Numbers in the code:']
        lines += [f'    {q.name:<6} = {q.value!r} {q.unit}, {q.meaning}' for q in fixed]
    return lines


def _body(
    equations: Equations, code: Assignments, targets: Sequence[tuple[str, str]], is_c: bool = False
) -> Iterator[str]:
    """Yield the lines of a function; targets, in Python 0 before, are names and their mirror."""
    printer, declare, end = (_C(), 'const double ', ';') if is_c else (_Python(), '', '')
    values = [value for _, value in code.locals] + code.results
    used = {symbol.name for value in values for symbol in value.free_symbols}
    arrays = {
        'q': equations.coordinates,
        'rates': equations.rates,
        'parameters': equations.model.parameters,
    }
    for array, symbols in arrays.items():
        for index, symbol in enumerate(symbols):
            if symbol.name in used:
                yield f'    {declare}{symbol.name} = {array}[{index}]{end}'
    for name, value in code.locals:
        yield f'    {declare}{name} = {printer.doprint(value)}{end}'
    for (target, mirror), value in zip(targets, code.results, strict=True):
        if target and (is_c or not value.is_zero):
            also = f'{mirror} = ' if mirror else ''
            yield f'    {also}{target} = {printer.doprint(value)}{end}'


# --- Python, numba, CasADi --------------------------------------------------------------------


def _targets(equations: Equations) -> list[tuple[str, str]]:
    """Return where :func:`entries` are stored: lower triangle, and the mirrored entry."""
    size = len(equations.coordinates)
    found = []
    for row in range(size):
        for column in range(size):
            target = f'mass_matrix[{row}, {column}]' if column <= row else ''
            mirror = f'mass_matrix[{column}, {row}]' if column < row else ''
            found.append((target, mirror))
    for name in ('velocity_terms', 'gravity_and_stiffness'):
        found += [(f'{name}[{row}]', '') for row in range(size)]
    return found


def _python_head(equations: Equations, imports: str) -> Iterator[str]:
    """Yield docstring, imports and constants of a module of Python."""
    model = equations.model
    yield '"""'
    yield from description(equations)
    yield '"""'
    yield ''
    yield imports
    yield ''
    yield f'LINKS = {model.count}'
    yield f'MODES = {model.modes}'
    names = [p.name for p in model.parameters]
    yield f'PARAMETERS = {tuple(names)!r}'
    if model.has_values:
        values = ', '.join(repr(p.value) for p in model.parameters)
        yield f'DEFAULTS = np.array([{values}], dtype=float)'


_PYTHON = '''$head


def equations(q, rates, $arguments):
    """
    Return mass matrix, velocity terms, gravity and stiffness, and force map.

    Shapes ($size, $size), ($size,), ($size,), ($size, $links).
    """
    _check(q, $size, 'q')
    _check(rates, $size, 'rates')
    mass_matrix = np.zeros(($size, $size))
    velocity_terms = np.zeros($size)
    gravity_and_stiffness = np.zeros($size)
$equations
    return mass_matrix, velocity_terms, gravity_and_stiffness, force_map(parameters)


def accelerations(q, rates, torques, $arguments):
    """Return the second derivative of q for motor torques [N m]."""
    _check(torques, $links, 'torques')
    mass, velocity, static, force = equations(q, rates, parameters)
    return np.linalg.solve(mass, force @ torques - velocity - static)


def force_map($arguments):
    """Return the matrix from torques to forces; transposed from q to motor angles."""
    _check(parameters, $parameters, 'parameters')
    found = np.zeros(($size, $links))
$force_map
    return found


def energy(q, rates, $arguments):
    """Return kinetic and potential energy [J]; the latter is 0 at q = 0."""
    mass = equations(q, rates, parameters)[0]
$potential
    return 0.5 * (rates @ mass @ rates), potential


def positions(q, $arguments):
    """Return x and y of the ends of the links, ($links, 2) [m]; y is up."""
    _check(q, $size, 'q')
    _check(parameters, $parameters, 'parameters')
    found = np.zeros(($links, 2))
$positions
    return found


def _check(values, size, name):
    """Raise ValueError for an array of the wrong shape."""
    if np.shape(values) != (size,):
        raise ValueError(f'{name} has the shape {np.shape(values)}, allowed: ({size},)')
'''

_NUMBA = '''$head


@njit(cache=True)
def equations(q, rates, parameters, mass_matrix, velocity_terms, gravity_and_stiffness):
    """
    Fill mass matrix, velocity terms, gravity and stiffness. Shapes are not checked.

    mass_matrix ($size, $size), parameters ($parameters,), others ($size,).
    """
    mass_matrix[:] = 0.0
    velocity_terms[:] = 0.0
    gravity_and_stiffness[:] = 0.0
$equations


@njit(cache=True)
def force_map(parameters, found):
    """Fill the matrix from torques to forces; its transpose maps q to motor angles."""
    found[:] = 0.0
$force_map


@njit(cache=True)
def potential_energy(q, parameters):
    """Return the potential energy [J], which is 0 at q = 0."""
$potential
    return potential


@njit(cache=True)
def positions(q, parameters, found):
    """Fill x and y of the ends of the links, ($links, 2) [m]; y is up."""
$positions
'''

_CASADI = '''$head


def equations():
    """
    Return a Function of q, rates, parameters.

    Its results are mass_matrix, velocity_terms, gravity_and_stiffness, force_map.
    """
    q = SX.sym('q', $size)
    rates = SX.sym('rates', $size)
    parameters = SX.sym('parameters', $parameters)
    mass_matrix = SX.zeros($size, $size)
    velocity_terms = SX.zeros($size)
    gravity_and_stiffness = SX.zeros($size)
$equations
    force_map = SX.zeros($size, $links)
$force_map
    return Function(
        'links',
        [q, rates, parameters],
        [mass_matrix, velocity_terms, gravity_and_stiffness, force_map],
        ['q', 'rates', 'parameters'],
        ['mass_matrix', 'velocity_terms', 'gravity_and_stiffness', 'force_map'],
    )
'''


def _python_text(
    text: str, equations: Equations, cse: bool, imports: str, force_map: str = 'found'
) -> str:
    """Return a template with what depends on equations; ``force_map`` is its variable there."""
    parts = parts_of(equations, cse)
    model = equations.model
    size, n = len(equations.coordinates), model.count

    def body(code: Assignments, targets: Sequence[tuple[str, str]]) -> str:
        return '\n'.join(_body(equations, code, targets))

    def matrix(name: str, rows: int, columns: int) -> list[tuple[str, str]]:
        places = itertools.product(range(rows), range(columns))
        return [(f'{name}[{row}, {column}]', '') for row, column in places]

    return Template(text).substitute(
        head='\n'.join(_python_head(equations, imports)),
        arguments='parameters=DEFAULTS' if model.has_values else 'parameters',
        size=size,
        links=n,
        parameters=len(model.parameters),
        equations=body(parts.equations, _targets(equations)),
        force_map=body(parts.force_map, matrix(force_map, size, n)),
        potential=body(parts.potential, [('potential', '')]),
        positions=body(parts.positions, matrix('found', n, 2)),
    )


def as_python(equations: Equations, cse: bool = True) -> str:
    """Return a module that needs NumPy: equations, accelerations, energies and positions."""
    imports = 'from math import cos, pi, sin\n\nimport numpy as np'
    return _python_text(_PYTHON, equations, cse, imports)


def as_numba(equations: Equations, cse: bool = True) -> str:
    """Return a module of functions compiled by numba that fill arrays."""
    imports = 'from math import cos, pi, sin\n\nimport numpy as np\nfrom numba import njit'
    return _python_text(_NUMBA, equations, cse, imports)


def as_casadi(equations: Equations, cse: bool = True) -> str:
    """Return a module of Python that builds a function of CasADi."""
    casadi = 'from casadi import SX, Function, cos, sin'
    imports = f'from math import pi\n\nimport numpy as np\n{casadi}'
    return _python_text(_CASADI, equations, cse, imports, 'force_map')


# --- C --------------------------------------------------------------------------------------


def _c_function(head: str, arguments: Sequence[str], body: Iterable[str]) -> list[str]:
    """Return the lines of a function of C; what is assigned to ``result`` is returned."""
    lines = [line.replace('    result = ', '    return ') for line in body]
    unused = [a for a in arguments if not any(f' = {a}[' in line for line in lines)]
    return ['', head, '{', *(f'    (void)({a});' for a in unused), *lines, '}']


def as_c(equations: Equations, cse: bool = True, name: str = 'links') -> tuple[str, str]:
    """Return header ``name.h`` and source of C99; ``name`` begins all names, matrices by rows."""
    if not re.fullmatch(r'[A-Za-z][A-Za-z0-9_]*', name):
        raise InputError(
            f'name = {name!r}, allowed: letters, digits and _, a letter first; it begins the'
            ' names of functions in C'
        )
    parts = parts_of(equations, cse)
    model = equations.model
    n, size, parameters = model.count, len(equations.coordinates), model.parameters
    big, guard = name.upper(), f'{name.upper()}_H'

    def flat(array: str, rows: int, columns: int) -> list[tuple[str, str]]:
        return [(f'{array}[{index}]', '') for index in range(rows * columns)]

    def by_rows(target: str) -> str:
        return re.sub(r'\[(\d+), (\d+)\]', lambda m: f'[{int(m[1]) * size + int(m[2])}]', target)

    targets = [(by_rows(target), by_rows(mirror)) for target, mirror in _targets(equations)]
    heads = {
        f'void {name}_equations(const double *q, const double *rates, const double *parameters,\n'
        '    double *mass_matrix, double *velocity_terms, double *gravity_and_stiffness)': (
            f'Mass matrix ({size}, {size}), velocity terms ({size}), gravity and stiffness'
            f' ({size}).'
        ),
        f'void {name}_force_map(const double *parameters, double *force_map)': (
            f'From torques to forces ({size}, {n}); its transpose maps q to motor angles.'
        ),
        f'double {name}_potential_energy(const double *q, const double *parameters)': (
            'Potential energy [J], 0 at q = 0.'
        ),
        f'void {name}_positions(const double *q, const double *parameters, double *positions)': (
            f'x and y of the ends of the links ({n}, 2) [m]; y is up.'
        ),
    }
    header = ['/*', *(f' * {line}'.rstrip() for line in description(equations)), ' */']
    header += [f'#ifndef {guard}', f'#define {guard}', '']
    counts = {'COUNT': n, 'MODES': model.modes, 'SIZE': size, 'PARAMETERS': len(parameters)}
    header += [f'#define {big}_{what} {number}' for what, number in counts.items()]
    header += ['', '#ifdef __cplusplus', 'extern "C" {', '#endif', '']
    source = [f'#include "{name}.h"', '', '#include <math.h>', '']
    if parameters:
        arrays = {f'const char *const {name}_parameter_names': [f'"{p.name}"' for p in parameters]}
        if model.has_values:
            arrays[f'const double {name}_defaults'] = [repr(p.value) for p in parameters]
        for array, values in arrays.items():
            header.append(f'extern {array}[{big}_PARAMETERS];')
            source.append(f'{array}[{big}_PARAMETERS] = {{{", ".join(values)}}};')
    for head, meaning in heads.items():
        header += ['', f'/* {meaning} */', f'{head};']
    header += ['', '#ifdef __cplusplus', '}', '#endif', '', '#endif', '']
    bodies = (
        (('q', 'rates', 'parameters'), parts.equations, targets),
        (('parameters',), parts.force_map, flat('force_map', size, n)),
        (('q', 'parameters'), parts.potential, [('result', '')]),
        (('q', 'parameters'), parts.positions, flat('positions', n, 2)),
    )
    for head, (arguments, part, places) in zip(heads, bodies, strict=True):
        source += _c_function(head, arguments, _body(equations, part, places, is_c=True))
    return '\n'.join(header), '\n'.join([*source, ''])


def as_single_c(equations: Equations, cse: bool = True) -> str:
    """Return header and source of :func:`as_c` as one text."""
    header, source = as_c(equations, cse)
    return header + source.partition('\n')[2]


# --- JSON -----------------------------------------------------------------------------------


def as_json(equations: Equations, cse: bool = True) -> str:
    """Return the expressions as texts that sympy.sympify reads, with symbols and counts."""
    model = equations.model
    all_entries = [*entries(equations), *equations.force_map, equations.potential_energy]
    code = assignments(equations, all_entries, cse)
    size, n = len(equations.coordinates), model.count
    results = iter(map(str, code.results))
    found = {
        'description': '\n'.join(description(equations)),
        'links': n,
        'modes': model.modes,
        'basis': model.links.basis,
        'gravity_on_deflection': model.links.gravity_on_deflection,
        'form': equations.form,
        'as_printed': equations.as_printed,
        'coordinates': [s.name for s in equations.coordinates],
        'rates': [s.name for s in equations.rates],
        'parameters': [
            {'name': p.name, 'unit': p.unit, 'meaning': p.meaning}
            | ({'value': p.value} if model.has_values else {})
            for p in model.parameters
        ],
        'definitions': [[name, str(value)] for name, value in code.locals],
        'mass_matrix': [[next(results) for _ in range(size)] for _ in range(size)],
        'velocity_terms': [next(results) for _ in range(size)],
        'gravity_and_stiffness': [next(results) for _ in range(size)],
        'force_map': [[next(results) for _ in range(n)] for _ in range(size)],
        'potential_energy': next(results),
        'operations': code.operations,
    }
    return json.dumps(found, indent=1, allow_nan=False) + '\n'
