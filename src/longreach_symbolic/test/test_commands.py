"""``longreach symbolic``: what it prints, writes and refuses."""

import json
import subprocess
import sys

import numpy as np
import pytest
import yaml
from links_reference import random_links, random_state

from longreach_symbolic.generated import evaluate
from longreach_symbolic.links import load_links
from longreach_tools.testing import Outcome

LINK = load_links().links[0].as_mapping()
LINKS = {
    'gravity': 9.81,
    'gravity_on_deflection': False,
    'basis': 'sine',
    'links': [LINK, {**LINK, 'lumped_place': -0.5}],
}
STATE = {
    'theta': [0.3, -0.4],
    'theta_rate': [1.0, 2.0],
    'f': [0.01, 0.0, -0.01, 0.0],
    'f_rate': [0.0, 0.1, 0.2, 0.0],
}
FORMATS = ('latex', 'markdown', 'python', 'numba', 'c', 'casadi', 'json')


def written(directory, links=LINKS, state=STATE):
    """Return the files of links and of a state; a state may be a text."""
    files = directory / 'links.yaml', directory / 'state.json'
    files[0].write_text(yaml.safe_dump(links))
    files[1].write_text(state if isinstance(state, str) else json.dumps(state))
    return files


def symbolic(capsys, *words):
    return Outcome(capsys, 'symbolic', *words)


def evaluated(capsys, files, *words):
    return symbolic(capsys, 'evaluate', '--file', files[0], '--state', files[1], *words)


def test_evaluate(capsys, tmp_path):
    links = random_links(3)
    state = random_state(links)
    # JSON may be indented by tabs, YAML may not.
    text = json.dumps(state.as_mapping(), indent='\t')
    files = written(tmp_path, links.as_mapping(), text)
    words = ('--form', 'trace', '--as-printed', '--format', 'json')
    found = evaluated(capsys, files, *words).json
    for name, values in evaluate(links, state, as_printed=True)._asdict().items():
        tolerance = 1e-12 * np.abs(values).max()
        np.testing.assert_allclose(found[name], values, rtol=0.0, atol=tolerance)


def test_evaluate_for_people(capsys, tmp_path):
    still = {**STATE, 'theta_rate': [0.0, 0.0], 'f': [0.0] * 4}
    text = evaluated(capsys, written(tmp_path, state=still)).out
    assert 'M theta_1' in text
    assert '-0' not in text.split()
    assert 'f_22' in text


@pytest.mark.parametrize('form', FORMATS)
def test_generate(capsys, tmp_path, form):
    target = tmp_path / 'new' / 'made'
    done = symbolic(capsys, 'generate', '--links', 2, '--format', form, '--out', target)
    assert (done.code, done.out) == (0, '')
    (line,) = done.err.splitlines()
    assert line.startswith('2 links, 6 coordinates, reduced form: ')
    assert 'operations written out' in line
    assert 'after elimination of common subexpressions' in line
    assert target.read_text().endswith('\n')
    assert [path.name for path in target.parent.iterdir()] == ['made']


def test_generate_prints(capsys, tmp_path):
    words = ('generate', '--file', written(tmp_path)[0], '--links', 2, '--format', 'json')
    found = symbolic(capsys, *words, '--cse', 'off').json
    assert (found['parameters'], found['definitions']) == ([], [])
    symbolic(capsys, *words, '--basis', 'sine').refused('--basis goes without --file; put basis')


def test_generate_with_some_symbols(capsys, tmp_path):
    links = {**LINKS, 'symbols': ['gravity']}
    links['links'] = [LINK, {**LINK, 'symbols': ['mass', 'lumped_place']}]
    given = ('generate', '--file', written(tmp_path, links)[0], '--format', 'json')

    def parameters(*words):
        found = symbolic(capsys, *given, *words).json
        return {p['name']: p['value'] for p in found['parameters']}

    assert parameters() == {'g': 9.81, 'm_2': 0.374, 'mu_2': 0.0}
    assert len(parameters('--symbols', 'all')) == 11
    assert parameters('--symbols', 'none') == {}


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('--links', 0), 'links = 0, allowed: 1 to 12 links'),
        (('--links', 30), 'links = 30, allowed: 1 to 12 links; closed forms of more'),
        (('--links', 2, '--form', 'reduced', '--as-printed'), 'allowed without --form reduced'),
        (('--links', 2, '--symbols', 'none'), '--symbols none needs a --file'),
        (('--links', 2, '--symbols', 'file'), '--symbols file needs a --file'),
        ((), 'neither --links nor --file is given'),
        (('--links', 5, '--form', 'trace', '--cse', 'off'), 'operations, allowed: 300000'),
        (('--links', 2, '--out', 'my arm.c'), 'such as my_arm.c'),
    ],
)
def test_generate_refuses(capsys, words, text):
    symbolic(capsys, 'generate', '--format', 'c', *words).refused(text)


def test_generate_refuses_what_its_file_is_not(capsys, tmp_path):
    file = written(tmp_path)[0]
    words = ('generate', '--format', 'c', '--file', file)
    symbolic(capsys, *words, '--out', file).refused('is one of the inputs')
    symbolic(capsys, *words, '--links', 3).refused('--links 3, allowed: 2, what')
    files = written(tmp_path, {**LINKS, 'links': [LINK] * 30})
    evaluated(capsys, files).refused('links has 30 entries, allowed: 1 to 12 links; closed forms')


@pytest.mark.parametrize(
    ('state', 'text'),
    [
        ({**STATE, 'theta': [0.1]}, 'theta has 1 values, allowed: 2, for 2 links'),
        ({**STATE, 'f': [0.1] * 3}, 'f has 3 values, allowed: 4, for 2 links with 2 functions'),
        ({**STATE, 'f_rate': [0.1] * 5}, 'f_rate has 5 values, allowed: 4'),
        ({**STATE, 'theta_rate': [1e200] * 2}, 'the terms exceed the range'),
        ('[1, 2]', 'the file must be an object with the keys theta'),
        ('{"theta": [', 'not valid JSON'),
        ('{"theta": [], "theta": []}', 'a key stands twice'),
    ],
)
def test_states_are_refused(capsys, tmp_path, state, text):
    files = written(tmp_path, LINKS, state)
    code = 1 if 'exceed' in text else 2
    evaluated(capsys, files).refused(text, code)


def test_growth(capsys, tmp_path):
    picture = tmp_path / 'growth.png'
    words = ('--links', 2, '--plot', picture, '--format', 'json')
    rows = symbolic(capsys, 'growth', *words).json
    assert [row['links'] for row in rows] == [1, 2]
    assert rows[0]['operations'] < rows[1]['operations'] < rows[1]['written_out']
    assert all(row['derived'] > 0.0 and row['written'] > 0.0 for row in rows)
    assert picture.read_bytes().startswith(b'\x89PNG')
    assert 'after cse' in symbolic(capsys, 'growth', '--links', 1).out
    symbolic(capsys, 'growth', '--links', 99).refused('allowed: 1 to 12 links')
    symbolic(capsys, 'growth', '--plot', 'a.tex').refused("extension 'tex'")


def test_help_loads_neither_sympy_nor_numba():
    program = (
        'import sys\n'
        'from longreach_tools.cli import main\n'
        "main(['symbolic', 'generate', '--help'])\n"
        "assert not sys.modules.keys() & {'sympy', 'numba', 'matplotlib', 'rclpy'}\n"
    )
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '--as-printed' in done.stdout
