"""The examples of docs/symbolic.md run as they stand there."""

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


def test_python(tmp_path, monkeypatch):
    x, y, energy = numbers(run_example('Python', tmp_path, monkeypatch))
    # Rigid, and without weight, at 0.73 and 0.37 m: motors give way by 0.1 rad, and links bend.
    assert 0.73 < x < 0.80
    assert 0.15 < y < 0.30
    assert energy == pytest.approx(12.0, abs=4.0)


def test_c_equals_python(tmp_path, monkeypatch):
    inertia, gravity = numbers(run_example('C', tmp_path, monkeypatch))
    # J_1 + 2 A_12 + J_2 of straight links, and the weights on their levers.
    lengths, masses, lumps = (0.475, 0.435), (0.374, 0.29), (2.94, 0.343)
    angles = np.array([0.8, 0.0])
    first = masses[1] * lengths[1] / 2.0 + lumps[1] * lengths[1]
    second = sum(
        (m / 3.0 + lump) * length**2
        for m, lump, length in zip(masses, lumps, lengths, strict=True)
    )
    second += lengths[0] ** 2 * (masses[1] + lumps[1])
    second += 2.0 * lengths[0] * first * np.cos(0.8)
    assert inertia == pytest.approx(second, rel=1e-11)
    own = lengths[0] * (masses[0] / 2.0 + lumps[0] + masses[1] + lumps[1])
    wanted = 9.81 * (own * np.cos(angles[0]) + first * np.cos(angles[1]))
    assert gravity == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize(('name', 'text'), [('numba', '['), ('JSON', 'f_21'), ('SymPy', "'mu_2'")])
def test_example_prints(name, text, tmp_path, monkeypatch):
    assert text in run_example(name, tmp_path, monkeypatch)


def test_casadi_finds_the_torques_that_hold_the_links(tmp_path, monkeypatch):
    *deflections, first, second = numbers(run_example('CasADi', tmp_path, monkeypatch))
    weight = 9.81 * 0.435 * (0.29 / 2.0 + 0.343)
    assert second == pytest.approx(weight, rel=5e-6)  # six digits are printed
    assert first > second
    assert 0.0 < max(map(abs, deflections)) < 0.01


def test_the_machine_of_the_page_moves():
    section = PAGE.read_text(encoding='utf-8').partition('\n## Machine\n')[2]
    (text,) = re.findall(r'```python\n(.*?)```', section.partition('\n## ')[0], re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, f'{PAGE} Machine', 'exec'), {})
    assert out.getvalue().startswith("JointSample(names=('joint_1', 'joint_2', 'motor_1'")
    theta = numbers(out.getvalue().partition('positions=(')[2])[:2]
    np.testing.assert_allclose(np.degrees(theta), [70.0, -60.0], atol=2.0)
