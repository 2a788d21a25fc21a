"""The cache of compiled functions, each step in a process of its own as between two runs."""

import importlib
import itertools
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import cfunc, float64, njit
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.experimental import jitclass

from longreach_dynamics import kernels
from longreach_dynamics.kernels import kernel

# Loads numba once, then answers each line, a directory, with a process that has loaded no kernel.
SERVER = """
import os
import sys

from numba import njit

import longreach_dynamics.kernels

njit(lambda x: x + 1.0)(1.0)
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.chdir(line.strip())
        sys.path.insert(0, line.strip())
        from machine.outer import compute, numbers
        value = compute(2.0, numbers(3.0))
        hits = sum(compute.stats.cache_hits.values())
        misses = sum(compute.stats.cache_misses.values())
        compute(5.0, numbers(7.0))
        print(value, hits, misses, len(compute.signatures), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit('the kernel failed')
"""

# Value, cache hits, cache misses and number of signatures of one fresh process.
Outcome = tuple[float, int, int, int]
MODULES = {
    '__init__': 'from machine import deep\n',
    'deep': 'SIZE = 0.0\n',
    'defaults': 'FACTOR = 0.0\nADDED = 0.0\n',
    **{
        name: f'from numba import {how}\n\n@{how}\ndef {name}(x):\n    return 0.0 * x\n'
        for name, how in (
            ('aside', 'njit'),
            ('first', 'njit'),
            ('last', 'njit'),
            ('wide', 'vectorize'),
        )
    },
    'calls': """
from numba import njit
from machine.defaults import ADDED, FACTOR
from machine.first import first
from machine.last import last
from machine.wide import wide

BOTH = (first, (last,))

@njit
def calls(x, factor=FACTOR, added=ADDED):
    return factor * x + added + BOTH[0](x) + BOTH[1][0](x) + wide(x)
""",
    'inner': """
from numba import njit

@njit
def inner(x, p):
    return p.factor * x + 1.0
""",
    'constants': 'OFFSET = 0.0\n',
    'plain': """
from numba.extending import overload

def plain(x):
    raise NotImplementedError

@overload(plain)
def _plain(x):
    return lambda x: 0.0 * x
""",
    'maker': """
from numba import njit

def make(function):
    @njit
    def made(x, p):
        return function(x, p) + 0.0
    return made
""",
    'outer': """
from typing import NamedTuple

import machine
from longreach_dynamics.kernels import kernel
from machine import aside
from machine.calls import calls
from machine.constants import OFFSET
from machine.inner import inner
from machine.maker import make
from machine.plain import plain

class Given(NamedTuple):
    factor: float

numbers = Given
made = make(inner)

@kernel
def compute(x, p):
    own = made(x, p) + OFFSET + machine.deep.SIZE
    return own + aside.aside(x) + plain(x) + calls(x)
""",
    'other': '',
}


@pytest.fixture
def package(tmp_path):
    """A package whose kernel reaches modules in all ways."""
    directory = tmp_path / 'machine'
    directory.mkdir()
    for name, text in MODULES.items():
        (directory / f'{name}.py').write_text(text)
    return directory


def edit(module, old, new):
    """Replace a text that stands in a module by another of the same length."""
    text = module.read_text()
    assert old in text
    assert len(old) == len(new)
    module.write_text(text.replace(old, new))


