"""The examples of docs/symbolic.md and of the README run as they stand there."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from longreach_symbolic.links import default_file
from longreach_tools.cli import main

PAGE = Path(__file__).resolve().parents[3] / 'docs' / 'symbolic.md'
USE = PAGE.read_text(encoding='utf-8').partition('## Use of the outputs')[2].partition('\n## ')[0]
# A paragraph that begins with the name of a format: command and example.
EXAMPLES = {
    name: (re.findall(r'^    (longreach .*)$', text, re.MULTILINE), re.findall(
        r'```(python|c)\n(.*?)```', text, re.DOTALL
    ))
    for name, text in re.findall(r'^\*\*(\w+)\*\*(.*?)(?=^\*\*|\Z)', USE, re.MULTILINE | re.DOTALL)
}  # fmt: skip


def run_example(name, directory, monkeypatch):
    """Run the command and the example of a format; return what the example prints."""
    commands, examples = EXAMPLES[name]
    monkeypatch.chdir(directory)
    monkeypatch.syspath_prepend(str(directory))
    file = Path('src/longreach_symbolic/config/two_links.yaml')
    file.parent.mkdir(parents=True)
    shutil.copy(default_file(), file)
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
    ((language, text),) = examples
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 12
    if language == 'c':
        compiler = shutil.which('cc') or shutil.which('gcc')
        if compiler is None:
            pytest.skip('without a C compiler')
        Path('main.c').write_text(text)
        subprocess.run([compiler, 'main.c', 'links.c', '-o', 'main', '-lm'], check=True)
        return subprocess.run(['./main'], capture_output=True, text=True, check=True).stdout
    loaded = set(sys.modules)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(text, f'{PAGE} {name}', 'exec'), {})
    finally:
        for made in ('links', 'fast', 'for_casadi'):
            if made not in loaded:
                sys.modules.pop(made, None)
    return out.getvalue()


def numbers(text):
    return [float(word) for word in re.findall(r'-?\d+(?:\.\d+)?(?:e[-+]?\d+)?', text)]


@pytest.mark.parametrize(
    ('name', 'wanted'),
    [
        ('Python', [0.778679, 0.204501, 11.51545]),
        ('numba', [-12.89750, -2.48563, -3.90013, -1.95007, -9.69454, -2.13002]),
        ('C', [1.05798402191, 14.2892281742]),
        ('CasADi', [-0.00722893, 0.000673738, -0.00182796, 0.000228495, 14.2892, 2.08247]),
        ('JSON', 'f_21'),
        ('SymPy', "'mu_2'"),
    ],
)
def test_example_prints(name, wanted, tmp_path, monkeypatch):
    text = run_example(name, tmp_path, monkeypatch)
    if isinstance(wanted, str):
        assert wanted in text
    else:
        assert numbers(text) == pytest.approx(wanted, rel=1e-4)


def test_example_of_the_readme_runs(capsys):
    text = (Path(__file__).resolve().parents[1] / 'README.md').read_text(encoding='utf-8')
    exec(compile(text.partition('```python\n')[2].partition('```')[0], 'README.md', 'exec'), {})
    out = capsys.readouterr().out
    assert 'J_2' in out
    assert 'EI_2' in out


def test_the_machine_of_the_page_moves():
    section = PAGE.read_text(encoding='utf-8').partition('\n## Machine\n')[2]
    (text,) = re.findall(r'```python\n(.*?)```', section.partition('\n## ')[0], re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, f'{PAGE} Machine', 'exec'), {})
    assert out.getvalue().startswith("JointSample(names=('joint_1', 'joint_2', 'motor_1'")
    theta = numbers(out.getvalue().partition('positions=(')[2])[:2]
    np.testing.assert_allclose(np.degrees(theta), [70.0, -60.0], atol=2.0)
