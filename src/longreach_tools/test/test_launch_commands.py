"""`longreach launch` as a user calls it."""

import os
import re
import shutil
from pathlib import Path

import pytest

from longreach_tools import cli
from longreach_tools.launch import _processes

FILES = Path(__file__).parent / 'launch_files'


@pytest.fixture(autouse=True)
def installed(prefix, monkeypatch):
    """Put the prefix first, and launch files into its longreach_bringup."""
    directory = prefix / 'share' / 'longreach_bringup' / 'launch'
    directory.mkdir(parents=True)
    for name in ('arguments', 'include', 'include_inner', 'include_itself'):
        shutil.copy(FILES / f'{name}.launch.xml', directory)
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'{prefix}:{os.environ.get("AMENT_PREFIX_PATH", "")}')


def test_show_arguments(capsys):
    assert cli.main(['launch', 'arguments', '--show-args']) == 0
    shown = capsys.readouterr().out
    assert '  needed: required\n      must be given\n' in shown
    assert "  optional: default '$(var needed)_too'\n" in shown
    assert "  mode: default 'fast'\n      allowed: fast, slow\n" in shown
    assert "  network: default 'false'\n" in shown
    # Those of included files, also of one that includes itself.
    assert cli.main(['launch', 'include', '-s']) == 0
    assert "  who: required\n  tone: default 'plain'\n" in capsys.readouterr().out
    assert cli.main(['launch', 'include_itself', '-s']) == 0
    assert capsys.readouterr().out.count("  count: default '3'\n") == 1


def test_print_runs_nothing(prefix, capsys):
    file = str(FILES / 'parameters.launch.xml')
    # An option may stand between the file and its arguments.
    assert cli.main(['launch', file, '--print', 'rate:=3']) == 0
    shown = capsys.readouterr().out
    assert f'talk-1: {prefix}/lib/demo/talk --ros-args -r __node:=n -r __ns:=/ns --par' in shown
    assert 'PARAMETERS_6:\n    /ns/n:\n      ros__parameters:\n        var: 3\n' in shown
    assert cli.main(['launch', str(FILES / 'let.launch.xml'), '-p']) == 0
    assert capsys.readouterr().out == 'echo-1: echo x=12\n'


@pytest.mark.parametrize(
    ('words', 'complaint'),
    [
        (['boom'], "no launch file named 'boom' in .*; allowed: arguments, include, include_in"),
        (['./boom'], "there is no launch file './boom'; give a path or a name"),
        (['arguments', 'needed=1'], "argument 'needed=1'; allowed: name:=value"),
        (['arguments', ':=1'], "argument ':=1'; allowed: name:=value"),
        (['arguments', 'needed:=1', 'network:=no'], "argument network: 'no' is neither true"),
        ([], 'the following arguments are required: NAME'),
    ],
)
def test_refused_call(words, complaint, capsys):
    assert cli.main(['launch', *words]) == 2
    error = capsys.readouterr().err
    assert error.count('\n') == 1
    assert re.search(complaint, error)


@pytest.mark.parametrize(
    ('words', 'value', 'said'),
    [
        (['network:=false'], 'LOCALHOST', True),
        (['network:=true'], 'SUBNET', False),
        (['--network'], 'SUBNET', False),
    ],
)
def test_nodes_are_found_on_this_machine_unless_told_otherwise(
    monkeypatch, capfd, words, value, said
):
    plans = []

    def run_processes(processes, _output):
        plans.append(processes)
        return 0

    monkeypatch.setattr(_processes, 'run_processes', run_processes)
    monkeypatch.delenv('ROS_AUTOMATIC_DISCOVERY_RANGE')
    assert cli.main(['launch', str(FILES / 'executable.launch.xml'), *words]) == 0
    for process in plans.pop():
        assert process.environment['ROS_AUTOMATIC_DISCOVERY_RANGE'] == value
    assert ('only nodes on' in capfd.readouterr().out) == said