def flipped(data):
    """Return bytes of which one bit in the middle is another."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.fixture(scope='module')
def run():
    """Return a function that calls the kernel of a package in a process of its own."""
    # As for users: the cache is beside the sources.
    environment = {name: value for name, value in os.environ.items() if name != 'NUMBA_CACHE_DIR'}
    # Python takes byte code for current when a source was edited within a second to the same size.
    environment['PYTHONDONTWRITEBYTECODE'] = '1'
    with subprocess.Popen(
        [sys.executable, '-c', SERVER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        requests, answers = server.stdin, server.stdout

        def called(package):
            print(package.parent, file=requests, flush=True)
            value, hits, misses, signatures = answers.readline().split()
            return float(value), int(hits), int(misses), int(signatures)

        yield called
        requests.close()


def test_cache_is_used_until_a_called_module_changes(package, run):
    # Value, hits, misses, and one signature for two values of the parameter.
    assert run(package) == (7.0, 0, 1, 1)
    assert run(package) == (7.0, 1, 0, 1)
    # The kernel's own file stays as it is.
    edits = [
        ('inner', '+ 1.0', '+ 2.0', 8.0),
        ('maker', '+ 0.0', '+ 0.5', 8.5),
        ('constants', '0.0', '1.0', 9.5),
        ('aside', '0.0 * x', '1.0 * x', 11.5),
        ('plain', '0.0 * x', '2.0 * x', 15.5),
        # A module within a module, functions in tuples, defaults.
        ('deep', '0.0', '1.0', 16.5),
        ('first', '0.0 * x', '1.0 * x', 18.5),
        ('last', '0.0 * x', '1.0 * x', 20.5),
        ('wide', '0.0 * x', '1.0 * x', 22.5),
        ('defaults', 'FACTOR = 0.0', 'FACTOR = 1.0', 24.5),
        ('defaults', 'ADDED = 0.0', 'ADDED = 1.0', 25.5),
        # What it was compiled for has another name now.
        ('outer', 'Given', 'Other', 25.5),
    ]
    for name, old, new, value in edits:
        edit(package / f'{name}.py', old, new)
        assert run(package) == (value, 0, 1, 1)
    # Nothing of this one is compiled into the kernel.
    (package / 'other.py').write_text('unused = 1')
    assert run(package) == (25.5, 1, 0, 1)


@pytest.mark.parametrize(
    ('package', 'error'),
    # Of other packages, errors have their values.
    [('longreach_tried', "'x'"), ('tried', "'x', x")],
)
def test_python_calls_what_a_kernel_calls(tmp_path, monkeypatch, package, error):
    (tmp_path / package).mkdir()
    checked = f'if x < 0.0:\n        raise ValueError({error})\n    return'
    for name, text in (MODULES | {'inner': MODULES['inner'].replace('return', checked)}).items():
        (tmp_path / package / f'{name}.py').write_text(text.replace('machine', package))
    monkeypatch.syspath_prepend(tmp_path)
    outer = importlib.import_module(f'{package}.outer')
    inner = importlib.import_module(f'{package}.inner').inner
    p = outer.numbers(3.0)
    assert outer.compute(2.0, p) == 7.0
    with pytest.raises(ValueError, match='x') as raised:
        outer.compute(-1.0, p)
    assert raised.value.args == ('x', -1.0)[: error.count(',') + 1]
    assert (inner(2.0, p), inner(3.0, p)) == (7.0, 10.0)
    with pytest.raises(ValueError, match='x'):
        inner(-1.0, p)
    # Other functions than kernels link it, too.
    other = njit(lambda x: inner(x, p))
    assert other(2.0) == 7.0


@pytest.mark.slow_after(2)
@pytest.mark.parametrize('ending', ['nbi', 'nbc'])
@pytest.mark.parametrize(
    'damage',
    [flipped, lambda _: b'', lambda _: random.Random(1).randbytes(500)],
    ids=['flipped', 'empty', 'random'],
)
def test_a_damaged_cache_is_compiled_again_and_overwritten(package, run, ending, damage):
    assert run(package) == (7.0, 0, 1, 1)
    (file,) = (package / '__pycache__').glob(f'*.{ending}')
    file.write_bytes(damage(file.read_bytes()))
    assert run(package) == (7.0, 0, 1, 1)
    assert run(package) == (7.0, 1, 0, 1)


def test_an_index_without_its_machine_code_does_not_take_that_of_before(package, run):
    """As a process leaves them that ends while it saves."""
    run(package)
    (old,) = package.rglob('*.nbc')
    code = old.read_bytes()
    edit(package / 'inner.py', '+ 1.0', '+ 2.0')
    assert run(package) == (8.0, 0, 1, 1)
    (new,) = package.rglob('*.nbc')
    new.unlink()
    old.write_bytes(code)
    assert run(package) == (8.0, 0, 1, 1)
    assert list(package.rglob('*.nbc')) == [new]


def test_a_cache_that_others_may_write_is_not_used(package, run):
    assert run(package) == (7.0, 0, 1, 1)
    (package / '__pycache__').chmod(0o777)
    assert run(package) == (7.0, 0, 1, 1)
    (package / '__pycache__').chmod(0o755)
    assert run(package) == (7.0, 1, 0, 1)


@pytest.mark.parametrize(
    ('owner', 'group', 'mode', 'private'),
    [
        (1234, 1234, 0o644, True),
        (1234, 1234, 0o664, True),
        (1234, 99, 0o664, False),
        (1234, 1234, 0o646, False),
        (0, 0, 0o664, True),
        (4321, 4321, 0o644, False),
    ],
)
def test_who_may_write_a_cache(monkeypatch, owner, group, mode, private):
    def stat(path):
        own = 1234 if path.name == 'source' else owner
        return os.stat_result((mode, 0, 0, 0, own, group, 0, 0, 0, 0))

    monkeypatch.setattr(Path, 'stat', stat)
    monkeypatch.setattr(kernels.os, 'getuid', lambda: 1234)
    kernels._is_private.cache_clear()
    if private:
        assert kernels._is_private('cache', 'source')
    else:
        with pytest.warns(UserWarning, match=r'cache \(owner \d+, mode 6.*chmod go-w cache'):
            assert not kernels._is_private('cache', 'source')


@jitclass([('factor', float64)])
class Scaled:
    def __init__(self, factor):
        self.factor = factor


@cfunc(float64(float64))
def doubled(x):
    return 2.0 * x


def test_what_a_factory_makes_for_kernels_of_two_processes_has_two_names(tmp_path, monkeypatch):
    """Machine code that is loaded calls the first of a name: that of another kernel."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / 'longreach_making.py').write_text(MODULES['maker'])
    names = []
    for name in ('longreach_first', 'longreach_second'):
        (tmp_path / f'{name}.py').write_text(
            'from longreach_dynamics.kernels import kernel\n'
            'from longreach_making import make, njit\n'
            f'made = make(njit(lambda x, p: x - p * {len(names)}))\n'
            '@kernel\ndef compute(x):\n    return made(x, 1.0)\n'
        )
        # As in a process that begins.
        monkeypatch.setattr(FunctionIdentity, '_unique_ids', itertools.count(1))
        module = importlib.import_module(name)
        assert module.compute(1.0) == 1.0 - len(names)
        (inner,) = module.made.overloads.values()
        names.append(inner.fndesc.mangled_name)
    assert len(set(names)) == 2


