"""`longreach launch` as a user calls it, and the choice between real launch and the stand-in."""

import importlib
import os
import re
import sys
from pathlib import Path

import pytest

from longreach_tools import cli
from longreach_tools.launch import _processes, _real
from longreach_tools.testing import longreach

FILES = Path(__file__).parent / 'launch_files'


def make_package(prefix, package):
    """Enter a package into a prefix's index."""
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True, exist_ok=True)
    (index / package).touch()


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """Put a prefix with the packages demo and longreach_bringup first."""
    prefix = tmp_path / 'prefix'
    for package in ('demo', 'longreach_bringup'):
        make_package(prefix, package)
    directory = prefix / 'share' / 'longreach_bringup' / 'launch'
    directory.mkdir(parents=True)
    for name in ('arguments', 'include', 'include_inner'):
        text = (FILES / f'{name}.launch.xml').read_text()
        (directory / f'{name}.launch.xml').write_text(text)
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'{prefix}:{os.environ.get("AMENT_PREFIX_PATH", "")}')
    monkeypatch.setenv('ROS_LOG_DIR', str(tmp_path / 'log'))
    return prefix


@pytest.mark.usefixtures('prefix')
def test_show_arguments(capsys):
    assert cli.main(['launch', 'arguments', '--show-args']) == 0
    shown = capsys.readouterr().out
    assert '  needed: required\n      must be given\n' in shown
    assert "  optional: default '$(var needed)_too'\n" in shown
    assert "  mode: default 'fast'\n      allowed: fast, slow\n" in shown
    assert "and of every launch file:\n  network: default 'false'\n" in shown
    assert cli.main(['launch', str(FILES / 'let.launch.xml'), '-s']) == 0
    assert 'let.launch.xml has no arguments\n' in capsys.readouterr().out
    assert cli.main(['launch', 'include', '-s']) == 0
    assert "  tone: default 'plain'\n" in capsys.readouterr().out


def test_print_runs_nothing(prefix, tmp_path, capsys):
    executable = prefix / 'lib' / 'demo' / 'talk'
    executable.parent.mkdir(parents=True)
    executable.write_text('#!/bin/sh\n')
    executable.chmod(0o755)
    file = str(FILES / 'parameters.launch.xml')
    # An option may stand between the file and its arguments.
    assert cli.main(['launch', file, '--print', 'rate:=3']) == 0
    shown = capsys.readouterr().out
    assert f'talk-1: {executable} --ros-args -r __node:=n -r __ns:=/ns --params-file PARA' in shown
    assert 'PARAMETERS_7:\n    /ns/n:\n      ros__parameters:\n        var: 3\n' in shown
    assert cli.main(['launch', str(FILES / 'let.launch.xml'), '-p']) == 0
    assert capsys.readouterr().out == 'echo-1: echo x=12\n  output log\n'
    assert not (tmp_path / 'log').exists()


@pytest.mark.usefixtures('prefix')
@pytest.mark.parametrize(
    ('words', 'complaint'),
    [
        (['boom'], "no launch file named 'boom' in .*; allowed: arguments, include, include_inn"),
        (['./boom'], "there is no launch file './boom'; give a path or a name"),
        (['arguments', 'needed=1'], "argument 'needed=1'; allowed: name:=value"),
        (['arguments', ':=1'], "argument ':=1'; allowed: name:=value"),
        (['arguments', 'need:=1'], "no argument 'need'; allowed: mode, needed, optional"),
        (['arguments', 'needed:=1', 'mode:=no'], "argument 'mode' is 'no'; allowed: fast, slow"),
        (['arguments', 'needed:=1', 'network:=no'], "argument network: 'no' is neither true"),
        (['arguments'], "arguments.launch.xml:2: argument 'needed' .* is not set; add needed:=V"),
        ([], 'the following arguments are required: NAME'),
    ],
)
def test_refused_call(words, complaint, capsys, monkeypatch):
    # Real launch does not refuse unknown arguments.
    for installed in (True, False):
        monkeypatch.setattr(_real, 'is_installed', lambda found=installed: found)
        assert cli.main(['launch', *words]) == 2
        error = capsys.readouterr().err
        assert error.count('\n') == 1
        assert re.search(complaint, error)


