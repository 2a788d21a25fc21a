"""Generated Python, numba, C, CasADi and JSON equal the second derivation."""

import ctypes
import functools
import importlib
import json
import shutil
import subprocess
import sys

import casadi
import numpy as np
import pytest
import sympy
from links_reference import arrays, assert_equal, random_links, random_state, reference

from longreach_dynamics.errors import InputError
from longreach_symbolic import code
from longreach_symbolic.generated import derive
from longreach_symbolic.links import model_of, symbolic_model

COMPILER = shutil.which('cc') or shutil.which('gcc') or shutil.which('clang')
CASES = [
    (1, 2, 'sine'),
    (2, 2, 'sine'),
    (3, 2, 'cubic'),
    (2, 4, 'cubic'),
    (4, 1, 'sine'),
    pytest.param(6, 2, 'sine', marks=pytest.mark.slow),
]
FLAGS = ('-std=c99', '-O2', '-Wall', '-Wextra', '-Wconversion', '-Werror', '-pedantic')


@functools.cache
def case(count, modes, basis, symbols='all'):
    links = random_links(count, modes, basis, weighing=count == 3)
    model = model_of(links, symbols)
    values = np.array([p.value for p in model.parameters])
    return links, derive(model), values


def executed(text):
    namespace = {}
    exec(compile(text, '<generated>', 'exec'), namespace)
    return namespace


def ends(links, state):
    """Return x and y of the ends of the chords."""
    angles = np.cumsum(state.theta)
    lengths = [link.length for link in links.links]
    return np.cumsum([lengths * np.cos(angles), lengths * np.sin(angles)], axis=1).T


def room(size, count):
    """Return arrays of NaN for mass matrix, velocity terms, statics, force map and ends."""
    shapes = (size, size), size, size, (size, count), (count, 2)
    return [np.full(shape, np.nan) for shape in shapes]


@pytest.mark.parametrize('cse', [True, False])
@pytest.mark.parametrize('symbols', ['all', 'none'])
@pytest.mark.parametrize(('count', 'modes', 'basis'), CASES)
def test_python(count, modes, basis, symbols, cse):
    links, equations, _ = case(count, modes, basis, symbols)
    module = executed(code.as_python(equations, cse))
    state = random_state(links)
    q, rates = arrays(state)
    wanted = reference(links, state)
    assert_equal(module['equations'](q, rates), wanted[:4])
    kinetic, potential = module['energy'](q, rates)
    assert kinetic == pytest.approx(rates @ wanted[0] @ rates / 2.0, rel=1e-12)
    assert potential == pytest.approx(wanted[4], rel=1e-12)
    assert_equal([module['positions'](q)], [ends(links, state)])
    torques = np.linspace(-1.0, 2.0, count)
    found = module['accelerations'](q, rates, torques)
    forces = wanted[3] @ torques - wanted[1] - wanted[2]
    # Backward error: four polynomials of a link are nearly dependent.
    residual = np.abs(wanted[0] @ found - forces).max()
    assert residual < 1e-12 * (np.abs(wanted[0]) @ np.abs(found)).max()
    with pytest.raises(ValueError, match='q has the shape'):
        module['equations'](q[1:], rates)


def test_everything_written_out():
    model = model_of(random_links(2), 'all')
    equations = derive(model, abbreviated=())
    assert not equations.definitions
    module = executed(code.as_python(equations, cse=False))
    state = random_state(model.links)
    assert_equal(module['equations'](*arrays(state)), reference(model.links, state)[:4])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(('count', 'modes', 'basis'), CASES[1:3])
def test_numba(count, modes, basis, tmp_path, monkeypatch):
    links, equations, values = case(count, modes, basis)
    (tmp_path / 'made.py').write_text(code.as_numba(equations))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, 'made', raising=False)
    made = importlib.import_module('made')

    state = random_state(links)
    q, rates = arrays(state)
    *terms, force, end = room(q.size, count)
    made.equations(q, rates, values, *terms)
    made.force_map(values, force)
    made.positions(q, values, end)
    wanted = reference(links, state)
    assert_equal([*terms, force, end], [*wanted[:4], ends(links, state)])
    assert made.potential_energy(q, values) == pytest.approx(wanted[4], rel=1e-12)
    monkeypatch.delitem(sys.modules, 'made')


def library(text, directory):
    """Return the compiled shared library of a text of C."""
    if COMPILER is None:
        pytest.skip('without a C compiler')
    source, target = directory / 'links.c', directory / 'links.so'
    source.write_text(text)
    command = [COMPILER, *FLAGS, '-shared', '-fPIC', str(source), '-o', str(target), '-lm']
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(target))


