"""The pages: the site is built without warnings, and commands on them are valid."""

from __future__ import annotations

import argparse
import functools
import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from longreach_tools import cli
from longreach_tools.launch import find_launch_file, survey

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / 'README.md',
    *sorted(ROOT.glob('docs/*.md')),
    *sorted(ROOT.glob('docs/tutorials/*.md')),
    *sorted(ROOT.glob('src/*/README.md')),
]
# Of machines that a reader makes with `longreach new`, and of his own files.
_BLOCKS = re.MULTILINE | re.DOTALL
# Pages whose code is run elsewhere, or needs what a reader has.
ELSEWHERE = {
    'docs/identification.md-0': 'recordings of a machine',
    'docs/identification.md-2': 'its results',
    'docs/symbolic.md': 'longreach_symbolic/test/test_docs.py, with generated files',
    'src/longreach_markers/README.md': 'its test_readme.py, with images',
    'src/longreach_symbolic/README.md': 'its test_readme.py',
    'src/longreach_vision/README.md': 'its test_readme.py, with images',
}
OWN = {'pendulum', 'swing', 'NAME', 'MACHINE'}
# Commands that start nodes, or take minutes; tests of their own run them.
ELSEWHERE_RUN = {'launch', 'view', 'benchmark', 'identify plan', 'excavator cohesion'}
# Errors for recordings, pictures, files and clusters that only a reader has.
_LACKING = re.compile(
    'no such bag|does not exist|cannot be read: No such file|no pictures found|no Dask scheduler'
)


def commands(page: Path) -> list[list[str]]:
    """Return the words of the commands in a page's indented lines, without synopses."""
    text = page.read_text(encoding='utf-8').replace('\\\n', ' ')
    lines = re.findall(r'^    (longreach [a-z].*)$', text, re.MULTILINE)
    found = [shlex.split(line, comments=True) for line in lines if ' [--' not in line]
    return [words[1:] for words in found if words[1] not in OWN]


@functools.cache
def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    (point, *_) = [
        point
        for group in (cli.COMMAND_GROUP, cli.MACHINE_GROUP)
        for point in metadata.entry_points(group=group, name=name)
    ]
    parser = cli._Parser(prog=f'longreach {name}')
    cli._configure(point, parser)
    return parser


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_are_valid(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in commands(page):
        try:
            given = parser_of(words[0]).parse_args(words[1:])
        except SystemExit as end:
            said = capsys.readouterr().err
            if end.code:
                pytest.fail(f'longreach {shlex.join(words)}: {said}')
            continue
        if words[0] == 'launch' and not given.launch_file.endswith('.xml'):
            declared = survey(find_launch_file(given.launch_file, os.environ), {}, os.environ)
            assert {word.partition(':=')[0] for word in given.arguments} <= set(declared)


def needs_nodes(words: list[str]) -> bool:
    """Return whether a command talks to running nodes."""
    given = parser_of(words[0]).parse_args(words[1:])
    return 'network' in given and not getattr(given, 'offline', lambda _: False)(given)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    'page',
    # That of the first ten minutes has a test of its own.
    [page for page in PAGES if page.name != 'first_ten_minutes.md' and commands(page)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_commands_of_a_page_run(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those without nodes, one after another; what only a reader has is named as missing."""
    (tmp_path / 'src').mkdir()
    for folder in (ROOT / 'config', *ROOT.glob('src/*')):
        (tmp_path / folder.relative_to(ROOT)).symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        elsewhere = {words[0], ' '.join(words[:2])} & ELSEWHERE_RUN
        if elsewhere or '--help' in words or needs_nodes(words):
            continue
        if '--samples' in words:
            words[words.index('--samples') + 1] = '4'
        # In one process: most of a short command's time is its imports.
        code, said = cli.main(words), capsys.readouterr().err
        lacks = code == 2 and _LACKING.search(said)
        assert code == 0 or lacks, (words, said)


@pytest.mark.slow
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip('furo', reason='make comparisons installs the programs for the pages')
    words = ['-m', 'sphinx', '-q', '-W', '--keep-going', '-c', 'docs', '-d', tmp_path / 'trees']
    done = subprocess.run(
        [sys.executable, *words, '.', tmp_path / 'site'], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / 'site' / 'docs' / 'api' / 'longreach_boom.html').read_text()
    assert 'simulate' in reference


def steps(page: Path) -> list[tuple[str, str]]:
    """Return the commands of a page, each with the lines that it states below."""
    text = page.read_text(encoding='utf-8')
    pattern = r'^    (longreach [a-z][^\n]*)$|^```text\n(.*?)^```'
    found = re.findall(pattern, text, _BLOCKS)
    told: list[tuple[str, str]] = []
    for command, output in found:
        if command:
            told.append((command, ''))
        else:
            told[-1] = (told[-1][0], output)
    return told


@pytest.mark.slow
def test_the_first_ten_minutes_show_what_they_state(tmp_path: Path) -> None:
    """Each command but the view runs, one after another, and prints the stated lines."""
    shown = 0
    for command, stated in steps(ROOT / 'docs' / 'first_ten_minutes.md'):
        if command.startswith('longreach view'):
            continue
        done = subprocess.run(
            shlex.split(command, comments=True), cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == (2 if 'youngs_module=' in command else 0), done.stderr
        for line in filter(None, stated.splitlines()):
            assert line in done.stdout + done.stderr, command
            shown += 1
    assert shown > 7


def blocks() -> list[Any]:
    """Return the blocks of Python of all pages but those that are run elsewhere."""
    found = []
    for page in PAGES:
        text, name = page.read_text(encoding='utf-8'), str(page.relative_to(ROOT))
        for k, block in enumerate(re.findall(r'^```python\n(.*?)^```', text, _BLOCKS)):
            if not {name, f'{name}-{k}'} & ELSEWHERE.keys():
                found.append(pytest.param(block, id=f'{name}-{k}'))
    return found


@pytest.mark.slow
@pytest.mark.parametrize('block', blocks())
def test_code_of_a_page_runs(block: str, tmp_path: Path) -> None:
    script = tmp_path / 'script.py'
    script.write_text(block, encoding='utf-8')
    for name in ('config', 'src'):
        (tmp_path / name).symlink_to(ROOT / name)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize('name', ['boom', 'excavator'])
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip('nbclient', reason='make comparisons installs it')
    nbformat = pytest.importorskip('nbformat')
    monkeypatch.setenv('MPLBACKEND', 'module://matplotlib_inline.backend_inline')
    book = nbformat.read(ROOT / 'docs' / 'notebooks' / f'{name}.ipynb', as_version=4)
    assert not any(cell.get('outputs') for cell in book.cells)
    resources = {'metadata': {'path': str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=280, resources=resources).execute()
    outputs = [output for cell in book.cells for output in cell.get('outputs', ())]
    assert any('image/png' in output.get('data', {}) for output in outputs)
    assert any(output.output_type == 'stream' for output in outputs)
    assert f'src="{name}.html"' in outputs[-1]['data']['text/html']
    assert 'Longreach - ' in (tmp_path / f'{name}.html').read_text(encoding='utf-8')
    for output in outputs:
        print(output.get('text', ''))
