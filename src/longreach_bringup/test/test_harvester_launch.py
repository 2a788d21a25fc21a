"""The shipped launch file of the harvester, started as a user would, from the outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from longreach_harvester.parameters import default_file
from longreach_tools.testing import Outcome, launch

REALISTIC = default_file().parent / 'harvester_realistic.yaml'


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('scenario', 'duration', 'words', 'options'),
    [
        ('tip', 3.0, ('controller:=true', 'lockstep:=true'), ()),
        ('sine', 3.0, (), ()),
        (
            'tip',
            2.0,
            ('controller:=true', 'lockstep:=true', 'sensors:=typical'),
            ('--sensors', 'typical'),
        ),
        ('open_loop', 9.0, ('model:=reduced',), ('--model', 'reduced')),
        ('tip', 5.0, ('switching:=false',), ('--switching', 'off')),
        ('open_loop', 4.0, (f'file:={REALISTIC}',), ('--file', REALISTIC)),
    ],
)
def test_a_bag_equals_the_library(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    scenario: str,
    duration: float,
    words: tuple[str, ...],
    options: tuple[str | Path, ...],
) -> None:
    fast = ('real_time_factor:=0.0', f'duration:={duration}', 'record:=bag')
    with launch('harvester', tmp_path, f'scenario:={scenario}', *fast, *words) as running:
        assert running.wait() == 0, running.text()
    called = ('compare', tmp_path / 'bag', '--scenario', scenario, '--format', 'json')
    found = Outcome(capsys, 'harvester', *called, *options).json
    assert found['same']
    assert found['compared_until'] == duration
    assert set(found['differences'].values()) == {0.0, round(duration / 0.01) + 1}
    # With both axes of a head that hangs, and their rates.
    assert len(found['differences']) == (30 if REALISTIC in options else 26)
    assert found['training']['tip_path'] > 0.1
    # Another run is no such recording.
    other = Outcome(capsys, 'harvester', *called, *options, '--step', 0.0005)
    assert other.code == 1
