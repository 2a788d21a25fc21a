"""Options that commands share, and one vocabulary of options over all commands."""

import argparse
from collections import defaultdict
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from longreach_tools import cli

# Names that have several meanings today; no name may be added.
SEVERAL = {'--camera', '--format', '--joints', '--pose'}
# Help of the common options; ``{}`` are placeholders.
COMMON = {
    '--degrees': 'angles are in degrees',
    '--from': 'first time',
    '--network': 'on other computers',
    '--seed': '(default: ',
    '--to': 'last time [s]',
}


def parsers():
    """Yield the parsers of all commands and their subcommands."""
    for group in (cli.COMMAND_GROUP, cli.MACHINE_GROUP):
        for point in metadata.entry_points(group=group):
            parser = cli._Parser(prog=point.name)
            cli._configure(point, parser)
            waiting = [parser]
            while waiting:
                one = waiting.pop()
                yield one
                for action in one._actions:
                    if isinstance(action, argparse._SubParsersAction):
                        waiting += dict.fromkeys(action.choices.values())


@cache
def options():
    """Return the options of all commands by name, the first long one; others are old spellings."""
    found = defaultdict(list)
    for parser in parsers():
        for action in parser._actions:
            if action.option_strings and action.dest != 'help':
                name = next(one for one in action.option_strings if one.startswith('--'))
                found[name].append(action)
    return found


def kind(action):
    """Return what an option stands for: a flag, a choice, a number, numbers, a file or a text."""
    if action.nargs == 0:
        return 'flag'
    if action.choices:
        return 'choice'
    if isinstance(action.type, type) and issubclass(action.type, Path):
        return 'file'
    for kind_, text in (('number', '1'), ('numbers', '1,1')):
        if action.type in (None, str):
            break
        try:
            value = action.type(text)
        except (argparse.ArgumentTypeError, ValueError):
            continue
        if isinstance(value, int | float):
            return kind_
        if isinstance(value, tuple) and all(isinstance(one, float) for one in value):
            return 'numbers'
    return 'text'


def test_an_option_has_one_meaning_in_all_commands():
    found = options()
    print(f'{sum(map(len, found.values()))} options, {len(found)} names')
    kinds = {name: {kind(one) for one in actions} for name, actions in found.items()}
    kinds['--file'] -= {'text'}  # an empty name is no file
    assert {name for name, one in kinds.items() if len(one) > 1} <= SEVERAL


@pytest.mark.parametrize('name', COMMON)
def test_a_common_option_has_a_common_help(name):
    for action in options()[name]:
        assert COMMON[name] in str(action.help)


def test_what_is_written_has_a_place_in_the_help():
    for name in ('--out', '--csv', '--plot', '--results', '--report'):
        places = [str(action.metavar) for action in options()[name]]
        assert all(place.isupper() or '.' in place for place in places), name


def test_every_option_is_explained():
    for name, found in options().items():
        assert all(one.help or one.choices or one.metavar for one in found), name
