from __future__ import annotations

import os
from pathlib import Path

import pytest

from longreach_tools.launch._functions import Scope, evaluate, evaluate_words
from longreach_tools.launch._substitutions import SubstitutionError, parse_template
from longreach_tools.launch._values import (
    convert,
    parse_condition,
    parse_flag,
)


@pytest.fixture
def scope(tmp_path: Path) -> Scope:
    index = tmp_path / 'prefix' / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'demo').touch()
    executable = tmp_path / 'prefix' / 'lib' / 'demo' / 'talk'
    executable.parent.mkdir(parents=True)
    executable.write_text('#!/bin/sh\n')
    executable.chmod(0o755)
    return Scope(
        file=tmp_path / 'x.launch.xml',
        configurations={
            'a': 'b',
            'b': 'value of b',
            'yes': 'true',
            'no': 'false',
            'empty': '',
            's p': 'spaced',
        },
        environment={
            'PATH': os.environ['PATH'],
            'AMENT_PREFIX_PATH': f'/nowhere:{tmp_path / "prefix"}',
        },
    )


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('', ''),
        ('plain text', 'plain text'),
        ('it\'s "quoted"', 'it\'s "quoted"'),
        (r'\$(var a)', '$(var a)'),
        (r'a\\b', r'a\b'),
        ('100$ and $x (y)', '100$ and $x (y)'),
        ('$(var a)', 'b'),
        ('<$(var a)-$(var yes)>', '<b-true>'),
        ('$(var $(var a))', 'value of b'),
        ('$(var c fallback)', 'fallback'),
        ('$(var a $(var undefined))', 'b'),
        ('$(var "s p")', 'spaced'),
        ("$(var c 'x $(var a) (z)')", 'x b (z)'),
        ('$(var c "it\'s")', "it's"),
        (r'$(var c x\)y\ z)', 'x)y z'),
        ('$(not $(var yes))', 'false'),
        ('$(and true $(not false))', 'true'),
        ('$(or false 0)', 'false'),
        ('$(equals $(var a) b)', 'true'),
        ('$(equals 1.0 1)', 'true'),
        ('$(equals TRUE 1)', 'true'),
        ('$(not $(equals x y))', 'true'),
        ('$(if $(var yes) first)', 'first'),
        ('$(if no $(var undefined) second)', 'second'),
        ('$(if no first)', ''),
        ("$(command 'echo one two')", 'one two\n'),
    ],
)
def test_value_of_a_text(text: str, value: str, scope: Scope) -> None:
    assert evaluate(parse_template(text), scope) == value


def test_places(scope: Scope, tmp_path: Path) -> None:
    places = {
        '$(dirname)': str(tmp_path),
        '$(find-pkg-share demo)/x': str(tmp_path / 'prefix' / 'share' / 'demo' / 'x'),
    }
    for text, value in places.items():
        assert evaluate(parse_template(text), scope) == value


@pytest.mark.parametrize(
    ('text', 'complaint'),
    [
        ('$(var a', r'"\$\(var" at column 1 is not closed.*found the end'),
        ('x $(var  a)', 'empty argument at column 9; arguments are separated by one space'),
        ('$(var a )', 'empty argument at column 9'),
        ('$()', r'no name after "\$\(" at column 1'),
        ('$(var x(y)', r"'\(' at column 8 inside a substitution; put the argument in quotes"),
        ("$(var a'b)", 'inside a substitution; put the argument in quotes'),
        ('$(var)', r'\$\(var\) got 0 arguments, takes 1 or 2'),
        ('$(var c)', "'c' is not set here; set are: a, b, empty, no, s p, yes"),
        ("$(var 'a)", "the quote ' at column 7 is not closed"),
        ("$(var 'a'b)", r"expected \"\)\", found 'b'"),
        ('$(not a b)', r'\$\(not\) got 2 arguments, takes 1; .* needs quotes'),
        ('$(not maybe)', "'maybe' is neither true nor false"),
        ("$(command 'false')", 'failed with exit code 1'),
        ("$(command 'no-such-program')", 'cannot be run'),
        ("$(command '')", 'cannot be run'),
        ('$(command "sh -c \'echo oh >&2\'")', 'wrote to stderr: oh'),
        ('$(find-pkg-share nothing)', "package 'nothing' is not found in AMENT_PREFIX_PATH"),
    ],
)
def test_refused_text(text: str, complaint: str, scope: Scope) -> None:
    with pytest.raises(SubstitutionError, match=complaint):
        evaluate(parse_template(text), scope)


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', []),
        ('  a   b ', ['a', 'b']),
        ("a 'b c' d", ['a', 'b c', 'd']),
        ('$(var b)', ['value of b']),
        ('$(var b)/x y', ['value of b/x', 'y']),
        ('--x=$(var b) z', ['--x=value of b', 'z']),
        ('$(var a) $(var b)', ['b', 'value of b']),
        ('x $(var empty) y', ['x', '', 'y']),
    ],
)
def test_words_of_a_command_line(text: str, words: list[str], scope: Scope) -> None:
    assert evaluate_words(parse_template(text), scope) == words


def test_quotes_around_a_substitution_are_refused_in_a_command_line(scope: Scope) -> None:
    with pytest.raises(SubstitutionError, match='quotes cannot enclose a substitution'):
        evaluate_words(parse_template("'$(var b)'"), scope)


@pytest.mark.parametrize(
    ('text', 'kind', 'value'),
    [
        ('10', 'yaml', 10),
        ('10.0', 'yaml', 10.0),
        ("'10'", 'yaml', '10'),
        ('yes', 'yaml', True),
        ('[a, b]', 'yaml', ['a', 'b']),
        ('[]', 'yaml', []),
        ('10', 'str', '10'),
        ('10', 'float', 10.0),
    ],
)
def test_typed_value(text: str, kind: str, value: object) -> None:
    read = convert(text, kind)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ('text', 'kind', 'complaint'),
    [
        ('1.5', 'int', "'1.5' is not of type int"),
        ('x', 'float', "'x' is not of type float"),
        ('2', 'bool', 'neither true nor false'),
        ('[1, 2.0]', 'yaml', 'a list of several types'),
        ('{a: 1}', 'yaml', 'is a dict; allowed: bool, int, float, str or a list'),
        ('', 'yaml', 'is empty; allowed: bool'),
        ('[1', 'yaml', 'is not YAML'),
    ],
)
def test_refused_value(text: str, kind: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        convert(text, kind)


def test_conditions_and_flags() -> None:
    assert [parse_condition(text) for text in ('true', ' True', '1')] == [True] * 3
    assert [parse_condition(text) for text in ('FALSE', '0 ')] == [False] * 2
    assert [parse_flag(text) for text in ('yes', 'On', 'TRUE', '1')] == [True] * 4
    with pytest.raises(ValueError, match="'yes' is not a condition; allowed: true, false, 1, 0"):
        parse_condition('yes')
    with pytest.raises(ValueError, match='neither true nor false'):
        parse_flag('tRUE')
