"""
A keyboard in a terminal in place of sticks; no ROS here.

A terminal tells which key was pressed, and repeats a key that is held after about half a second,
but does not tell when it is let go: what a key asks for ends some time after it came last.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from longreach_dynamics.errors import InputError
from longreach_machine.teleoperation import FUNCTIONS

# Function and sign of each key; positive is left, up, out, in. As sticks in the ISO pattern: the
# left hand has swing and arm, the right hand boom and tool.
_ASKED = {
    'w': ('arm', 1.0),
    's': ('arm', -1.0),
    'a': ('swing', 1.0),
    'd': ('swing', -1.0),
    'i': ('boom', -1.0),
    'k': ('boom', 1.0),
    'j': ('tool', 1.0),
    'l': ('tool', -1.0),
}
# The arrow keys are those of the right hand.
_ARROWS = {'\x1b[A': 'i', '\x1b[B': 'k', '\x1b[D': 'j', '\x1b[C': 'l'}
_ARROWS |= {key.replace('[', 'O'): name for key, name in _ARROWS.items()}
# A key or another event that a terminal sends as several characters (ECMA-48), such as F4, or an
# arrow with Shift; and the begin of one, of which the rest comes with the next read.
_SEQUENCE = re.compile(r'\x1b(\[[0-?]*[ -/]*[@-~]|O.)', re.DOTALL)
_BEGUN = re.compile(r'\x1b(\[[0-?]*[ -/]*|O)?$')
# How long a key acts [s]: until a terminal repeats it for the first time, and between repetitions.
_FIRST, _NEXT = 0.55, 0.15
_LEAST, _SHARE = 0.1, 0.1

HELP = """\
w s    stick out, in         a d    swing left, right
i k    boom down, up         j l    tool; the arrow keys are i k j l
+ -    faster, slower        t      joint by joint, or the tip
space  stop                  q      quit"""


class Keys:
    """What keys ask for: ``speed`` of a stick, above 0 to 1, ``by_tip`` or by joints, ``quit``."""

    def __init__(self, speed: float = 0.5, by_tip: bool = False) -> None:
        self.speed, self.by_tip, self.quit = speed, by_tip, False
        self._until: dict[str, tuple[float, float]] = {}
        self._begun = ''

    def press(self, text: str, now: float) -> None:
        """Take what a terminal sent, at a time [s]; unknown keys are ignored."""
        text = self._begun + text
        begun = _BEGUN.search(text)
        self._begun = begun.group() if begun else ''
        text = text.removesuffix(self._begun)
        for key in _SEQUENCE.sub(lambda found: _ARROWS.get(found.group(), ''), text).lower():
            if key in _ASKED:
                name, sign = _ASKED[key]
                sign_before, until = self._until.get(name, (0.0, 0.0))
                repeated = sign_before == sign and now < until
                self._until[name] = (sign, now + (_NEXT if repeated else _FIRST))
            elif key == ' ':
                self._until.clear()
            elif key in '+=':
                self.speed = min(1.0, round(self.speed + _SHARE, 3))
            elif key == '-':
                self.speed = max(_LEAST, round(self.speed - _SHARE, 3))
            elif key == 't':
                self._until.clear()
                self.by_tip = not self.by_tip
            elif key == 'q':
                self.quit = True

    def asked(self, now: float) -> dict[str, float]:
        """Return what is asked for at a time [s], -1 to 1 by FUNCTIONS."""
        found = dict.fromkeys(FUNCTIONS, 0.0)
        for name, (sign, until) in self._until.items():
            if now < until:
                found[name] = sign * self.speed
        return found


@contextlib.contextmanager
def terminal_keys(stream: TextIO | None = None) -> Iterator[Callable[[], str]]:
    """Yield a function that returns the keys pressed since; InputError without a terminal."""
    # The terminal is as before afterwards, however the block ends: by an error, a signal, or its
    # own end (SIGHUP, for which the next read ends the process). Ctrl-C remains; Ctrl-Z, which
    # would leave the terminal without echo, does nothing.
    stream = sys.stdin if stream is None else stream
    if not stream.isatty():
        raise InputError('stdin is no terminal, allowed: a terminal, for the keys')
    file = stream.fileno()
    before = termios.tcgetattr(file)

    ended: list[int] = []

    def read() -> str:
        if ended:
            raise SystemExit(128 + ended[0])
        text = b''
        while select.select([file], [], [], 0.0)[0]:
            part = os.read(file, 1024)
            if not part:
                raise SystemExit(0)  # the terminal has gone
            text += part
        return text.decode(errors='ignore')

    # An exception in the handler might get lost in a callback of rclpy. Signals are for the main
    # thread, which a test is not.
    hangup: Any = None
    with contextlib.suppress(ValueError):
        hangup = signal.signal(signal.SIGHUP, lambda number, _: ended.append(number))
    try:
        tty.setcbreak(file)
        mode = termios.tcgetattr(file)
        mode[6][termios.VSUSP] = b'\0'
        termios.tcsetattr(file, termios.TCSANOW, mode)
        yield read
    finally:
        # What was typed and not read is not for the shell.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(file, termios.TCSAFLUSH, before)
        if hangup is not None:
            signal.signal(signal.SIGHUP, hangup)
