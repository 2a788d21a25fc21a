"""A person at the keyboard drives a running harvester."""

import argparse
import json
import os
import pty
import sys
import termios
import time
from pathlib import Path

import pytest
from longreach_msgs.msg import ValveCommand

from longreach_dynamics.errors import LongreachError
from longreach_harvester.nodes import PlantNode
from longreach_harvester.remote import drive_harvester
from longreach_node.testing import bench
from longreach_tools.testing import Outcome


@pytest.fixture
def person(monkeypatch):
    """The person's end of a terminal that is stdin."""
    person, program = pty.openpty()
    with os.fdopen(program) as stream:
        monkeypatch.setattr(sys, 'stdin', stream)
        yield person
    os.close(person)


def words():
    usual = {'file': None, 'speed': 0.8, 'namespace': '/', 'timeout': 20.0, 'format': 'json'}
    return argparse.Namespace(**usual)


def holding(person):
    """Return what presses a key again after a while: a slow program may overlook a press."""
    latest = -1.0

    def press(key):
        nonlocal latest
        if time.monotonic() - latest > 0.5:
            latest = time.monotonic()
            os.write(person, key)

    return press


def open_valves(commands):
    return {name for c in commands for name, u in zip(c.name, c.spool, strict=True) if u}


@pytest.mark.parametrize('control', ['joints', 'tip'])
def test_keys_move_the_machine_and_the_end_closes_its_valves(person, capsys, control):
    before = termios.tcgetattr(sys.stdin.fileno())
    with bench() as b:
        plant = b.add(PlantNode)
        commands = b.listen(ValveCommand, 'valve_command')
        begun = b.begin(drive_harvester, words())
        b.until(lambda: not termios.tcgetattr(sys.stdin.fileno())[3] & termios.ECHO, 'keys')
        os.write(person, b't' * (control == 'tip'))
        press = holding(person)
        # Straight up, the tip needs the stick as well.
        moved = {'boom', 'stick'} if control == 'tip' else {'boom'}
        b.until(lambda: moved <= open_valves(commands) or press(b'k'), 'motion')
        # Nobody presses anything any more.
        b.until(lambda: not any(commands[-1].spool), 'spring back to zero')
        rising = plant.state.y[1] - plant.machine.scenario.angles[1]
        b.until(lambda: 'swing' in open_valves(commands) or press(b'd'), 'swing')
        os.write(person, b'q')
        assert b.end(begun) == 0
        b.until(lambda: not any(commands[-1].spool), 'closed valves')
    assert rising > 0.003
    assert termios.tcgetattr(sys.stdin.fileno()) == before
    assert ('stick' in open_valves(commands)) == (control == 'tip'), 'the tip goes straight up'
    out, err = capsys.readouterr()
    assert 'q      quit' in err
    figures = json.loads(out)['training']
    assert figures['tip_path'] > 0.01
    assert 0.0 < figures['moving_time'] < figures['time']


def test_another_who_commands_the_valves_ends_it(person):
    before = termios.tcgetattr(sys.stdin.fileno())
    with bench() as b:
        b.add(PlantNode)
        begun = b.begin(drive_harvester, words())
        b.until(lambda: not termios.tcgetattr(sys.stdin.fileno())[3] & termios.ECHO, 'keys')
        b.publisher(ValveCommand, 'valve_command')
        with pytest.raises(LongreachError, match='driver commands the valves on /valve_command'):
            b.end(begun)
    assert termios.tcgetattr(sys.stdin.fileno()) == before


def test_without_a_terminal_it_says_so_at_once(monkeypatch, capsys):
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, 'stdin', nothing)
        found = Outcome(capsys, 'harvester', 'drive')
    found.refused('stdin is no terminal, allowed: a terminal, for the keys')


def test_speeds_are_shares(person, capsys):
    found = Outcome(capsys, 'harvester', 'drive', '--speed', '1.5')
    found.refused('--speed = 1.5, allowed: (0, 1]')