def pointer(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


@pytest.mark.parametrize('symbols', ['all', 'none'])
@pytest.mark.parametrize(('count', 'modes', 'basis'), CASES)
def test_c(count, modes, basis, symbols, tmp_path):
    links, equations, values = case(count, modes, basis, symbols)
    made = library(code.as_single_c(equations), tmp_path)
    state = random_state(links)
    q, rates = arrays(state)
    *terms, force, end = room(q.size, count)
    made.links_equations(*map(pointer, (q, rates, values, *terms)))
    made.links_force_map(*map(pointer, (values, force)))
    made.links_positions(*map(pointer, (q, values, end)))
    made.links_potential_energy.restype = ctypes.c_double
    wanted = reference(links, state)
    assert_equal([*terms, force, end], [*wanted[:4], ends(links, state)])
    potential = made.links_potential_energy(pointer(q), pointer(values))
    assert potential == pytest.approx(wanted[4], rel=1e-12)
    if symbols == 'all':
        defaults = (ctypes.c_double * values.size).in_dll(made, 'links_defaults')
        assert list(defaults) == list(values)


def test_c_of_two_models_in_one_program(tmp_path):
    """Nothing that other files see has the same name, and C++ reads the headers."""
    if COMPILER is None:
        pytest.skip('without a C compiler')
    printed = ''
    for name, count in (('arm', 2), ('boom', 1)):
        _, equations, values = case(count, 2, 'sine', 'all')
        header, source = code.as_c(equations, name=name)
        (tmp_path / f'{name}.h').write_text(header)
        (tmp_path / f'{name}.c').write_text(source)
        printed += f'{count} {values[1]:g} '
    main = tmp_path / 'main.c'
    main.write_text(
        '#include <stdio.h>\n#include "arm.h"\n#include "boom.h"\n#include "arm.h"\n'
        'int main(void) { printf("%d %g %d %g ", ARM_COUNT, arm_defaults[1], BOOM_COUNT,'
        ' boom_defaults[1]); return 0; }\n'
    )
    sources = [str(tmp_path / f'{name}.c') for name in ('main', 'arm', 'boom')]
    command = [COMPILER, *FLAGS, *sources, '-o', str(tmp_path / 'run'), '-lm']
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.check_output([str(tmp_path / 'run')], text=True) == printed
    with pytest.raises(InputError, match="name = '2 arms', allowed: letters, digits and _"):
        code.as_c(equations, name='2 arms')


@pytest.mark.parametrize(('count', 'modes', 'basis'), CASES[:3])
def test_casadi(count, modes, basis):
    links, equations, values = case(count, modes, basis)
    function = executed(code.as_casadi(equations))['equations']()
    assert isinstance(function, casadi.Function)
    state = random_state(links)
    found = [part.full() for part in function(*arrays(state), values)]
    found[1], found[2] = found[1].ravel(), found[2].ravel()
    assert_equal(found, reference(links, state)[:4])


@pytest.mark.parametrize('cse', [True, False])
def test_json(cse):
    links, equations, values = case(2, 2, 'sine')
    found = json.loads(code.as_json(equations, cse))
    state = random_state(links)
    q, rates = arrays(state)
    known = dict(zip(found['coordinates'], q, strict=True))
    known |= dict(zip(found['rates'], rates, strict=True))
    known |= {p['name']: p['value'] for p in found['parameters']}
    assert [p['value'] for p in found['parameters']] == list(values)

    def value(text):
        return float(sympy.sympify(text, locals=dict(known)))

    for name, text in found['definitions']:
        known[name] = value(text)
    wanted = reference(links, state)
    matrix = [[value(text) for text in row] for row in found['mass_matrix']]
    terms = [[value(text) for text in found[name]]
             for name in ('velocity_terms', 'gravity_and_stiffness')]  # fmt: skip
    force = [[value(text) for text in row] for row in found['force_map']]
    assert_equal((np.array(matrix), *map(np.array, terms), np.array(force)), wanted[:4])
    assert value(found['potential_energy']) == pytest.approx(wanted[4], rel=1e-12)


def test_operations_are_counted_as_they_stand():
    x, y = sympy.symbols('x y')
    assert code.operations([x]) == 0
    assert code.operations([x + y, x * y, sympy.sin(x)]) == 3
    assert code.operations([x**2 * y + 1, -x + y]) == 4


def test_elimination_leaves_a_few_percent_of_the_operations():
    """SymPy merges factors when it writes products out, so the counts differ by some percent."""
    equations = derive(symbolic_model(4))
    results = code.entries(equations)
    written = code.operations(results, equations.definitions)
    out = derive(symbolic_model(4), abbreviated=())
    assert written == pytest.approx(code.operations(code.entries(out)), rel=0.1)
    assert code.assignments(equations, results, cse=True).operations < 0.1 * written
