"""The tables in the package's README are those of the files."""

from pathlib import Path

import pytest

from longreach_node.parameters import file_table
from longreach_symbolic.arm import Arm
from longreach_symbolic.links import Links, State
from longreach_symbolic.scenario import Scenario

README = (Path(__file__).resolve().parent.parent / 'README.md').read_text(encoding='utf-8')


@pytest.mark.parametrize('cls', [Links, State, Arm, Scenario])
def test_readme_has_the_table_of_a_file(cls):
    assert file_table(cls) in README, f'the table shall be\n{file_table(cls)}'


def test_example_of_the_readme_runs(capsys):
    example = README.partition('```python\n')[2].partition('```')[0]
    exec(compile(example, 'README.md', 'exec'), {})
    out = capsys.readouterr().out
    assert 'J_2' in out
    assert 'EI_2' in out
