"""Commands that talk to a crane that runs; ``set-point`` is tested with the other commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from longreach_crane.plant_node import PlantNode
from longreach_crane.spec import CRANE
from longreach_dynamics.errors import LongreachError
from longreach_node.testing import Bench, bench
from longreach_tools.machine_command import configure


@pytest.fixture
def b() -> Iterator[Bench]:
    with bench('-r', '__ns:=/crane') as tests:
        yield tests


def run(*words: str) -> None:
    """Run a command, here."""
    parser = argparse.ArgumentParser()
    configure(CRANE, parser)
    arguments = parser.parse_args(words)
    arguments.run(arguments)


@pytest.mark.slow
def test_time_stands_still_steps_and_goes_on(b: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    plant = b.add(PlantNode)

    def do(*words: str) -> str:
        b.end(b.begin(run, *words, '--timeout', '10'))
        return capsys.readouterr().out

    b.until(lambda: plant.sample > 3, 'a running crane')
    assert do('pause') == f'paused at {plant.time:g} s\n'
    count = plant.sample
    b.settle()
    assert plant.sample == count
    assert do('step') == f'at {plant.time:g} s\n'
    assert plant.sample == count + 1
    assert do('reset') == 'at 0 s\n'
    assert plant.sample == 0
    assert do('resume') == 'running from 0 s\n'
    b.until(lambda: plant.sample > 3, 'a running crane')
    with pytest.raises(LongreachError, match=r'^/crane/plant/step: step needs a simulation'):
        do('step')


def test_nobody_is_there(b: Bench) -> None:
    b.add(PlantNode)
    error = r'^no service /moon/plant/pause after 0\.3 s; start one with longreach launch crane,'
    with pytest.raises(LongreachError, match=error):
        b.end(b.begin(run, 'pause', '--namespace', 'moon', '--timeout', '0.3'))
