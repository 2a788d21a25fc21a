"""The shipped launch file of flexible links, started as a user would, from the outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from longreach_symbolic.links import default_file
from longreach_tools.testing import Outcome, contents, launch


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('scenario', 'words', 'options'),
    [
        ('circle', (), ()),
        ('swing', ('controller:=false',), ()),
        ('circle', ('file:=mine.yaml', 'namespace:=north'), ('--file', '--namespace')),
    ],
)
def test_a_bag_equals_the_library(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    scenario: str,
    words: tuple[str, ...],
    options: tuple[str, ...],
) -> None:
    # Other numbers need no compilation.
    file = tmp_path / 'mine.yaml'
    file.write_text(default_file().read_text().replace('2.94', '1.5'))
    fast = (f'scenario:={scenario}', 'real_time_factor:=0.0', 'duration:=3.0', 'record:=bag')
    with launch('links', tmp_path, *fast, *words) as running:
        assert running.wait() == 0, running.text()
    (drawn,) = [m for name, m in contents(tmp_path / 'bag').items() if name.endswith('/shape')]
    assert [stamp for stamp, _ in drawn] == [k * 35_000_000 for k in range(len(drawn))]
    assert len(drawn) == 86
    called = ['compare', tmp_path / 'bag', '--scenario', scenario, '--format', 'json']
    for name in options:
        called += [name, {'--file': file, '--namespace': 'north'}[name]]
    found = Outcome(capsys, 'links', *called).json
    assert found['same']
    assert found['compared_until'] == 3.0
    assert set(found['differences'].values()) == {0.0, 601}
    # Another run is no such recording.
    called[3] = 'swing' if scenario == 'circle' else 'circle'
    assert Outcome(capsys, 'links', *called).code == 1


@pytest.mark.slow
def test_an_unstable_loop_is_one_error(tmp_path: Path) -> None:
    (tmp_path / 'arm.yaml').write_text(
        '{drives: [{gain: 125, rate_gain: 25}], sample_time: 0.001}'
    )
    with launch('links', tmp_path, 'arm:=arm.yaml', 'controller:=false') as running:
        assert running.wait() == 2
        assert 'the digital control loop is unstable: spectral radius' in running.text()
        assert 'stable with sample_time = ' in running.text()
