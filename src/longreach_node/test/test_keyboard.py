"""Keys in place of sticks, and a terminal that is as it was afterwards."""

import contextlib
import os
import pty
import select
import signal
import termios

import pytest

from longreach_node.keyboard import Keys, terminal_keys


@pytest.fixture
def terminal():
    """The person's end of a terminal, and the program's."""
    person, program = pty.openpty()
    with os.fdopen(program) as stream:
        yield person, stream
    os.close(person)


def moved(keys, now):
    return {name: value for name, value in keys.asked(now).items() if value}


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('w', {'arm': 0.5}),
        ('S', {'arm': -0.5}),
        ('ai', {'swing': 0.5, 'boom': -0.5}),
        ('\x1b[A', {'boom': -0.5}),
        ('\x1bOB', {'boom': 0.5}),
        ('\x1b[D', {'tool': 0.5}),
        ('xyz', {}),
        # An arrow with Shift or Ctrl, F1 to F4, Delete, F5, a window that gets the focus.
        ('\x1b[1;2A\x1b[1;5D\x1bOS\x1bOQ\x1b[3~\x1b[15~\x1b[I', {}),
        # Escape itself does not take the next key away.
        ('\x1bw', {'arm': 0.5}),
        ('wsw', {'arm': 0.5}),
        ('w ', {}),
        ('++k', {'boom': 0.7}),
        ('-' * 20 + 'd', {'swing': -0.1}),
        ('+' * 20 + 'd', {'swing': -1.0}),
    ],
)
def test_what_keys_ask_for(text, expected):
    keys = Keys()
    keys.press(text, 1.0)
    assert moved(keys, 1.01) == expected


def test_a_key_may_come_in_two_reads():
    """The end of an arrow is no letter."""
    for parts in (('\x1b', '[A'), ('\x1b[', 'A'), ('\x1bO', 'A')):
        keys = Keys()
        for part in parts:
            keys.press(part, 1.0)
        assert moved(keys, 1.01) == {'boom': -0.5}


def test_a_held_key_acts_until_shortly_after_it_is_let_go():
    keys = Keys()
    keys.press('w', 0.0)
    # A terminal repeats it after half a second, then 30 times per second.
    times = [0.5 + 0.033 * k for k in range(30)]
    for time in times:
        assert moved(keys, time) == {'arm': 0.5}
        keys.press('w', time)
    assert moved(keys, times[-1] + 0.1) == {'arm': 0.5}
    assert moved(keys, times[-1] + 0.2) == {}
    # A tap ends by itself, and the other direction at once.
    keys.press('w', 10.0)
    keys.press('s', 10.1)
    assert moved(keys, 10.2) == {'arm': -0.5}
    assert moved(keys, 10.7) == {}


def test_changing_what_keys_move_stops_and_q_quits():
    keys = Keys()
    keys.press('wt', 0.0)
    assert keys.by_tip
    assert moved(keys, 0.01) == {}
    assert not keys.quit
    keys.press('tq', 0.1)
    assert keys.quit
    assert not keys.by_tip


def test_keys_come_one_by_one_without_echo(terminal):
    person, stream = terminal
    with terminal_keys(stream) as read:
        assert read() == ''
        os.write(person, b'w\x1b[A')
        assert select.select([stream], [], [], 30.0)[0]
        assert read() == 'w\x1b[A'
        flags = termios.tcgetattr(stream.fileno())
        assert not flags[3] & (termios.ECHO | termios.ICANON)
        assert flags[3] & termios.ISIG, 'Ctrl-C remains'


@pytest.mark.parametrize('error', [None, KeyboardInterrupt, SystemExit, ValueError])
def test_the_terminal_is_as_before_however_it_ends(terminal, error):
    person, stream = terminal
    before = termios.tcgetattr(stream.fileno())
    handler = signal.getsignal(signal.SIGHUP)
    with contextlib.suppress(KeyboardInterrupt, SystemExit, ValueError), terminal_keys(stream):
        assert termios.tcgetattr(stream.fileno()) != before
        os.write(person, b'rm -rf\n')
        assert select.select([stream], [], [], 30.0)[0]
        if error is not None:
            raise error
    assert termios.tcgetattr(stream.fileno()) == before
    assert signal.getsignal(signal.SIGHUP) == handler
    with terminal_keys(stream) as read:
        assert read() == '', 'keys that were not read are not left for the shell'


def test_a_terminal_that_hangs_up_ends_it(terminal):
    _, stream = terminal
    before = termios.tcgetattr(stream.fileno())
    with terminal_keys(stream) as read:
        os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(SystemExit, match='129'):
            read()
    assert termios.tcgetattr(stream.fileno()) == before