def test_where_nothing_can_be_written_kernels_compile_in_each_process(monkeypatch):
    monkeypatch.setattr(FunctionCache._impl_class, '_locator_classes', [])
    with pytest.warns(UserWarning, match=r'can be written.*name one: NUMBA_CACHE_DIR=DIR'):
        assert kernel(lambda x: 2.0 * x)(2.0) == 4.0


def test_code_that_is_older_than_its_file_is_another(tmp_path, monkeypatch):
    """Such as in a notebook, where a module was imported, then edited, and not imported anew."""
    monkeypatch.syspath_prepend(tmp_path)
    file, text = (
        tmp_path / 'edited.py',
        'def called(x):\n    def inner(): return x\n    return 2.0\n',
    )
    file.write_text(text)
    module = importlib.import_module('edited')
    before = kernels._digest(module.called)
    file.write_text(text.replace('return x', 'return -x'))
    kernels._file_digest.cache_clear()
    stale = kernels._digest(module.called)
    fresh = kernels._digest(importlib.reload(module).called)
    assert len({before, stale, fresh}) == 3


def test_what_cannot_be_followed_is_refused():
    def makes(x):
        return Scaled(x).factor

    def calls(x):
        return doubled(x)

    for function in (makes, calls):
        with pytest.raises(TypeError, match=r'is compiled with .* does not follow, allowed: numb'):
            kernel(function)


@pytest.mark.slow
def test_a_moved_and_touched_tree_keeps_its_machine_code(package, tmp_path, run):
    assert run(package) == (7.0, 0, 1, 1)
    moved = tmp_path / 'elsewhere' / 'machine'
    shutil.copytree(package, moved)
    shutil.rmtree(package)
    for file in moved.glob('*.py'):
        os.utime(file, (1e9, 1e9))
    assert run(moved) == (7.0, 1, 0, 1)
