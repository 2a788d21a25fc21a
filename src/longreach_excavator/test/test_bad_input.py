"""Bad input: what is refused, what is left alone, and that no nonsense gets through."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import from_mapping, load_yaml
from longreach_dynamics.tables import read_table
from longreach_excavator.forces import PRESSURE_COLUMNS, printed_forces, read_forces
from longreach_excavator.parameters import ExcavatorParameters, default_file
from longreach_excavator.results import ExcavatorRun
from longreach_excavator.scenario import Scenario, dig_scenario
from longreach_excavator.simulation import simulate
from longreach_tools.testing import Outcome

SCENARIO = 'duration: 0.5\npose: dig\n'


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each single value."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))
        else:
            yield (*path, key)


# Entries without which a file is complete.
OPTIONAL = {'leakage', 'rate', 'supply'}


def with_entry(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(content)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


# --- the excavator file -----------------------------------------------------------------------


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf, None, [], {}, True])
def test_no_entry_of_the_file_takes_everything(value: Any) -> None:
    """Each single entry is refused by its name when it is no number, or no finite one."""
    content = load_yaml(default_file())
    for path in places(content):
        if value is None and path[-1] in OPTIONAL - {'leakage'}:
            continue
        name = next(key for key in reversed(path) if isinstance(key, str))
        with pytest.raises(InputError, match=name):
            from_mapping(ExcavatorParameters, with_entry(content, path, value))


def test_each_entry_of_the_file_must_be_there() -> None:
    content = load_yaml(default_file())
    for path in places(content):
        if isinstance(path[-1], str) and path[-1] not in OPTIONAL:
            with pytest.raises(InputError, match=f'{path[-1]} is missing'):
                from_mapping(ExcavatorParameters, with_entry(content, path, ...))


@pytest.mark.parametrize(
    ('path', 'value', 'text'),
    [
        ('bucket.inertia', 1.1e4, r'inertia = 11000 kg m\^2, allowed: up to 10 times mass length'),
        ('boom.mass', 1.0, r'inertia = 3920 kg m\^2, allowed'),
        ('arm.center_deg', 361.0, r'center_deg = 361.0, allowed: \[-360, 360\] deg'),
        ('bucket.beta_8_deg', 1e6, r'beta_8_deg = 1000000.0, allowed: \[-360, 360\] deg'),
        ('poses.reach.name', '', r"poses\[1\].name = '', allowed: a name"),
    ],
)
def test_impossible_links_and_poses(
    excavator: ExcavatorParameters, path: str, value: Any, text: str
) -> None:
    with pytest.raises(InputError, match=text):
        excavator.with_value(path, value)


# --- files of forces --------------------------------------------------------------------------


def pressures(tmp_path: Path, *values: float) -> Path:
    file = tmp_path / 'pressures.csv'
    rows = [','.join(map(repr, (float(t), *values))) for t in range(9)]
    file.write_text('\n'.join([','.join(('time', *PRESSURE_COLUMNS)), *rows]), encoding='utf-8')
    return file


def test_pressures_are_absolute(tmp_path: Path, excavator: ExcavatorParameters) -> None:
    file = pressures(tmp_path, 1e7, 1e7, 1e7, 1e6, -1.0, 1e6)
    with pytest.raises(InputError, match=r'a pressure of -1 Pa, allowed: from 0 on'):
        read_forces(file, excavator)
    assert read_forces(pressures(tmp_path, 1e7, 0, 0, 0, 0, 0), excavator).end == 8.0


def test_pressures_in_bar_are_noticed(tmp_path: Path, excavator: ExcavatorParameters) -> None:
    file = pressures(tmp_path, 120.0, 80.0, 290.0, 5.0, 5.0, 60.0)
    with pytest.raises(InputError, match=r'no pressure is above 290 Pa, .* pressures are in Pa'):
        read_forces(file, excavator)


def test_trend_lines_end_with_the_measurement(excavator: ExcavatorParameters) -> None:
    """Polynomials of order six: at 10 s they are 33 MN."""
    ends = printed_forces().at(np.array([7.0, 10.0, 1e6]))
    assert np.ptp(ends, axis=0).max() == 0.0
    scenario = Scenario(duration=7.5, pose='dig', mode='printed')
    with pytest.raises(InputError, match=r'duration = 7.5 s, allowed with the trend lines .* 7 s'):
        simulate(excavator, scenario)


@pytest.mark.parametrize(
    ('times', 'text'),
    [
        ('0,1e300,2e300', r':3: time = 1e\+300 s, allowed: \[-1e\+12, 1e\+12\] s'),
        ('0,1e-300,2e-300', r':3: time = 1e-300, .* of the row before by 1e-09 s or more'),
        ('1700000000.5,1700000000.4', r'1700000000.4, allowed: above 1700000000.5 .* sort'),
    ],
)
def test_times_that_no_clock_gives(tmp_path: Path, times: str, text: str) -> None:
    file = tmp_path / 'times.csv'
    file.write_text('time\n' + times.replace(',', '\n'), encoding='utf-8')
    with pytest.raises(InputError, match=text):
        read_table(file)


# --- the command line -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('--mode', 'printed', '--sample-time', 0.1), '--sample-time = 0.1 s, allowed with mode'),
        (('--sample-time', 0.5), 'mode: hydraulic and a sweep: up to 0.1 s'),
        (('--mode', 'printed', '--duration', 100), 'up to 7 s'),
    ],
)
def test_rows_too_far_apart(capsys: Any, words: tuple[Any, ...], text: str) -> None:
    Outcome(capsys, 'excavator', 'dig', *words).refused(text)


def test_a_run_too_long_for_its_tables_is_refused(capsys: Any, tmp_path: Path) -> None:
    file = tmp_path / 'long.yaml'
    file.write_text(SCENARIO.replace('0.5', '1.0e+6'), encoding='utf-8')
    Outcome(capsys, 'excavator', 'run', file, '--sample-time', 0.1).refused(
        'duration = 1e+06 s with sample_time = 0.1 s gives 10000000 rows of'
    )


def test_long_samples_are_allowed_where_nothing_is_looked_for(capsys: Any, tmp_path: Path) -> None:
    file = tmp_path / 'rest.yaml'
    file.write_text(SCENARIO, encoding='utf-8')
    words = ('run', file, '--sample-time', 0.5, '--format', 'json')
    assert Outcome(capsys, 'excavator', *words).json['duration_s'] == 0.5


def test_what_is_read_is_not_replaced(capsys: Any, tmp_path: Path) -> None:
    machine, scenario = tmp_path / 'machine.yaml', tmp_path / 'scenario.yaml'
    machine.write_bytes(default_file().read_bytes())
    scenario.write_text(SCENARIO, encoding='utf-8')
    forces = tmp_path / 'forces.csv'
    forces.write_text('time,force_boom,force_arm,force_bucket\n0,0,0,0\n9,0,0,0\n')
    given = tmp_path / 'given.yaml'
    given.write_text(SCENARIO + 'mode: printed\nforces: forces.csv\n', encoding='utf-8')
    motion = tmp_path / 'motion.csv'
    motion.write_text('time,theta_2,theta_3,theta_4\n0,0,-1,0\n', encoding='utf-8')
    (tmp_path / 'link.csv').symlink_to(motion)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    for words in (
        ('dig', '--duration', 0.1, '--file', machine, '--csv', machine),
        ('dig', '--mode', 'printed', '--forces', forces, '--csv', forces),
        ('run', scenario, '--csv', scenario),
        ('run', given, '--csv', forces),
        ('inverse', '--motion', motion, '--csv', tmp_path / 'link.csv'),
        ('cohesion', '--data', motion, '--csv', motion),
    ):
        outcome = Outcome(capsys, 'excavator', *words)
        outcome.refused('is one of the inputs; give another place')
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    'words', [('--mode', 'printed'), ('--pose', 'reach'), ('--depth', 'surface')]
)
def test_arguments_that_a_scenario_would_replace(
    capsys: Any, tmp_path: Path, words: tuple[str, str]
) -> None:
    data, scenario = tmp_path / 'data.csv', tmp_path / 'scenario.yaml'
    data.write_text('theta_4\n0.1\n', encoding='utf-8')
    scenario.write_text(SCENARIO, encoding='utf-8')
    words = ('cohesion', '--data', data, '--scenario', scenario, *words)
    Outcome(capsys, 'excavator', *words).refused(f'{words[-2]} {words[-1]} with --scenario')


def test_a_run_out_of_balance_is_no_result(
    capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / 'run.csv'
    for error in (0.5, math.nan):
        monkeypatch.setattr(ExcavatorRun, 'energy_error', lambda _, error=error: error)
        outcome = Outcome(capsys, 'excavator', 'dig', '--duration', 0.1, '--csv', file)
        outcome.refused(f'energy balance of the run is wrong by a share of {error}', code=1)
        assert not list(tmp_path.iterdir())


# --- no nonsense ------------------------------------------------------------------------------


@pytest.mark.parametrize('gravity', [0.0, 1e-9, 9.81])
def test_machine_at_rest_is_in_balance(excavator: ExcavatorParameters, gravity: float) -> None:
    result = simulate(excavator.replace(gravity=gravity), Scenario(duration=1.0, pose='tucked'))
    assert np.ptp(result.states[:, :3], axis=0).max() < 1e-12
    assert result.energy_error() < 1e-9


def test_bucket_on_its_way_has_not_stalled(excavator: ExcavatorParameters) -> None:
    """However few rows there are."""
    for sample_time in (0.005, 1.5, 3.0):
        for cohesion, duration, stalled in ((15e3, 3.0, False), (30e3, 6.0, True)):
            scenario = dig_scenario(cohesion=cohesion, duration=duration)
            result = simulate(excavator, scenario, sample_time=sample_time)
            assert result.stalled() == stalled


@pytest.mark.parametrize('mode', ['hydraulic', 'printed'])
def test_harder_soil_is_slower(excavator: ExcavatorParameters, mode: str) -> None:
    step = 1e-3 if mode == 'printed' else 5e-3
    results = [
        simulate(excavator, dig_scenario(mode, cohesion), sample_time=step)
        for cohesion in (0.0, 5e3, 1e4, 1.7e4)
    ]
    assert results[0].column('work_soil')[-1] == 0.0
    for softer, harder in itertools.pairwise(results):
        before, after = softer.time_to_sweep(), harder.time_to_sweep()
        assert before is not None
        assert after is not None
        assert after > before
        assert harder.column('soil_force').max() > softer.column('soil_force').max()
        assert harder.column('work_soil')[-1] > softer.column('work_soil')[-1]


@pytest.mark.parametrize('scale', [0.5, 2.0])
def test_machine_of_another_size_is_slower_in_proportion(
    excavator: ExcavatorParameters, scale: float
) -> None:
    """Without gravity and soil, lengths and times scale alike; pressures and speeds stay."""
    powers = {
        'm': 1,
        'kg': 3,
        'kg m^2': 5,
        'm^2': 2,
        'm^3': 3,
        's': 1,
        'N s/m': 2,
        'N/m': 1,
    }

    def scaled(value: Any, unit: str = '') -> Any:
        if isinstance(value, tuple):
            return tuple(scaled(item, unit) for item in value)
        if not dataclasses.is_dataclass(value):
            return value * scale ** powers[unit] if unit in powers else value
        fields = dataclasses.fields(value)
        changed = {f.name: scaled(getattr(value, f.name), f.metadata['rule'].unit) for f in fields}
        return dataclasses.replace(value, **changed)  # type: ignore[type-var]

    weightless = excavator.replace(gravity=0.0)
    first = simulate(weightless, dig_scenario(cohesion=0.0, duration=0.5), 1e-3, 1e-3)
    step = 1e-3 * scale
    other = simulate(
        scaled(weightless), dig_scenario(cohesion=0.0, duration=0.5 * scale), step, step
    )
    np.testing.assert_allclose(other.states[:, :3], first.states[:, :3], atol=1e-9)
    np.testing.assert_allclose(
        other.column('pin_force_bucket') / scale**2, first.column('pin_force_bucket'), atol=1e-3
    )
