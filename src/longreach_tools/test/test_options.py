"""Options that commands share, and one vocabulary of options over all commands."""

import argparse
import re
from collections import defaultdict
from functools import cache
from importlib import metadata
from pathlib import Path

from longreach_tools import cli
from longreach_tools.arguments import VOCABULARY, name_of

# Of poses that have no names, and of choices that a machine has.
SEVERAL = {'--pose', '--model'}


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
    """Return the options of all commands by name, each with the group in which it is shown."""
    found = defaultdict(list)
    for parser in parsers():
        for group in parser._action_groups:
            for action in group._group_actions:
                name, purpose = name_of(action.option_strings or [action.dest])
                if purpose and not action.option_strings:
                    found[name].append((purpose, action))
                elif action.option_strings and action.dest != 'help':
                    found[name].append((group.title, action))
                # Shared options have defaults of each subcommand.
                usual = parser.get_default(action.dest)
                if isinstance(usual, int | float) and not isinstance(usual, bool):
                    assert f'{usual:g}' in action.help, action
                    assert 'default' in action.help, action
    return found


def kind(type_):
    """Return what an option stands for: a flag, choices, a number, numbers, a file or a text."""
    if isinstance(type_, tuple) or type_ is bool:
        return type_
    for text in ('1', '1,1'):
        try:
            value = type_(text)
        except (argparse.ArgumentTypeError, ValueError):
            continue
        if isinstance(value, int | float):
            return 'number'
        return 'file' if isinstance(value, Path) else str(type(value))
    return 'text'


def kind_of(action):
    """Return what an option stands for."""
    return kind(bool if action.nargs == 0 else action.choices or action.type or str)


def test_an_option_has_one_meaning_in_all_commands():
    found = options()
    print(f'{sum(map(len, found.values()))} options shown, {len(found)} names')
    for purpose, known in VOCABULARY.items():
        for name, (type_, metavar, *meaning) in known.items():
            for group, action in found.pop(name):
                assert (group, kind_of(action)) == (purpose, kind(type_)), name
                # The kind of a file may be said more exactly.
                exact = r'DIR|[A-Z]+\.\w+(\|DIR)?' if metavar == 'FILE' else ''
                assert re.fullmatch(f'{re.escape(metavar)}|{exact}', action.metavar or ''), name
                assert action.help.startswith(' '.join(meaning)), name
    kinds = {name: {kind_of(one) for _, one in those} for name, those in found.items()}
    assert {name for name, one in kinds.items() if len(one) > 1} <= SEVERAL


def test_every_option_is_explained_and_its_value_has_a_unit_or_kind():
    """Not its own name in capitals, as argparse shows without another one."""
    for name, found in options().items():
        for _, one in found:
            assert one.help or one.choices, name
            assert one.nargs == 0 or one.choices or one.metavar, name
            assert one.metavar != name[2:].replace('-', '_').upper(), name
