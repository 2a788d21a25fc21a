"""
The set-up script: what it refuses, what it leaves alone, and how it recovers.

Each test works on a small tree of its own, with a copy of the script. Commands that would download
or compile are replaced by ones that leave behind what the real ones leave.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCK = (
    'numpy==1.0 \\\n    --hash=sha256:' + 'a' * 64 + '\n'
    'pip==2.0 \\\n    --hash=sha256:' + 'b' * 64 + '\n'
    "scipy==3.0 ; python_full_version < '3.12' \\\n    --hash=sha256:" + 'c' * 64 + '\n'
    "scipy==4.0 ; python_full_version >= '3.12' \\\n    --hash=sha256:" + 'd' * 64 + '\n'
)

COMPARISONS = 'other==5.0 \\\n    --hash=sha256:' + 'e' * 64 + '\n'

SETUP = """setup(entry_points={
    'longreach.warm_up': ['thing = longreach_thing.thing:warm_up'],
    'longreach.machines': ['thing = longreach_thing.spec:THING'],
})"""


@pytest.fixture
def tree(tmp_path):
    """Return a tree with the script, a lock file and one package."""
    (tmp_path / 'scripts').mkdir()
    shutil.copy(ROOT / 'scripts' / 'workspace.py', tmp_path / 'scripts')
    (tmp_path / 'requirements.lock').write_text(LOCK)
    (tmp_path / 'comparisons.lock').write_text(COMPARISONS)
    (tmp_path / 'colcon.meta').write_text('{"names": {}}')
    package = tmp_path / 'src' / 'longreach_thing'
    package.mkdir(parents=True)
    (package / 'package.xml').write_text(
        '<package format="3"><name>longreach_thing</name></package>'
    )
    (package / 'setup.py').write_text(SETUP)
    (package / 'thing.py').write_text('')
    return tmp_path


class Fakes:
    """Stand-ins for the commands of a set-up; ``trouble`` is what the named one raises, once."""

    def __init__(self, tree):
        self.tree = tree
        self.names = []
        self.commands = {}
        self.trouble = {}
        self.compiled = []
        self.failure = ''

    def compile(self, function, _):
        self.compiled.append(function)
        return self.failure

    def call(self, command, name, *_, **__):
        self.names.append(name)
        self.commands[name] = command
        if name == 'venv':
            new(self.tree / '.venv/bin/python')
        if name == 'tools-pip':
            new(self.tree / '.venv/bin/uv')
        if name.startswith('packages'):
            new(self.tree / '.venv/lib/half_a_package')
        if name == 'colcon':
            new(self.tree / 'build/longreach_thing/something')
            new(self.tree / 'install/setup.bash')
        if name in self.trouble:
            raise self.trouble.pop(name)
        if name.startswith('packages'):
            (self.tree / '.venv/lib/half_a_package').rename(self.tree / '.venv/lib/package')


@pytest.fixture
def workspace(tree, monkeypatch):
    """Return the tree's own copy of the script as a module, with its commands faked."""
    monkeypatch.delenv('ROS_DISTRO', raising=False)
    module = load(tree)
    fakes = Fakes(tree)
    module.fakes = fakes
    monkeypatch.setattr(module, 'call', fakes.call)
    monkeypatch.setattr(module, 'check_host', lambda: None)
    monkeypatch.setattr(module, 'mend_cmake_files', lambda: None)
    monkeypatch.setattr(module, 'leave_own_environment', lambda: None)
    monkeypatch.setattr(module, 'compile_kernels', fakes.compile)
    return module


