"""Options and subcommands that machines share."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from longreach_tools.options import add_demo, add_file, add_node_options, add_results


def words(parser: argparse.ArgumentParser, *given: str) -> dict[str, object]:
    return vars(parser.parse_args(given))


def test_file_and_results() -> None:
    parser = argparse.ArgumentParser()
    add_file(parser, 'CRANE.yaml', 'the crane')
    add_results(parser, 'rows', 'picture')
    nothing = {'file': None, 'format': 'table', 'csv': None, 'plot': None}
    assert words(parser) == nothing
    given = words(parser, '--file=', '--csv', 'a', '--plot', 'b')
    assert (given['file'], given['csv'], given['plot']) == (None, Path('a'), Path('b'))
    assert words(parser, '--file', 'a/b')['file'] == Path('a/b')


def test_an_unknown_format_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_results(parser, 'rows', 'picture')
    with pytest.raises(SystemExit):
        parser.parse_args(['--format', 'x'])
    assert '--format' in capsys.readouterr().err


def subcommands() -> tuple[argparse.ArgumentParser, argparse._SubParsersAction]:
    parser = argparse.ArgumentParser()
    return parser, parser.add_subparsers(required=True)


def run(arguments: argparse.Namespace) -> int:
    return 0


def test_a_demonstration_has_a_place() -> None:
    parser, commands = subcommands()
    add_demo(commands, 'all of it', run)
    assert words(parser, 'demo') == {'out': Path('out/demo'), 'run': run}


def test_nodes_to_talk_to_is_not_waited_for_in_vain(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_node_options(parser, 'crane')
    assert words(parser) == {'namespace': 'crane', 'timeout': 5.0, 'network': False}
    with pytest.raises(SystemExit):
        parser.parse_args(['--timeout', '0'])
    assert '0, allowed: above 0' in capsys.readouterr().err
