"""The scripts that make calls: how they report, and what they hand on."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).resolve().parent.parent


def script(name, *arguments, **environment):
    # As make does: not as a worker of the run that this test belongs to.
    clean = {k: v for k, v in os.environ.items() if not k.startswith('PYTEST_')}
    return subprocess.run(
        [sys.executable, str(ROOT / 'scripts' / f'{name}.py'), *arguments],
        env=clean | environment,
        capture_output=True,
        text=True,
        cwd=ROOT,
        # Where tests run in the background, it is ignored.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


@pytest.fixture
def no_tools(tmp_path):
    """Return an environment in which no check and no plugin of pytest can be found."""
    hidden = ('importlinter', 'mypy', 'pytest', 'ruff', 'xdist')
    (tmp_path / 'sitecustomize.py').write_text(
        'import importlib.util\n'
        'find_spec = importlib.util.find_spec\n'
        'importlib.util.find_spec = (\n'
        f'    lambda name, *rest: None if name in {hidden} else find_spec(name, *rest)\n'
        ')\n'
    )
    return {'PYTHONPATH': f'{tmp_path}:{os.environ.get("PYTHONPATH", "")}'}


def test_lint_names_every_check_that_is_missing(no_tools):
    done = script('run_lint', **no_tools)
    assert done.returncode == 1
    for requirement in ('ruff', 'mypy', 'import-linter'):
        assert re.search(rf'install it with: pip install {requirement}==\d', done.stdout)
    last = done.stdout.splitlines()[-1]
    assert last == 'lint: failed: ruff check, ruff format, mypy, import directions'


def test_tests_name_what_is_missing(no_tools):
    done = script('run_tests', **no_tools)
    assert done.returncode == 1
    assert 'pip install pytest pytest-xdist' in done.stderr


@pytest.fixture
def small_test(tmp_path):
    """Return a file with one test that passes, one that fails and a slow one that passes."""
    path = tmp_path / 'test_small.py'
    path.write_text(
        'import pytest\n\n\n'
        'def test_good():\n    pass\n\n\n'
        'def test_bad():\n    assert 1 == 2\n\n\n'
        '@pytest.mark.slow\ndef test_long():\n    pass\n'
    )
    return path


def test_tests_hand_on_the_exit_code_and_leave_out_what_is_slow(small_test):
    done = script('run_tests', str(small_test), '-p', 'no:cacheprovider')
    assert done.returncode == 1, done.stdout
    assert '1 failed, 1 passed' in done.stdout.splitlines()[-1]


def test_interrupted_tests_end_without_a_traceback(tmp_path):
    path = tmp_path / 'test_long.py'
    path.write_text('import os, signal\n\n\ndef test():\n    os.killpg(0, signal.SIGINT)\n')
    program = f'{sys.executable} scripts/run_tests.py -p no:cacheprovider -n 0 {path}'
    done = subprocess.run(
        ['setsid', '-w', *program.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert 'KeyboardInterrupt' in done.stdout
    assert done.stderr == ''


@pytest.mark.slow
def test_tests_hand_on_arguments_and_run_all_if_asked_to(small_test):
    chosen = [f'{small_test}::{name}' for name in ('test_good', 'test_long')]
    done = script('run_tests', '--all', *chosen, '-q', '-p', 'no:cacheprovider')
    assert done.returncode == 0, done.stdout
    assert '2 passed' in done.stdout.splitlines()[-1]


def test_workers_have_ros_domains_of_their_own():
    """Load conftest.py as several workers would, each of which keeps its domain."""
    spec = importlib.util.spec_from_file_location('worker', ROOT / 'conftest.py')
    names = ('ROS_DOMAIN_ID', 'ROS_AUTOMATIC_DISCOVERY_RANGE', 'MPLBACKEND', 'ROS_LOG_DIR')
    workers, told = [importlib.util.module_from_spec(spec) for _ in range(4)], []
    with mock.patch.dict(os.environ, {'ROS_LOCALHOST_ONLY': '1'}):
        for worker in workers:
            spec.loader.exec_module(worker)
            told.append([os.environ[name] for name in names])
        assert 'ROS_LOCALHOST_ONLY' not in os.environ
    domains, ranges, backends, logs = zip(*told, strict=True)
    assert len(set(domains)) == len(set(logs)) == 4
    assert all(1 <= int(domain) <= 101 for domain in domains)
    assert {*ranges, *backends} == {'LOCALHOST', 'Agg'}
    for worker, log in zip(workers, logs, strict=True):
        worker.pytest_unconfigure(None)
        assert not Path(log).exists()


@pytest.mark.slow
def test_bench_refuses_an_unknown_section():
    done = script('bench', '--only', 'a,z')
    assert done.returncode == 2
    assert "'z', allowed: a, b, c, d" in done.stderr


@pytest.fixture(scope='module')
def sections():
    """Return the rows of some sections of a quick benchmark."""
    done = script('bench', '--quick', '--only', 'a,h,i,j,t')
    assert done.returncode == 0, done.stderr
    head, *parts = done.stdout.split('\n(')
    assert 'cores' in head
    return {part[0]: part.splitlines()[2:] for part in parts}


@pytest.mark.slow
def test_bench_prints_ratios_and_errors(sections):
    lines = [line.split() for line in sections['a']]
    assert [line[0].strip(',') for line in lines] == ['library', *['solve_ivp'] * 3]
    # Another mathematics would show in the errors, whatever the times are.
    assert all(float(line[-1]) < 1e-7 for line in lines)


@pytest.mark.slow
def test_bench_finds_markers_and_tags(sections):
    for name in ('longreach', 'AprilTag'):
        (row, *_) = [line for line in sections['j'] if line.startswith(name)]
        assert 'not installed' in row or 'found 100 %, wrong 0 of 20' in row


@pytest.mark.slow
def test_bench_evaluates_flexible_links_by_several_programs(sections):
    for name in ('C', 'CasADi', 'CasADi, M', 'Python'):
        (row, *_) = [line for line in sections['t'] if line.startswith(name)]
        if 'no C compiler' not in row:
            assert float(re.search(r'\de-\d+', row)[0]) < 1e-12, row


@pytest.mark.slow
def test_bench_compares_chains_with_every_program_or_says_what_is_missing(sections):
    programs = ['longreach', 'Pinocchio', 'MuJoCo', 'Drake', 'Exudyn']
    for letter, has_errors in (('h', programs[:4]), ('i', programs)):
        for name in programs:
            (row, *_) = [line for line in sections[letter] if line.startswith(name)]
            if 'not installed' in row or name not in has_errors:
                assert re.search(r'PyPI has it as \w+|has no call', row)
                continue
            # Of another mechanics the errors would be of the size of the angles.
            assert float(re.search(r'\de-\d+', row)[0]) < 1e-5, row


# A machine that nobody has heard of: what it has to bring, and that nothing else is edited.


@pytest.fixture
def tree_with_a_machine(tmp_path):
    """Return a copy of what the scripts look at, with a machine added by new files alone."""
    root = tmp_path / 'tree'
    packages = ('dynamics', 'markers', 'vision', 'crane', 'tools', 'node')
    for name in (f'longreach_{package}' for package in packages):
        shutil.copytree(
            ROOT / 'src' / name,
            root / 'src' / name,
            ignore=shutil.ignore_patterns('test', '*.egg-info', '__pycache__'),
        )
    shutil.copytree(ROOT / 'scripts', root / 'scripts')
    (root / 'docs').mkdir()
    (root / 'README.md').write_text('# Longreach\n')
    package = root / 'src' / 'longreach_swing' / 'longreach_swing'
    package.mkdir(parents=True)
    (package.parent / 'setup.py').touch()
    for module in ('__init__', 'model', 'commands', 'plant_node'):
        (package / f'{module}.py').touch()
    (root / 'docs' / 'swing.md').write_text(
        'Made by `longreach swing run --plot docs/pictures/swing.svg`, and in two steps:\n\n'
        '    longreach swing record out/swing\n'
        '    longreach swing plot out/swing --plot docs/pictures/two.svg   # both\n'
    )
    (root / 'scripts' / 'bench_swing.py').write_text(
        'from bench_table import Row, Section\n\n'
        'PLANTS = {"swing": ("longreach", "launch", "swing")}\n'
        'SECTIONS = {"z": Section("Swings", lambda quick: [Row("one", (1.0,))])}\n'
    )
    return root


def run_in(root, program, **environment):
    done = subprocess.run(
        [sys.executable, '-c', program],
        cwd=root / 'scripts',
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ('lines', 'broken'),
    [
        ({'plant_node': 'import rclpy', 'commands': 'import matplotlib.pyplot'}, 0),
        ({'model': 'import matplotlib.pyplot', 'commands': 'import rclpy'}, 2),
        ({'ros.plant_node': 'import rclpy', 'parts.figures': 'import matplotlib.pyplot'}, 0),
        ({'parts.beam': 'import longreach_tools.output', 'parts.figures': 'import rclpy'}, 2),
        ({'commands.beam': 'import matplotlib', 'ros.__init__': 'import rclpy'}, 1),
    ],
    ids=['kept', 'broken', 'kept in subpackages', 'broken in subpackages', 'names of subpackages'],
)
def test_a_new_machine_is_held_by_the_contracts(tree_with_a_machine, lines, broken):
    pytest.importorskip('importlinter')
    root = tree_with_a_machine
    sources = root / 'src' / 'longreach_swing'
    for module, line in lines.items():
        file = sources.joinpath('longreach_swing', *module.split('.')).with_suffix('.py')
        file.parent.mkdir(exist_ok=True)
        (file.parent / '__init__.py').touch()
        file.write_text(f'{line}\n')
    done = subprocess.run(
        [sys.executable, str(root / 'scripts' / 'import_contracts.py')],
        env=os.environ | {'PYTHONPATH': f'{sources}:{os.environ["PYTHONPATH"]}'},
        capture_output=True,
        text=True,
    )
    assert f'{broken} broken' in done.stdout
    assert done.returncode == int(broken > 0)
    for module in lines:
        name = module.removesuffix('.__init__')
        assert (f'longreach_swing.{name} -> ' in done.stdout) is (broken > 0), done.stdout


@pytest.mark.slow
def test_a_new_machine_has_its_benchmarks_and_pictures(tree_with_a_machine):
    program = 'import bench, bench_ros; print(*bench.SECTIONS, *bench_ros.PLANTS, sep=",")'
    names = run_in(tree_with_a_machine, program).strip().split(',')
    assert {'a', 'z', 'swing'} <= set(names)
    program = 'import pictures; print(*map(" ".join, pictures.commands(pictures.ROOT)), sep="\\n")'
    assert run_in(tree_with_a_machine, program).splitlines() == [
        'longreach swing record out/swing',
        'longreach swing plot out/swing --plot docs/pictures/two.svg',
        'longreach swing run --plot docs/pictures/swing.svg',
    ]


def test_a_new_machine_takes_part_in_the_demonstrations(tmp_path):
    info = tmp_path / 'swing-1.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Name: swing\nVersion: 1\n')
    (info / 'entry_points.txt').write_text('[longreach.machines]\nswing = swing\n')
    (tmp_path / 'swing.py').write_text('demo = ["duration:=1.0"]\n')
    # A stand-in for the command: says how it was called, and fails for the new machine.
    longreach = tmp_path / 'longreach'
    longreach.write_text('#!/bin/sh\necho "$@" >>"$CALLS"\n[ "$1" != swing ] || exit 3\n')
    longreach.chmod(0o755)
    calls = tmp_path / 'calls'
    names = {name: f'{tmp_path}:{os.environ[name]}' for name in ('PYTHONPATH', 'PATH')}
    done = script('run_demos', '--out', 'there', **names, CALLS=str(calls))
    assert done.returncode == 3
    machines = ('boom', 'crane', 'excavator', 'harvester', 'links', 'swing')
    assert calls.read_text().splitlines() == [f'{name} demo --out there' for name in machines]
    longreach.write_text('#!/bin/sh\nkill -INT $PPID\n')
    done = script('run_demos', **names)
    assert done.returncode == 130
    assert done.stderr == ''


def test_every_picture_is_made_by_a_command_of_the_pages():
    program = 'import pictures; print(*map(" ".join, pictures.commands(pictures.ROOT)))'
    made = set(re.findall(r'docs/pictures/(\w+\.\w+)', run_in(ROOT, program)))
    there = {path.name for path in (ROOT / 'docs' / 'pictures').iterdir()}
    # Sketches are drawn by hand.
    assert {name for name in there if not name.endswith('_sketch.svg')} == made
