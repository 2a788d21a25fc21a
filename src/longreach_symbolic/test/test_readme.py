"""The example in the package's README runs."""

from pathlib import Path

README = (Path(__file__).resolve().parent.parent / 'README.md').read_text(encoding='utf-8')


def test_example_of_the_readme_runs(capsys):
    example = README.partition('```python\n')[2].partition('```')[0]
    exec(compile(example, 'README.md', 'exec'), {})
    out = capsys.readouterr().out
    assert 'J_2' in out
    assert 'EI_2' in out
