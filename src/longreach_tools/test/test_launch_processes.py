"""How `longreach launch` starts, shows and ends real processes; each launch is a process."""

import re
import signal
import subprocess
import sys

import pytest

from longreach_tools import testing

# With another time from SIGINT to SIGTERM and SIGKILL [s].
CONSOLE = """
{}
from longreach_tools.launch import _processes
from longreach_tools.cli import console
_processes.PATIENCE = {}
console()
"""
# Ignores some signals, and leaves on others with an exit code.
PROGRAM = """
import os, signal, sys, time
def leave(number, frame):
    os.write(1, f'leaving on {signal.Signals(number).name}\\n'.encode())
    sys.exit(int(sys.argv[1]))
for name in ('SIGINT', 'SIGTERM'):
    signal.signal(getattr(signal, name), signal.SIG_IGN if name in sys.argv else leave)
os.write(1, b'ready\\n')
while True:
    time.sleep(60)
"""


@pytest.fixture
def launch(tmp_path, monkeypatch):
    """Return a function that starts a launch file with some contents."""
    running = []
    (tmp_path / 'program.py').write_text(PROGRAM)
    monkeypatch.setenv('TMPDIR', str(tmp_path))

    def start(body, patience=5.0, before=''):
        command = [sys.executable, '-c', CONSOLE.format(before, patience)]
        monkeypatch.setattr(testing, '_LONGREACH', command)
        text = f'<launch>{body}</launch>'.replace('PYTHON', f'{sys.executable} -u')
        (tmp_path / 'test.launch.xml').write_text(text.replace('DIR', str(tmp_path)))
        running.append(testing.Launch('./test.launch.xml', tmp_path))
        return running[-1]

    yield start
    for each in running:
        each.close()


def program(name, *words):
    given = ' '.join(map(str, words or (0,)))
    return f'<executable cmd="PYTHON DIR/program.py {given}" name="{name}" output="screen"/>'


def shell(script, attributes='output="screen"'):
    return f'<executable cmd="sh -c \'{script}\'" {attributes}/>'


def is_ready(run, count=1):
    run.until(lambda: run.text().count('ready\n') >= count, 'start')


@pytest.mark.parametrize(
    ('body', 'code', 'said'),
    [
        (
            '<executable cmd="true"/><executable cmd="true"/>',
            0,
            [r'^\[INFO\] \[true-1\]: process started with pid \[\d+\]$', r'\[true-2\].*cleanly'],
        ),
        # The first failure counts, and the others go on.
        (
            shell('exit 7', '') + shell('sleep 0.5; echo still here; exit 3'),
            7,
            [r'\[sh-1\]: process has died \[pid .* 7, cmd .sh -c .exit 7', r'\[sh-2\] still here'],
        ),
        # Its reason is the last line, without the prefix of a logger.
        (
            shell('(echo [FATAL] [17.25] [boom]: no such file; echo) &gt;&amp;2; exit 2', '')
            + shell('sleep 0.5; exit 3'),
            2,
            [r'\[ERROR\] \[launch\]: sh-1 failed with exit code 2: no such file\n\Z'],
        ),
        (
            shell(
                'echo again; kill -SEGV $$',
                'output="screen" respawn="true" respawn_delay="0.05" respawn_max_retries="2"',
            )
            + '<executable cmd="true" respawn="true" respawn_max_retries="0"/>',
            128 + 11,
            [
                r'(?s)(\[sh-1\] again\n.*){3}',
                r'\[ERROR\] \[sh-1\]: has ended 3 times and is NOT started again',
                r'\[ERROR\] \[true-2\]: has ended 1 times',
            ],
        ),
        ('<executable cmd="DIR/nonsense"/>', 126, [r'process cannot be started: ']),
        # What a process leaves behind is ended, but for daemons with a session of their own.
        (shell('sleep 60 &amp; echo left'), 0, [r'\[sh-1\] left']),
        (shell('setsid sleep 2 &amp; sleep 0.2'), 0, []),
        (
            program('other') + '<executable cmd="sleep 1.5" on_exit="shutdown"/>',
            0,
            [r'\[INFO\] \[launch\]: shutting down: sleep-2 ended'],
        ),
        # A carriage return and an unfinished line.
        (
            shell('printf &quot;a&#13;&#10;&#10;rest&quot;'),
            0,
            [r'\[sh-1\] a\n\[sh-1\] \n', r'^\[sh-1\] rest$'],
        ),
    ],
)
def test_end_of_a_launch(launch, tmp_path, body, code, said):
    (tmp_path / 'nonsense').write_bytes(b'\x7fELF nonsense')
    (tmp_path / 'nonsense').chmod(0o755)
    run = launch(body)
    assert run.process.wait(testing.DEADLINE) == code, run.text()
    for pattern in said:
        assert re.search(pattern, run.text(), re.MULTILINE), (pattern, run.text())
    assert ('[ERROR]' in run.text()) == bool(code)
    run.until(lambda: not run.alive(), 'end of all processes')


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_everything_cleanly(launch, number):
    # The second one has children that get the signal as well.
    family = shell('PYTHON DIR/program.py 0 &amp; PYTHON DIR/program.py 0 &amp; wait')
    run = launch(program('one') + family + '<executable cmd="sleep 60"/>')
    is_ready(run, 3)
    run.process.send_signal(number)
    assert run.wait() == 0
    assert run.text().count('leaving on SIGINT\n') == 3
    assert '[INFO] [sleep-3]: process has left on SIGINT' in run.text()
    assert '[ERROR]' not in run.text()


