"""
Generated equations as functions: evaluation of a state, and compiled code kept in files.

:func:`compiled` writes the code of numba beside the machine code of the other kernels, under a
name that depends on all that it is generated from: a second start derives and compiles nothing.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
import uuid
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import LongreachError
from longreach_symbolic.links import Links, Model, State, model_of

# Modules that a generated text depends on.
_GENERATOR = ('basis', 'code', 'equations', 'links')

_KERNELS = '''"""Kernels of flexible links, called by names of their own."""

import sys

from longreach_dynamics.kernels import kernel
from {module} import {factories}

_equations = sys.modules[{equations!r}].equations
'''
_KERNEL = """_{name} = {factory}(_equations)


@kernel
def {name}(*arguments):
    return _{name}(*arguments)
"""


class Evaluation(NamedTuple):
    """Terms of the equations of motion at a state, n = N (1 + s)."""

    mass_matrix: np.ndarray  # (n, n)
    velocity_terms: np.ndarray  # (n,)
    gravity_and_stiffness: np.ndarray  # (n,)
    force_map: np.ndarray  # (n, N)


def derive(model: Model, form: str = 'reduced', as_printed: bool = False, **options: Any) -> Any:
    """Return the Equations of a model, ``form`` 'reduced' or 'trace', which ``as_printed`` has."""
    from longreach_symbolic.equations import reduced
    from longreach_symbolic.trace import trace

    if as_printed:
        return trace(model, as_printed, **options)
    makers: dict[str, Any] = {'reduced': reduced, 'trace': trace}
    return makers[form](model, **options)


def evaluate(
    links: Links, state: State, form: str = 'reduced', as_printed: bool = False
) -> Evaluation:
    """
    Evaluate the equations of motion at a state, by generated Python.

    Raises
    ------
    InputError
        When the state's lists do not fit the links.
    """
    state.check_lengths(links)
    q = np.array([*state.theta, *state.f])
    rates = np.array([*state.theta_rate, *state.f_rate])
    return evaluator(links, form, as_printed)(q, rates)


def evaluator(
    links: Links, form: str = 'reduced', as_printed: bool = False
) -> Callable[[np.ndarray, np.ndarray], Evaluation]:
    """Return the function of :func:`evaluate` for arrays q and rates, to call more than once."""
    from longreach_symbolic.code import as_python

    equations = derive(model_of(links, 'none'), form, as_printed)
    namespace: dict[str, Any] = {}
    exec(compile(as_python(equations, cse=False), '<links>', 'exec'), namespace)
    # Adding 0 makes 0 of -0.
    return lambda q, rates: Evaluation(*(p + 0.0 for p in namespace['equations'](q, rates)))


def parameter_values(links: Links) -> np.ndarray:
    """Return what :func:`compiled` functions take as parameters: g, then L, m, EI, M, mu."""
    return np.array([p.value for p in model_of(links, 'all').parameters])


def compiled(links: Links) -> ModuleType:
    """
    Return a module of functions compiled by numba for links like these.

    Only their number, the functions and where gravity acts matter: all numbers are parameters, so
    that other values need no compilation. The module has what
    :func:`longreach_symbolic.code.as_numba` describes: ``equations``, ``force_map``,
    ``potential_energy``, ``positions``, and ``PARAMETERS``.

    Raises
    ------
    LongreachError
        When the directory of the cache cannot be written.
    """
    return _compiled(len(links.links), links.modes, links.basis, links.gravity_on_deflection)


@functools.cache
def _compiled(count: int, modes: int, basis: str, gravity_on_deflection: bool) -> ModuleType:
    """Return the module, from its file if there is one."""

    def generate() -> str:
        from longreach_symbolic.code import as_numba
        from longreach_symbolic.links import symbolic_model

        return as_numba(derive(symbolic_model(count, modes, basis, gravity_on_deflection)))

    key = repr((count, modes, basis, gravity_on_deflection))
    return module_of(f'links_{count}_{modes}_{basis}', key, generate)


@functools.cache
def kernels_of(equations: ModuleType, module: str, **factories: str) -> Any:
    """Return a module of kernels that factories in ``module`` make of compiled equations."""
    # Of its own for each model, so that the machine code of several is kept.
    text = _KERNELS.format(
        module=module, factories=', '.join(factories.values()), equations=equations.__name__
    )
    for name, factory in factories.items():
        text += _KERNEL.format(name=name, factory=factory)
    stem = f'{module.rpartition(".")[2]}_{equations.__name__.removeprefix("longreach_symbolic_")}'
    return module_of(stem, text, lambda: text)


def module_of(stem: str, key: str, generate: Callable[[], str]) -> ModuleType:
    """Return a module of generated code, from its file ``stem_..`` if it has one of this key."""
    digest = hashlib.sha256(f'{_version()} {key}'.encode()).hexdigest()[:16]
    file = source_directory() / f'{stem}_{digest}.py'
    if not file.is_file():
        _write(file, generate())
    spec = importlib.util.spec_from_file_location(f'longreach_symbolic_{file.stem}', file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Machine code that numba has kept names the module it belongs to.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _anchor() -> None:
    """Stand for the compiled functions of this package, where their machine code is kept."""


@functools.cache
def source_directory() -> Path:
    """Return where generated code is kept: below numba's cache of this package's functions."""
    from numba.core.caching import FunctionCache

    try:
        return Path(FunctionCache(_anchor).cache_path) / 'generated'
    except RuntimeError as error:
        raise LongreachError(
            'generated code is kept in files, and no directory for them can be written: set'
            ' NUMBA_CACHE_DIR to one that is writable'
        ) from error


@functools.cache
def _version() -> str:
    """Return a digest of what generates the code."""
    files = [Path(__file__).parent / f'{name}.py' for name in _GENERATOR]
    text = b''.join(file.read_bytes() for file in files)
    return hashlib.sha256(text + metadata.version('sympy').encode()).hexdigest()


def _write(file: Path, text: str) -> None:
    """Write a file that other processes may read or write at the same time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        own = file.with_suffix(f'.{uuid.uuid4().hex}')
        try:
            own.write_text(text, encoding='utf-8')
            own.replace(file)
        finally:
            own.unlink(missing_ok=True)
    except OSError as error:
        raise LongreachError(
            f'{file.parent} cannot be written: {error.strerror}; generated code is kept there, set'
            ' NUMBA_CACHE_DIR to a directory that is writable'
        ) from error