def load(tree):
    spec = importlib.util.spec_from_file_location('tree_workspace', tree / 'scripts/workspace.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def script(tree, *arguments, **environment):
    """Run the script as make does."""
    clean = {k: v for k, v in os.environ.items() if k != 'ROS_DISTRO'}
    return subprocess.run(
        [sys.executable, str(tree / 'scripts' / 'workspace.py'), *arguments],
        env=clean | environment,
        capture_output=True,
        text=True,
    )


ALL = ['venv', 'tools-pip', 'packages', 'colcon']


# --- refusals -------------------------------------------------------------------------------


def test_another_ros_is_refused_before_anything_is_made(tree):
    before = sorted(tree.rglob('*'))
    done = script(tree, 'setup', ROS_DISTRO='humble')
    assert done.returncode == 2
    assert 'ROS_DISTRO = humble, allowed: jazzy, or newer (kilted, lyrical, ' in done.stderr
    assert 'Traceback' not in done.stderr
    assert sorted(tree.rglob('*')) == before


@pytest.mark.parametrize(
    'arguments',
    [(), ('build',), ('run',), ('run', '--'), ('setup', 'twice'), ('setup', '--comparison')],
    ids=str,
)
def test_unknown_arguments_are_refused(workspace, capsys, arguments):
    assert workspace.main(list(arguments)) == 2
    allowed = 'allowed: setup [--comparisons | --machines] | run -- COMMAND ... | lock'
    assert allowed in capsys.readouterr().err


def test_another_python_is_refused(tree, monkeypatch, capsys):
    monkeypatch.delenv('ROS_DISTRO', raising=False)
    module = load(tree)
    monkeypatch.setattr(module, 'leave_own_environment', lambda: None)
    monkeypatch.setattr(module, 'SUPPORTED_PYTHONS', ((3, 98), (3, 99)))
    assert module.main(['setup']) == 2
    message = capsys.readouterr().err
    version = '.'.join(map(str, sys.version_info[:2]))
    assert f'Python {version} at {sys.executable}, allowed: 3.98, 3.99' in message
    assert 'make PYTHON=' in message
    assert not (tree / '.venv').exists()


@pytest.mark.parametrize(
    ('missing', 'message'),
    [
        ('ensurepip', r'has no venv; install it with: apt install python3\.\d+-venv'),
        ('header', r'Python\.h was not found; install it with: apt install python3\.\d+-dev'),
        ('compiler', r'no C\+\+ compiler was found; install one with: apt install g\+\+'),
    ],
)
def test_what_the_machine_lacks_is_named_with_its_package(tree, monkeypatch, missing, message):
    module = load(tree)
    include = tree / 'include'
    include.mkdir()
    if missing != 'header':
        (include / 'Python.h').write_text('')
    monkeypatch.setattr(module, 'SUPPORTED_PYTHONS', (sys.version_info[:2],))
    monkeypatch.setattr(module.sysconfig, 'get_path', lambda _: str(include))
    found = None if missing == 'ensurepip' else object()
    monkeypatch.setattr(module.importlib.util, 'find_spec', lambda _: found)
    monkeypatch.setattr(
        module.shutil, 'which', lambda name: None if missing == 'compiler' else f'/bin/{name}'
    )
    with pytest.raises(module.SetupError, match=message):
        module.check_host()


@pytest.mark.parametrize('character', [' ', ':', ';', '"', "'", '$', 'ä', '東'])
def test_path_that_the_environment_cannot_have_is_refused_at_once(
    tree, monkeypatch, capsys, character
):
    monkeypatch.delenv('ROS_DISTRO', raising=False)
    other = tree.parent / f'long{character}reach'
    tree.rename(other)
    assert load(other).main(['setup']) == 2
    error = f'contains {character!r}, which the scripts and CMake files'
    assert error in capsys.readouterr().err
    assert not (other / '.venv').exists()


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        (('run', '--', 'true'), 'the workspace is not built; run: make setup'),
        (('lock',), 'uv was not found; install it with: pip install uv'),
    ],
)
def test_what_is_not_there_yet_is_named(tree, words, message):
    done = script(tree, *words, PATH='/nonexistent')
    assert done.returncode == 2
    assert message in done.stderr


def test_a_file_in_the_way_is_named(workspace, tree, capsys):
    new(tree / 'log')
    assert workspace.main(['setup']) == 2
    assert f'{tree / "log"}: File exists; move it away' in capsys.readouterr().err


# --- an installed ROS -----------------------------------------------------------------------


