"""``longreach symbolic``: what it prints, writes and refuses."""

import json
import subprocess
import sys

import numpy as np
import pytest
import yaml
from links_reference import random_links, random_state, reference

from longreach_tools.testing import Outcome

LINK = {
    'length': 0.475,
    'mass': 0.374,
    'bending_stiffness': 32.96,
    'lumped_mass': 2.94,
    'lumped_place': 0.0,
}
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
    """Return the files of links and of a state; a text is written as it is."""
    files = directory / 'links.yaml', directory / 'state.json'
    files[0].write_text(links if isinstance(links, str) else yaml.safe_dump(links))
    files[1].write_text(state if isinstance(state, str) else json.dumps(state))
    return files


def evaluated(capsys, files, *words):
    return Outcome(
        capsys, 'symbolic', 'evaluate', '--file', files[0], '--state', files[1], *words
    )  # fmt: skip


@pytest.mark.parametrize('form', ['reduced', 'trace'])
@pytest.mark.parametrize('count', [1, 3])
def test_evaluate(capsys, tmp_path, count, form):
    links = random_links(count)
    state = random_state(links)
    keys = ('length', 'mass', 'bending_stiffness', 'lumped_mass', 'lumped_place')
    files = written(
        tmp_path,
        {
            'gravity': 9.81,
            'gravity_on_deflection': False,
            'basis': 'sine',
            'links': [{key: getattr(link, key) for key in keys} for link in links.links],
        },
        {name: list(values) for name, values in vars(state).items()},
    )
    found = evaluated(capsys, files, '--form', form, '--format', 'json').json
    assert list(found) == [
        'mass_matrix', 'velocity_terms', 'gravity_and_stiffness', 'force_map'
    ]  # fmt: skip
    for one, other in zip(found.values(), reference(links, state), strict=False):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-12 * np.abs(other).max())


def test_evaluate_for_people(capsys, tmp_path):
    still = {**STATE, 'theta_rate': [0.0, 0.0], 'f': [0.0] * 4}
    text = evaluated(capsys, written(tmp_path, state=still)).out
    assert 'M theta_1' in text
    assert '-0' not in text.split()
    assert 'f_22' in text


@pytest.mark.parametrize('form', FORMATS)
def test_generate(capsys, tmp_path, form):
    target = tmp_path / 'new' / 'made'
    done = Outcome(
        capsys, 'symbolic', 'generate', '--links', 2, '--format', form, '--out', target
    )  # fmt: skip
    assert (done.code, done.out) == (0, '')
    (line,) = done.err.splitlines()
    assert line.startswith('2 links, 6 coordinates, reduced form: ')
    assert 'operations written out' in line
    assert 'after elimination of common subexpressions' in line
    assert target.read_text().endswith('\n')
    assert [path.name for path in target.parent.iterdir()] == ['made']


def test_generate_prints(capsys, tmp_path):
    done = Outcome(
        capsys, 'symbolic', 'generate', '--file', written(tmp_path)[0], '--links', 2,
        '--format', 'json', '--cse', 'off', '--form', 'trace', '--modes', 2,
    )  # fmt: skip
    done.refused('--modes goes without --file; put modes into')
    found = Outcome(
        capsys, 'symbolic', 'generate', '--file', written(tmp_path)[0], '--links', 2,
        '--format', 'json', '--cse', 'off',
    ).json  # fmt: skip
    assert (found['parameters'], found['definitions']) == ([], [])


def test_generate_with_some_symbols(capsys, tmp_path):
    links = {**LINKS, 'symbols': ['gravity']}
    links['links'] = [LINK, {**LINK, 'symbols': ['mass', 'lumped_place']}]
    files = written(tmp_path, links)

    def parameters(*words):
        found = Outcome(
            capsys, 'symbolic', 'generate', '--file', files[0], '--format', 'json', *words
        ).json
        return {p['name']: p['value'] for p in found['parameters']}

    assert parameters() == {'g': 9.81, 'm_2': 0.374, 'mu_2': 0.0}
    assert len(parameters('--symbols', 'all')) == 11
    assert parameters('--symbols', 'none') == {}


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('--links', 0), 'links = 0, allowed: 1 to 12 links'),
        (('--links', 30), 'links = 30, allowed: 1 to 12 links; closed forms of more'),
        (('--links', 2, '--modes', 5), 'modes = 5, allowed: [1, 4]'),
        (('--links', 2, '--symbols', 'none'), '--symbols none needs the numbers of a --file'),
        ((), 'neither --links nor --file is given'),
        (('--links', 5, '--form', 'trace', '--cse', 'off'), 'operations, allowed: 300000'),
        (('--links', 2, '--out', '/proc/none/made'), 'cannot be created'),
        (('--links', 2, '--out', 'my arm.c'), 'such as my_arm.c'),
        (('--links', 2, '--out', '/'), 'is a directory; give a file'),
    ],
)
def test_generate_refuses(capsys, words, text):
    Outcome(capsys, 'symbolic', 'generate', '--format', 'c', *words).refused(text)


def test_generate_refuses_to_overwrite_its_input(capsys, tmp_path):
    file = written(tmp_path)[0]
    Outcome(
        capsys, 'symbolic', 'generate', '--format', 'c', '--file', file, '--out', file
    ).refused('is one of the inputs')  # fmt: skip
    Outcome(
        capsys, 'symbolic', 'generate', '--format', 'c', '--file', file, '--links', 3
    ).refused('--links 3, allowed: 2, what')  # fmt: skip


def changed(**values):
    return {**LINKS, 'links': [LINK, {**LINK, **values}]}


@pytest.mark.parametrize(
    ('links', 'text'),
    [
        (
            {**LINKS, 'links': [LINK] * 30},
            'links has 30 entries, allowed: 1 to 12 links; closed forms',
        ),
        (changed(lumped_place=0.1), 'links[1].lumped_place = 0.1, allowed: [-1, 0]'),
        (changed(symbols=['weight']), "links[1].symbols[0] = 'weight', allowed: length | mass"),
    ],
)
def test_links_are_refused(capsys, tmp_path, links, text):
    files = written(tmp_path, links)
    evaluated(capsys, files).refused(text)
    Outcome(
        capsys, 'symbolic', 'generate', '--format', 'python', '--file', files[0]
    ).refused(text)  # fmt: skip


@pytest.mark.parametrize(
    ('state', 'text'),
    [
        ({**STATE, 'theta': [0.1]}, 'theta has 1 values, allowed: 2 for 2 links'),
        ({**STATE, 'f': [0.1] * 3}, 'f has 3 values, allowed: 4 for 2 links with 2 functions'),
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
    rows = Outcome(
        capsys, 'symbolic', 'growth', '--links', 2, '--plot', picture, '--format', 'json'
    ).json
    assert [row['links'] for row in rows] == [1, 2]
    assert rows[0]['operations'] < rows[1]['operations'] < rows[1]['written_out']
    assert all(row['derived'] > 0.0 and row['written'] > 0.0 for row in rows)
    assert picture.read_bytes().startswith(b'\x89PNG')
    assert 'after cse' in Outcome(capsys, 'symbolic', 'growth', '--links', 1).out
    Outcome(capsys, 'symbolic', 'growth', '--links', 99).refused('allowed: 1 to 12 links')
    Outcome(capsys, 'symbolic', 'growth', '--plot', 'a.tex').refused("extension 'tex'")


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
