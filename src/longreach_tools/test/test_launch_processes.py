"""How `longreach launch` starts, shows and ends real processes; each launch is a process."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

DEADLINE = 60.0
MARKER = 'LONGREACH_TEST_MARKER'
CONSOLE = """
from longreach_tools.launch import _processes
from longreach_tools.cli import console
_processes.PATIENCE = {}
console()
"""

POLITE = """
import os, signal, sys, time
for name in ('SIGINT', 'SIGTERM'):
    def leave(number, frame):
        os.write(1, f'leaving on {signal.Signals(number).name}\\n'.encode())
        sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    signal.signal(getattr(signal, name), leave)
os.write(1, b'ready\\n')
while True:
    time.sleep(60)
"""
STUBBORN = """
import os, signal, sys, time
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), signal.SIG_IGN)
os.write(1, b'ready\\n')
while True:
    time.sleep(60)
"""


class Launch:
    """A running `longreach launch`, its output in files."""

    def __init__(self, directory: Path, body: str, patience: float = 5.0) -> None:
        self.directory = directory
        self.marker = uuid.uuid4().hex
        (directory / 'polite.py').write_text(POLITE)
        (directory / 'stubborn.py').write_text(STUBBORN)
        file = directory / 'test.launch.xml'
        text = f'<launch>{body}</launch>'.replace('PYTHON', f'{sys.executable} -u')
        file.write_text(text.replace('DIR', str(directory)))
        self.out, self.err = directory / 'out', directory / 'err'
        with self.out.open('wb') as out, self.err.open('wb') as err:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, '-c', CONSOLE.format(patience), 'launch', str(file)),
                ],
                stdout=out,
                stderr=err,
                env={
                    **os.environ,
                    MARKER: self.marker,
                    'ROS_LOG_DIR': str(directory / 'log'),
                    'TMPDIR': str(directory),
                },
                start_new_session=True,
            )

    def wait(self) -> int:
        code = self.process.wait(DEADLINE)
        # pytest shows it if the test fails.
        print(self.stdout, self.stderr, sep='\n')
        return code

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    @property
    def stdout(self) -> str:
        return self.out.read_text()

    @property
    def stderr(self) -> str:
        return self.err.read_text()

    def await_text(self, text: str, count: int = 1) -> None:
        """Wait until the output has a text at least ``count`` times."""
        until(lambda: (self.stdout + self.stderr).count(text) >= count, f'{text!r} in the output')

    def relatives(self) -> list[int]:
        """Return the pids of all processes that stem from this launch, without itself."""
        found = []
        for path in Path('/proc').iterdir():
            if path.name.isdigit() and int(path.name) != self.process.pid:
                with contextlib.suppress(OSError):
                    if f'{MARKER}={self.marker}'.encode() in (path / 'environ').read_bytes():
                        found.append(int(path.name))
        return found

    def await_no_relatives(self) -> None:
        until(lambda: not self.relatives(), 'the end of all processes')


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f'no {what} within {DEADLINE} s')
        time.sleep(0.02)


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Launch]]:
    running: list[Launch] = []

    def start(body: str, patience: float = 5.0) -> Launch:
        directory = tmp_path / str(len(running))
        directory.mkdir()
        running.append(Launch(directory, body, patience))
        return running[-1]

    yield start
    for each in running:
        each.process.kill()
        each.process.wait()
        for pid in each.relatives():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


StartLaunch = Callable[..., Launch]


def polite(name: str, *, code: int = 0, attributes: str = '') -> str:
    return (
        f'<executable cmd="PYTHON DIR/polite.py {code}" name="{name}" output="screen" '
        f'{attributes}/>'
    )


def test_all_processes_end_with_0(launch: StartLaunch) -> None:
    run = launch('<executable cmd="true"/><executable cmd="true"/>')
    assert run.wait() == 0
    assert run.stdout.count('process has finished cleanly [pid ') == 2
    assert re.search(r'^\[INFO\] \[true-1\]: process started with pid \[\d+\]$', run.stdout, re.M)
    assert run.stderr == ''


def test_first_failure_is_the_exit_code_and_others_go_on(launch: StartLaunch) -> None:
    run = launch(
        '<executable cmd="sh -c \'exit 7\'"/>'
        '<executable cmd="sh -c \'sleep 0.5; echo still here; exit 3\'" output="screen"/>'
    )
    assert run.wait() == 7
    assert '[sh-2] still here\n' in run.stdout
    assert 'process has died [pid ' in run.stderr
    assert "exit code 7, cmd 'sh -c 'exit 7'']" in run.stderr


def test_a_launch_ends_with_the_reason_of_its_failure(launch: StartLaunch) -> None:
    """Without the prefix of a logger, and as the last line."""
    run = launch(
        '<executable cmd="sh -c \'(echo [FATAL] [17.25] [boom]: no such file; echo)'
        ' &gt;&amp;2; exit 2\'"/>'
        '<executable cmd="sh -c \'sleep 0.5; exit 3\'"/>'
    )
    assert run.wait() == 2
    *_, last = run.stderr.splitlines()
    assert last == '[ERROR] [launch]: sh-1 failed with exit code 2: no such file'


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_everything_cleanly(launch: StartLaunch, number: int) -> None:
    run = launch(polite('one') + polite('two') + '<executable cmd="sleep 60"/>')
    run.await_text('ready', 2)
    run.send(number)
    assert run.wait() == 0
    assert '[one-1] leaving on SIGINT\n' in run.stdout
    assert '[two-2] leaving on SIGINT\n' in run.stdout
    assert '[INFO] [sleep-3]: process has left on SIGINT' in run.stdout
    assert run.stderr == ''
    run.await_no_relatives()


def test_failure_during_shutdown_counts(launch: StartLaunch) -> None:
    run = launch(polite('good') + polite('bad', code=5))
    run.await_text('ready', 2)
    run.send(signal.SIGINT)
    assert run.wait() == 5


def test_second_and_third_interrupt_change_nothing(launch: StartLaunch) -> None:
    run = launch('<executable cmd="PYTHON DIR/stubborn.py SIGINT" output="screen"/>', patience=1.0)
    run.await_text('ready')
    run.send(signal.SIGINT)
    run.await_text("sending signal 'SIGINT'")
    run.send(signal.SIGINT)
    run.await_text('SIGINT again: already shutting down')
    run.send(signal.SIGTERM)
    assert run.wait() == 0
    assert 'Traceback' not in run.stderr
    assert "escalating to 'SIGTERM'" in run.stderr
    run.await_no_relatives()


def test_stubborn_process_is_killed_and_that_is_a_failure(launch: StartLaunch) -> None:
    run = launch(
        '<executable cmd="PYTHON DIR/stubborn.py SIGINT SIGTERM" output="screen"/>', patience=0.2
    )
    run.await_text('ready')
    run.send(signal.SIGTERM)
    assert run.wait() == 128 + 9
    assert re.search(
        r"'0.2' seconds after receiving 'SIGINT', escalating to 'SIGTERM'", run.stderr
    )
    assert re.search(r"'0.2' seconds after receiving 'SIGTERM', escalating to 'SIGKI", run.stderr)
    run.await_no_relatives()


def test_on_exit_shutdown_ends_the_others(launch: StartLaunch) -> None:
    run = launch(polite('other') + '<executable cmd="sleep 1.5" on_exit="shutdown"/>')
    assert run.wait() == 0
    assert '[INFO] [launch]: shutting down: sleep-2 ended' in run.stdout
    assert run.stdout.count('process started with pid') == 2
    run.await_no_relatives()


def test_respawn_has_a_limit_whose_end_is_said(launch: StartLaunch) -> None:
    run = launch(
        '<executable cmd="sh -c \'echo again; kill -SEGV $$\'" output="screen" respawn="true" '
        'respawn_delay="0.05" respawn_max_retries="2"/>'
        '<executable cmd="true" respawn="true" respawn_max_retries="0"/>'
    )
    assert run.wait() == 128 + 11
    assert run.stdout.count('[sh-1] again\n') == 3
    ends = sorted(line for line in run.stderr.splitlines() if 'NOT started again' in line)
    assert ends[0].startswith('[ERROR] [sh-1]: the process has ended 3 times and is NOT')
    assert ends[1].startswith('[ERROR] [true-2]: the process has ended 1 times')


def test_shutdown_while_a_respawn_is_due(launch: StartLaunch) -> None:
    run = launch('<executable cmd="false" respawn="true" respawn_delay="60"/>')
    run.await_text('process has died')
    run.send(signal.SIGINT)
    assert run.wait() == 1
    assert run.stdout.count('process started with pid') == 1


def test_nothing_starts_if_anything_is_wrong(launch: StartLaunch) -> None:
    run = launch('<executable cmd="touch DIR/started"/>\n<executable cmd="no-such-program"/>')
    assert run.wait() == 2
    assert not (run.directory / 'started').exists()
    assert not (run.directory / 'log').exists()
    assert run.stderr.count('\n') == 1
    assert re.search(r'test\.launch\.xml:2: there is no executable .no-such-program', run.stderr)


def test_process_that_cannot_be_executed_is_a_failure(launch: StartLaunch, tmp_path: Path) -> None:
    program = tmp_path / 'program'
    program.write_bytes(b'\x7fELF nonsense')
    program.chmod(0o755)
    run = launch(f'<executable cmd="{program}"/><executable cmd="true"/>')
    assert run.wait() == 126
    assert '[ERROR] [program-1]: process cannot be started: ' in run.stderr
    assert '[true-2]: process has finished cleanly' in run.stdout


LINES = "sh -c 'echo first; echo error >&amp;2; printf last'"


@pytest.mark.parametrize(
    ('mode', 'on_screen', 'in_log'),
    [
        ('screen', 'first error last', ''),
        ('log', 'error', 'first error last'),
    ],
)
def test_output_modes(launch: StartLaunch, mode: str, on_screen: str, in_log: str) -> None:
    run = launch(f'<executable cmd="{LINES}" output="{mode}"/>')
    assert run.wait() == 0
    (log_directory,) = (run.directory / 'log').iterdir()
    log = (log_directory / 'launch.log').read_text()
    for line in ('first', 'error', 'last'):
        shown = run.stderr if line == 'error' else run.stdout
        assert (f'[sh-1] {line}\n' in shown) == (line in on_screen.split())
        assert bool(re.search(rf'^\d+\.\d+ \[sh-1\] {line}$', log, re.M)) == (
            line in in_log.split()
        )
    assert 'process started with pid' in log
    assert [path.name for path in log_directory.iterdir()] == ['launch.log']


def test_no_line_is_torn_or_lost(launch: StartLaunch) -> None:
    script = 'import sys; [print(sys.argv[1] * 100, i) for i in range(2000)]'
    body = ''.join(
        f'<executable cmd="PYTHON -c \'{script}\' {letter}" output="screen" name="{letter}"/>'
        for letter in 'ab'
    )
    run = launch(body)
    assert run.wait() == 0
    for number, letter in enumerate('ab', start=1):
        lines = [line for line in run.stdout.splitlines() if line.startswith(f'[{letter}-')]
        assert lines == [f'[{letter}-{number}] {letter * 100} {i}' for i in range(2000)]


def test_what_a_process_leaves_behind_is_ended(launch: StartLaunch) -> None:
    run = launch('<executable cmd="sh -c \'sleep 60 &amp; echo left\'" output="screen"/>')
    assert run.wait() == 0
    assert '[sh-1] left\n' in run.stdout
    run.await_no_relatives()


def test_grandchildren_end_with_the_launch(launch: StartLaunch) -> None:
    run = launch(
        '<executable output="screen" '
        'cmd="sh -c \'PYTHON DIR/polite.py &amp; PYTHON DIR/polite.py &amp; wait\'"/>'
    )
    run.await_text('ready', 2)
    run.send(signal.SIGTERM)
    run.wait()
    run.await_no_relatives()
    assert run.stdout.count('leaving on SIGINT') == 2


def test_daemon_outside_of_the_group_does_not_hold_the_launch(launch: StartLaunch) -> None:
    run = launch('<executable cmd="sh -c \'setsid yes &amp; sleep 0.2\'" output="screen"/>')
    assert run.wait() == 0
    # Nobody reads what it writes any more.
    run.await_no_relatives()


def test_launch_killed_leaves_no_orphans(launch: StartLaunch) -> None:
    run = launch(polite('one') + polite('two'))
    run.await_text('ready', 2)
    assert len(run.relatives()) == 2
    run.send(signal.SIGKILL)
    run.wait()
    run.await_no_relatives()


def test_lost_reader_ends_everything(launch: StartLaunch, tmp_path: Path) -> None:
    file = tmp_path / 'lost.launch.xml'
    file.write_text('<launch><executable cmd="yes" output="screen"/></launch>')
    console = 'from longreach_tools.cli import console; console()'
    line = f'{sys.executable} -c "{console}" launch {file} | head -n 3; exit ${{PIPESTATUS[0]}}'
    result = subprocess.run(
        ['bash', '-c', line],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        env={**os.environ, 'ROS_LOG_DIR': str(tmp_path / 'log')},
    )
    assert result.returncode == 0
    assert result.stdout.count('\n') == 3
    assert 'Traceback' not in result.stderr
    assert (
        'shutting down: the output is no longer read'
        in next((tmp_path / 'log').glob('*/launch.log')).read_text()
    )


def test_ends_of_lines(launch: StartLaunch) -> None:
    script = "import sys; sys.stdout.write(chr(13).join(['a', chr(10) * 2 + 'rest']))"
    run = launch(f'<executable cmd="PYTHON -c &quot;{script}&quot;" output="screen" name="p"/>')
    assert run.wait() == 0
    assert '[p-1] a\n[p-1] \n' in run.stdout
    assert '[p-1] rest\n' in run.stdout