@pytest.fixture
def installed(workspace, monkeypatch):
    """Return the script as a module where a ROS is sourced that lacks some packages."""
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    monkeypatch.setattr(workspace.shutil, 'which', lambda name: f'/bin/{name}')
    monkeypatch.setattr(workspace, 'PACKAGES', {'no_such_module': 'scipy', 'nor_this': 'other'})
    monkeypatch.setattr(workspace, 'PIP_ONLY', ['no_such_module'])
    monkeypatch.setattr(workspace, 'PIP_ONLY_TESTS', ['os'])
    monkeypatch.setattr(workspace, 'PIP_ONLY_COMPARISONS', ['nor_this'])
    return workspace


@pytest.mark.parametrize(('arguments', 'told'), [((), False), (('--comparisons',), True)])
def test_installed_ros_makes_no_environment_and_is_told_what_it_lacks(
    installed, tree, capsys, arguments, told
):
    assert installed.main(['setup', *arguments]) == 0
    assert installed.fakes.names == ['colcon']
    assert not any('Python3_EXECUTABLE' in word for word in installed.fakes.commands['colcon'])
    message = capsys.readouterr().err
    assert 'install --break-system-packages scipy==4.0\n' in message
    assert ('install --break-system-packages other==5.0\n' in message) is told
    assert not (tree / '.venv').exists()


def test_newer_ros_is_used_with_a_warning(installed, monkeypatch, capsys):
    monkeypatch.setenv('ROS_DISTRO', 'rolling')
    assert installed.main(['setup']) == 0
    assert installed.fakes.names == ['colcon']
    assert 'warning: ROS_DISTRO = rolling is newer than jazzy' in capsys.readouterr().err


def test_installed_ros_without_colcon_is_refused(installed, monkeypatch, capsys):
    monkeypatch.setattr(installed.shutil, 'which', lambda _: None)
    assert installed.main(['setup']) == 2
    assert 'apt install python3-colcon-common-extensions' in capsys.readouterr().err


# --- stamps ---------------------------------------------------------------------------------


def test_packages_are_installed_with_hashes_and_without_others(workspace, tree):
    workspace.main(['setup'])
    command = workspace.fakes.commands['packages']
    assert command[0] == str(tree / '.venv/bin/uv')
    assert {'--require-hashes', '--no-deps', str(tree / 'requirements.lock')} <= set(command)
    assert '--require-hashes' in workspace.fakes.commands['tools-pip']
    tools = (tree / 'log' / 'requirements-tools.lock').read_text()
    assert 'pip==2.0' in tools
    assert 'numpy' not in tools


def test_pip_installs_what_uv_cannot(workspace, tree, capsys):
    workspace.fakes.trouble['packages'] = workspace.SetupError('uv failed with exit code 1;\nmore')
    assert workspace.main(['setup']) == 0
    assert 'uv failed with exit code 1; trying pip ...' in capsys.readouterr().err
    command = workspace.fakes.commands['packages-pip']
    assert command[:3] == [str(tree / '.venv/bin/python'), '-m', 'pip']
    assert {'--require-hashes', '--no-deps', str(tree / 'requirements.lock')} <= set(command)
    assert (tree / '.venv/lib/package').exists()


def test_changed_package_is_built_on_top_of_the_old_build(workspace, tree):
    workspace.main(['setup'])
    (tree / 'build' / 'kept').write_text('')
    (tree / 'src/longreach_thing/setup.py').write_text('# new')
    assert workspace.main(['setup']) == 0
    assert workspace.fakes.names == [*ALL, 'colcon']
    assert (tree / 'build' / 'kept').exists()


@pytest.mark.parametrize('key', ['root', 'python', 'ros'])
def test_build_for_another_place_or_python_or_ros_starts_over(workspace, tree, key):
    workspace.main(['setup'])
    (tree / 'build' / 'old').write_text('')
    stamp = tree / 'install' / 'complete.json'
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {key: 'another'}))
    assert workspace.main(['setup']) == 0
    assert not (tree / 'build' / 'old').exists()