def make_module(directory, name):
    (directory / name).mkdir(parents=True)
    (directory / name / '__init__.py').touch()


def test_real_launch_is_chosen_only_when_all_of_it_is_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'path', [str(tmp_path), str(Path(os.__file__).parent)])
    for name in ('launch', 'launch_ros', 'launch_xml'):
        monkeypatch.delitem(sys.modules, name, raising=False)
    # A folder with launch files is no package.
    (tmp_path / 'launch').mkdir()
    make_module(tmp_path, 'launch_ros')
    make_module(tmp_path, 'launch_xml')
    assert not _real.is_installed()
    (tmp_path / 'launch' / '__init__.py').touch()
    importlib.invalidate_caches()
    assert _real.is_installed()


@pytest.mark.usefixtures('prefix')
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
    for installed in (True, False):
        monkeypatch.delenv('ROS_AUTOMATIC_DISCOVERY_RANGE')
        monkeypatch.setattr(_real, 'is_installed', lambda found=installed: found)
        assert cli.main(['launch', str(FILES / 'executable.launch.xml'), *words]) == 0
        for process in plans.pop():
            assert process.environment['ROS_AUTOMATIC_DISCOVERY_RANGE'] == value
        assert ('only nodes on' in capfd.readouterr().out) == said


def test_exit_code_of_real_launch():
    assert _real.first_failure({}) == 0
    assert _real.first_failure({'a-1': (0, False), 'b-2': (-2, True), 'c-3': (143, True)}) == 0
    assert _real.first_failure({'a-1': (0, False), 'b-2': (3, False), 'c-3': (4, False)}) == 3
    assert _real.first_failure({'a-1': (-2, False)}) == 130
    assert _real.first_failure({'a-1': (-9, True)}) == 137
    assert _real.first_failure({'a-1': (1, True)}) == 1


REAL_LAUNCH = {
    'launch/__init__.py': """
from . import logging
class LaunchDescription:
    def __init__(self, below):
        self.below = below
class LaunchService:
    def __init__(self, argv):
        self.argv = argv
    def include_launch_description(self, description):
        self.handler, self.include = description.below
    def run(self):
        print('ran', self.include, self.argv, flush=True)
        class Action:
            node_name = '/crane/controller'
            _ExecuteLocal__respawn = True
            _ExecuteLocal__respawn_max_retries = 1
        class Event:
            process_name, returncode, action = 'a-1', 5, Action()
        class Context:
            is_shutdown = False
        self.handler(Event, Context)
        print('first end', flush=True)
        self.handler(Event, Context)
        return 0
""",
    'launch/logging.py': """
class get_logger:
    def __init__(self, name):
        self.name = name
    def error(self, text):
        print(self.name, text, flush=True)
""",
    'launch/actions.py': """
def IncludeLaunchDescription(path, launch_arguments):
    return (path, launch_arguments)
def RegisterEventHandler(handler):
    return handler
""",
    'launch/event_handlers.py': 'def OnProcessExit(on_exit):\n    return on_exit\n',
    'launch/launch_description_sources.py': 'AnyLaunchDescriptionSource = str\n',
    'launch_ros/__init__.py': '',
    'launch_xml/__init__.py': '',
}


@pytest.mark.usefixtures('prefix')
def test_real_launch_runs_the_file(tmp_path, monkeypatch):
    """Beside a substitute of real launch, whose one process ends twice with 5."""
    for name, text in REAL_LAUNCH.items():
        path = tmp_path / 'modules' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    file = FILES / 'arguments.launch.xml'
    monkeypatch.setenv('PYTHONPATH', f'{tmp_path / "modules"}:{os.environ.get("PYTHONPATH", "")}')
    result = longreach('launch', file, 'needed:=a b')
    assert f"ran ('{file}', [('needed', 'a b')]) ['needed:=a b']" in result.stdout
    assert result.returncode == 5
    _, _, last = result.stdout.partition('first end\n')
    assert last.startswith('a-1 node /crane/controller has ended 2 times and is NOT started again')