def test_failure_during_shutdown_counts(launch):
    run = launch(program('good') + program('bad', 5))
    is_ready(run, 2)
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 5


def test_further_signals_change_nothing(launch):
    run = launch(program('stubborn', 0, 'SIGINT'), patience=1.0)
    is_ready(run)
    run.process.send_signal(signal.SIGINT)
    run.says("sending signal 'SIGINT'")
    run.process.send_signal(signal.SIGINT)
    run.says('SIGINT again: already shutting down')
    run.process.send_signal(signal.SIGTERM)
    assert run.wait() == 0
    assert "'1' seconds after receiving 'SIGINT', escalating to 'SIGTERM'" in run.text()


def test_stubborn_process_is_killed_and_that_is_a_failure(launch):
    run = launch(program('stubborn', 0, 'SIGINT', 'SIGTERM'), patience=0.2)
    is_ready(run)
    run.process.send_signal(signal.SIGTERM)
    assert run.wait() == 128 + 9
    assert "'0.2' seconds after receiving 'SIGTERM', escalating to 'SIGKILL'" in run.text()


def test_shutdown_while_a_respawn_is_due(launch):
    run = launch('<executable cmd="false" respawn="true" respawn_delay="60"/>')
    run.says('process has died')
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 1
    assert run.text().count('process started with pid') == 1


def test_nothing_starts_if_anything_is_wrong(launch, tmp_path):
    run = launch('<executable cmd="touch DIR/started"/>\n<executable cmd="no-such-program"/>')
    assert run.wait() == 2
    assert not (tmp_path / 'started').exists()
    (line,) = run.text().splitlines()
    assert re.search(r'test\.launch\.xml:2: there is no executable .no-such-program', line)


def test_no_line_is_torn_or_lost(launch):
    script = 'import sys; [print(sys.argv[1] * 100, i) for i in range(2000)]'
    run = launch(
        ''.join(
            f'<executable cmd="PYTHON -c \'{script}\' {letter}" output="screen" name="{letter}"/>'
            for letter in 'ab'
        )
    )
    assert run.wait() == 0
    for number, letter in enumerate('ab', start=1):
        lines = [line for line in run.text().splitlines() if line.startswith(f'[{letter}-')]
        assert lines == [f'[{letter}-{number}] {letter * 100} {i}' for i in range(2000)]


def test_a_line_without_end_is_passed_on_in_parts(launch):
    script = 'print(chr(120) * 3000000, end=str())'
    run = launch(f'<executable cmd="PYTHON -c \'{script}\'" name="a"/>')
    assert run.wait() == 0
    parts = re.findall('x{100,}', run.text())
    assert sum(map(len, parts)) == 3_000_000
    assert max(map(len, parts)) < 1_200_000


def test_launch_killed_leaves_no_orphans(launch):
    run = launch(program('one') + program('two'))
    is_ready(run, 2)
    run.process.kill()
    run.process.wait()
    run.until(lambda: not run.alive(), 'end of all processes')


def test_lost_reader_ends_everything(tmp_path):
    file = tmp_path / 'lost.launch.xml'
    file.write_text('<launch><executable cmd="yes" output="screen"/></launch>')
    console = 'from longreach_tools.cli import console; console()'
    line = f'{sys.executable} -c "{console}" launch {file} | head -n 3; exit ${{PIPESTATUS[0]}}'
    call = ['bash', '-c', line]
    result = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout.count('\n')) == (0, 3)
    assert 'Traceback' not in result.stderr


# As a signal just before the wait: another thread receives it.
ELSEWHERE = """
import signal, threading, time
threading.Thread(target=time.sleep, args=(60.0,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
"""


def test_an_end_is_noticed_though_its_signal_does_not_interrupt_the_wait(launch):
    run = launch(shell('exec &gt;&amp;- 2&gt;&amp;-; sleep 0.3', ''), before=ELSEWHERE)
    assert run.wait() == 0
    assert 'process has finished cleanly' in run.text()