@pytest.mark.parametrize('change', ['lock', 'recipe', 'stamp'])
def test_new_lock_or_recipe_or_a_damaged_stamp_makes_environment_and_build_anew(
    workspace, tree, monkeypatch, change
):
    workspace.main(['setup'])
    olds = [tree / '.venv' / 'old', tree / 'build' / 'old']
    for old in olds:
        old.write_text('')
    if change == 'lock':
        (tree / 'requirements.lock').write_text(LOCK.replace('numpy==1.0', 'numpy==1.1'))
    elif change == 'recipe':
        monkeypatch.setattr(workspace, 'VENV_RECIPE', workspace.VENV_RECIPE + 1)
    else:
        (tree / '.venv' / 'complete.json').write_text('{"lock": ')
    assert workspace.main(['setup']) == 0
    assert workspace.fakes.names == ALL + ALL
    assert not any(old.exists() for old in olds)


def new(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('')


def edited(path):
    path.write_text(path.read_text() + '\n# edited\n')


@pytest.mark.parametrize(
    ('change', 'name', 'counts'),
    [
        (new, 'src/longreach_thing/new.py', True),
        (new, 'src/longreach_thing/new.msg', True),
        (new, 'launch/new.launch.xml', True),
        (new, 'config/new.yaml', True),
        (new, 'rviz/new.rviz', True),
        (new, 'docs/new.md', False),
        (new, 'src/longreach_thing/__pycache__/new.pyc', False),
        (edited, 'src/longreach_thing/thing.py', False),
        (edited, 'src/longreach_thing/package.xml', True),
        (edited, 'src/longreach_thing/setup.py', True),
        (edited, 'colcon.meta', True),
        (edited, 'scripts/workspace.py', True),
        (Path.unlink, 'src/longreach_thing/thing.py', True),
    ],
)
def test_what_the_digest_of_the_sources_notices(workspace, tree, change, name, counts):
    before = workspace.source_digest()
    change(tree / name)
    assert (workspace.source_digest() != before) is counts


# --- comparisons ----------------------------------------------------------------------------


WITH_COMPARISONS = [*ALL[:3], 'comparisons', *ALL[3:]]


def test_comparisons_come_only_where_they_are_asked_for_and_once(workspace, tree):
    assert workspace.main(['setup']) == 0
    assert workspace.fakes.names == ALL
    for arguments in (['setup', '--comparisons'], ['setup'], ['setup', '--comparisons']):
        assert workspace.main(arguments) == 0
        assert workspace.fakes.names == [*ALL, 'comparisons']
    command = workspace.fakes.commands['comparisons']
    assert {'--require-hashes', '--no-deps', str(tree / 'comparisons.lock')} <= set(command)
    # A new environment needs them again.
    (tree / 'requirements.lock').write_text(LOCK.replace('numpy==1.0', 'numpy==1.1'))
    assert workspace.main(['setup', '--comparisons']) == 0
    assert workspace.fakes.names == [*ALL, 'comparisons', *WITH_COMPARISONS]
    # New comparisons leave environment and build.
    (tree / 'comparisons.lock').write_text(COMPARISONS.replace('5.0', '6.0'))
    assert workspace.main(['setup']) == 0
    assert workspace.main(['setup', '--comparisons']) == 0
    assert workspace.fakes.names == [*ALL, 'comparisons', *WITH_COMPARISONS, 'comparisons']


@pytest.mark.parametrize('trouble', ['failure', 'interrupt'])
def test_comparisons_that_were_cut_off_are_installed_again(workspace, tree, trouble):
    workspace.main(['setup', '--comparisons'])
    (tree / 'comparisons.lock').write_text(COMPARISONS.replace('5.0', '6.0'))
    error = workspace.SetupError('no network') if trouble == 'failure' else KeyboardInterrupt()
    workspace.fakes.trouble |= {'comparisons': error, 'comparisons-pip': error}
    assert workspace.main(['setup', '--comparisons']) != 0
    # What is half there belongs to neither lock file.
    (tree / 'comparisons.lock').write_text(COMPARISONS)
    assert workspace.main(['setup', '--comparisons']) == 0
    assert workspace.fakes.names[-1] == 'comparisons'
    assert workspace.fakes.names.count('comparisons') == 3


# --- recovery -------------------------------------------------------------------------------


@pytest.mark.parametrize('failing', ALL)
@pytest.mark.parametrize('stopped', [KeyboardInterrupt, None])
def test_second_setup_repairs_one_that_was_stopped(workspace, tree, capsys, failing, stopped):
    trouble = stopped() if stopped else workspace.SetupError('the network is away')
    workspace.fakes.trouble |= {failing: trouble, f'{failing}-pip': trouble}
    assert workspace.main(['setup']) == (130 if stopped else 2)
    assert ('interrupted' if stopped else 'set-up: the network') in capsys.readouterr().err
    half = tree / ('build' if failing == 'colcon' else '.venv') / 'half'
    new(half)
    assert workspace.main(['setup']) == 0
    # A build that failed goes on; what was interrupted is made anew.
    assert half.exists() == (failing == 'colcon' and not stopped)
    assert (tree / '.venv/lib/package').exists()
    assert not (tree / '.venv/lib/half_a_package').exists()
    made = list(workspace.fakes.names)
    assert workspace.main(['setup']) == 0
    assert workspace.fakes.names == made
    assert workspace.fakes.compiled[-1] == 'longreach_thing.thing:warm_up'


def test_failed_build_is_not_taken_for_the_good_one_before(workspace, tree):
    workspace.main(['setup'])
    file = tree / 'src/longreach_thing/setup.py'
    file.write_text('# wrong')
    workspace.fakes.trouble['colcon'] = workspace.SetupError('an error in setup.py')
    assert workspace.main(['setup']) == 2
    # Back as it was before; what is in install/ is not.
    file.write_text(SETUP)
    assert workspace.main(['setup']) == 0
    assert workspace.fakes.names == [*ALL, 'colcon', 'colcon']


def test_kernels_that_cannot_be_compiled_are_tried_again(workspace, capsys):
    workspace.fakes.failure = 'no space left on device'
    assert workspace.main(['setup']) == 2
    assert 'kernels could not be compiled:\nno space left' in capsys.readouterr().err
    workspace.fakes.failure = ''
    assert workspace.main(['setup']) == 0
    assert workspace.fakes.compiled == ['longreach_thing.thing:warm_up'] * 2


def test_ctrl_c_does_not_wait_for_kernels_that_have_not_begun(workspace, monkeypatch):
    gate, cores = threading.Event(), len(os.sched_getaffinity(0))

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait=True, *, cancel_futures=False):
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            gate.set()
            super().shutdown(wait)

    begun = workspace.fakes.compiled

    def lasts(function, _):
        begun.append(function)
        gate.wait(30.0)
        return ''

    monkeypatch.setattr(workspace.concurrent.futures, 'ThreadPoolExecutor', Pool)
    monkeypatch.setattr(workspace, 'compile_kernels', lasts)
    monkeypatch.setattr(workspace, 'warm_ups', lambda _: ['a:b'] * (cores + 9))
    workspace.fakes.trouble['colcon'] = KeyboardInterrupt()
    assert workspace.main(['setup']) == 130
    assert len(begun) <= cores


