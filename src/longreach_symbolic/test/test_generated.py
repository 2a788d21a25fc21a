"""Compiled equations are kept in files: the second start derives and compiles nothing."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from links_reference import arrays, random_links, random_state, reference
from numba.core.caching import FunctionCache

from longreach_dynamics.errors import LongreachError
from longreach_symbolic import generated
from longreach_symbolic.generated import compiled, parameter_values

CALL = """
import sys
sys.path.insert(0, {path!r})
import numpy as np
from links_reference import arrays, random_links, random_state
from longreach_symbolic.generated import compiled, parameter_values
links = random_links(1, 1)
module = compiled(links)
q, rates = arrays(random_state(links))
out = np.empty((2, 2)), np.empty(2), np.empty(2)
module.equations(q, rates, parameter_values(links), *out)
print('sympy' in sys.modules, sum(module.equations.stats.cache_misses.values()),
      sum(module.equations.stats.cache_hits.values()))
"""


def test_compiled_equations_take_numbers_as_parameters():
    modules, compilations = [], []
    for seed in range(2):
        links = random_links(2, seed=seed)
        module = compiled(links)
        modules.append(module)
        state = random_state(links, seed)
        q, rates = arrays(state)
        found = np.empty((6, 6)), np.empty(6), np.empty(6)
        module.equations(q, rates, parameter_values(links), *found)
        compilations.append(len(module.equations.signatures))
        for one, other in zip(found, reference(links, state), strict=False):
            np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-12 * np.abs(other).max())
    assert modules[0] is modules[1]
    # Other tests of this process may have called it with arrays of other kinds.
    assert compilations[0] == compilations[1]


@pytest.mark.slow
def test_the_second_start_derives_and_compiles_nothing(tmp_path):
    program = CALL.format(path=str(Path(__file__).parent))
    environment = os.environ | {'NUMBA_CACHE_DIR': str(tmp_path)}
    lines = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, '-c', program], capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        lines.append(done.stdout.split())
    assert lines == [['True', '1', '0'], ['False', '0', '1']]
    assert list(tmp_path.rglob('links_1_1_sine_*.py'))


def test_another_form_is_another_file(monkeypatch, tmp_path):
    monkeypatch.setattr(generated, 'source_directory', lambda: tmp_path)
    texts = {key: f'VALUE = {key}\n' for key in '12'}
    for key, text in texts.items():
        module = generated.module_of('made', key, lambda text=text: text)
        assert str(module.VALUE) == key
    # Another process wrote it: what is there is taken.
    assert generated.module_of('made', '1', lambda: 'VALUE = 3\n').VALUE == 1
    assert len(list(tmp_path.iterdir())) == 2 + (tmp_path / '__pycache__').is_dir()


def test_directory_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / 'file').write_text('')
    monkeypatch.setattr(generated, 'source_directory', lambda: tmp_path / 'file')
    with pytest.raises(LongreachError, match='set NUMBA_CACHE_DIR to a directory'):
        generated.module_of('made', '1', lambda: '')
    monkeypatch.undo()
    monkeypatch.setattr(FunctionCache._impl_class, '_locator_classes', [])
    with pytest.raises(LongreachError, match='for them can be written: set NUMBA_CACHE_DIR to'):
        generated.source_directory.__wrapped__()