def test_kernels_of_machines_come_first_and_the_others_later_without_a_build(workspace, tree):
    other = tree / 'src' / 'longreach_a_tool' / 'setup.py'
    other.parent.mkdir()
    other.write_text("setup(entry_points={'longreach.warm_up': ['tool = longreach_a_tool:warm']})")
    for arguments in (['setup', '--machines'], ['setup', '--machines']):
        assert workspace.main(arguments) == 0
        assert workspace.fakes.compiled == ['longreach_thing.thing:warm_up']
    assert workspace.main(['setup']) == 0
    assert sorted(workspace.fakes.compiled[1:]) == [
        'longreach_a_tool:warm',
        'longreach_thing.thing:warm_up',
    ]
    assert workspace.main(['setup', '--machines']) == 0
    assert workspace.fakes.names == ALL
    assert len(workspace.fakes.compiled) == 3


def test_kernels_are_compiled_from_the_sources(tree):
    module = load(tree)
    file = tree / 'src/longreach_thing/longreach_thing.py'
    file.write_text('def warm_up():\n    print("no room")\n    raise SystemExit(1)\n')
    assert module.compile_kernels('longreach_thing:warm_up', dict(os.environ)) == 'no room\n'
    file.write_text('def warm_up():\n    print("done")\n')
    assert module.compile_kernels('longreach_thing:warm_up', dict(os.environ)) == ''


def test_one_setup_waits_for_another(workspace, tree, capsys):
    (tree / 'log').mkdir()
    other = (tree / 'log' / 'setup.lock').open('w')
    fcntl.flock(other, fcntl.LOCK_EX)
    thread = threading.Thread(target=lambda: workspace.main(['setup']), daemon=True)
    thread.start()
    said = ''
    deadline = time.monotonic() + 30.0
    while 'waiting for another set-up' not in said:
        said += capsys.readouterr().err
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert workspace.fakes.names == []
    other.close()
    thread.join(30.0)
    assert workspace.fakes.names == ALL


# --- commands -------------------------------------------------------------------------------


def test_failed_command_shows_the_end_of_its_log(tree):
    module = load(tree)
    (tree / 'log').mkdir()
    program = 'print("first"); print(*range(100), sep="\\n"); raise SystemExit(3)'
    with pytest.raises(module.SetupError, match='failed with exit code 3') as caught:
        module.call([sys.executable, '-c', program], 'thing', dict(os.environ))
    text = str(caught.value)
    assert text.endswith('98\n99')
    assert 'first' not in text
    assert str(tree / 'log/setup-thing.log') in text
    assert (tree / 'log/setup-thing.log').read_text().startswith('first')


def test_interrupted_command_does_not_live_on(tree, monkeypatch):
    module = load(tree)
    (tree / 'log').mkdir()
    started = []
    popen = subprocess.Popen

    def remember(*arguments, **keywords):
        started.append(popen(*arguments, **keywords))
        return started[-1]

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.subprocess, 'Popen', remember)
    monkeypatch.setattr(module.time, 'sleep', interrupt)
    with pytest.raises(KeyboardInterrupt):
        module.call([sys.executable, '-c', 'input()'], 'thing', dict(os.environ))
    assert started[0].returncode is not None


def test_run_hands_arguments_and_exit_code_on_and_leaves_other_environments_out(tree):
    (tree / 'install').mkdir()
    (tree / 'install' / 'setup.bash').write_text('export FROM_SETUP="it is sourced"\n')
    program = 'echo "$FROM_SETUP|$1|$PWD|$AMENT_PREFIX_PATH$PYTHONPATH"; exit 7'
    foreign = {'AMENT_PREFIX_PATH': '/opt/ros/other', 'PYTHONPATH': '/opt/ros/other/lib'}
    done = script(tree, 'run', '--', 'bash', '-c', program, 'name', 'two words', **foreign)
    assert done.returncode == 7
    assert done.stdout == f'it is sourced|two words|{tree}|\n'


def test_local_setup_chains_the_environment(workspace, tree):
    workspace.main(['setup'])
    command = '. "$0" && echo "$AMENT_PREFIX_PATH|$VIRTUAL_ENV|${PATH%%:*}"'
    for name in ('local_setup.sh', 'local_setup.bash'):
        done = subprocess.run(
            ['bash', '-c', command, str(tree / '.venv' / name)],
            env={'PATH': os.environ['PATH'], 'AMENT_PREFIX_PATH': '/other'},
            capture_output=True,
            text=True,
        )
        venv = tree / '.venv'
        assert done.stdout == f'{venv}:/other|{venv}|{venv}/bin\n', done.stderr
