"""Scenarios: what they say of pose, soil, forces and valves, and how mistakes are refused."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.scenarios import ValveCommand
from longreach_excavator.machine import STEP, Excavator
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.scenario import SWEEP_DEG, Scenario, dig_scenario, load_scenario
from longreach_excavator.state import CLOSED

DIG = """
duration: 8.0
pose_deg: [20, -95, 39.45]
depth: swing
cohesion: 15.0e+3
surface: -1.2
sweep_deg: 108.9
loose: [boom]
valve_commands:
  - {time: 0.5, spools: [0, 0, 1]}
  - {time: 1.25, spools: [0.2, -0.2, 0.5]}
"""
MEASURED = """
duration: 0.2
pose: dig
mode: printed
forces: measured.csv
"""
ROWS = 'time,force_boom,force_arm,force_bucket\n0,1e5,2e4,3e4\n0.2,1e5,2e4,4e4\n'


def load_text(
    tmp_path: Path, text: str, excavator: ExcavatorParameters, step: float = STEP
) -> Scenario:
    file = tmp_path / 'scenario.yaml'
    file.write_text(text)
    return load_scenario(file, excavator, step)


# Files


def test_file_becomes_a_scenario(tmp_path: Path, excavator: ExcavatorParameters) -> None:
    assert load_text(tmp_path, DIG, excavator) == Scenario(
        duration=8.0,
        pose_deg=(20.0, -95.0, 39.45),
        depth='swing',
        cohesion=15e3,
        surface=-1.2,
        sweep_deg=108.9,
        loose=('boom',),
        valve_commands=(
            ValveCommand(0.5, (0.0, 0.0, 1.0)),
            ValveCommand(1.25, (0.2, -0.2, 0.5)),
        ),
    )


def test_forces_are_found_beside_the_scenario(
    tmp_path: Path, excavator: ExcavatorParameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'measured.csv').write_text(ROWS)
    elsewhere = tmp_path / 'elsewhere'
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    scenario = load_text(tmp_path, MEASURED, excavator)
    given = scenario.given_forces(excavator)
    assert given is not None
    assert given.at(np.array([0.1])) == pytest.approx(np.array([[1e5, 2e4, 3.5e4]]))
    absolute = MEASURED.replace('measured.csv', str(tmp_path / 'measured.csv'))
    assert load_text(elsewhere, absolute, excavator).given_forces(excavator) is not None


# What a scenario says


def test_dig_is_the_thesis(excavator: ExcavatorParameters) -> None:
    scenario = dig_scenario('hydraulic', 15e3)
    assert scenario.valve_commands == (ValveCommand(0.0, (0.0, 0.0, 1.0)),)
    assert (scenario.mode, scenario.sweep_deg, scenario.depth) == ('hydraulic', 108.9, 'swing')
    assert dig_scenario('printed').valve_commands == ()
    assert scenario.excavator(excavator).soil.cohesion == 15e3
    assert dig_scenario().excavator(excavator) is excavator
    # Half of the sweep is the angle in (5.7).
    assert pytest.approx(2.0 * 54.45) == SWEEP_DEG


def test_soil_begins_at_the_edge_of_the_bucket(excavator: ExcavatorParameters) -> None:
    scenario = dig_scenario()
    q = np.cumsum(excavator.pose('dig'))
    joint = 5.648 * math.sin(q[0]) + 2.889 * math.sin(q[1])
    edge = joint + 1.448 * math.sin(q[2])
    assert scenario.surface_height(excavator) == pytest.approx(edge, abs=1e-12)
    assert scenario.counted_joint(excavator) == pytest.approx(joint, abs=1e-12)
    assert math.isnan(scenario.replace(depth='surface').counted_joint(excavator))
    assert scenario.replace(surface=-3.0).surface_height(excavator) == -3.0
    assert scenario.replace(soil=False).surface_height(excavator) == -math.inf
    assert scenario.replace(surface=0.0).surface_height(excavator) == 0.0


def test_commands_hold_until_the_next(excavator: ExcavatorParameters) -> None:
    scenario = Scenario(
        duration=2.0,
        pose='dig',
        loose=('arm',),
        valve_commands=(ValveCommand(0.3, (0.1, 0.0, 0.2)), ValveCommand(0.7, (0.0, 0.0, 1.0))),
    )
    plant = Excavator(excavator, scenario)
    for time, spools in (
        (0.0, CLOSED.spools),
        (0.299, CLOSED.spools),
        (0.3, (0.1, 0.0, 0.2)),
        (0.1 + 0.2, (0.1, 0.0, 0.2)),
        (0.6999, (0.1, 0.0, 0.2)),
        (0.7, (0.0, 0.0, 1.0)),
        (1e4, (0.0, 0.0, 1.0)),
    ):
        command = plant.scenario_command(time, swept=False)
        assert command.spools == spools
        assert command.forces == (None, 0.0, None)
        assert plant.scenario_command(time, swept=True).spools == CLOSED.spools


# What is refused


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        ('duration: 8.0', 'duration: 0', 'duration = 0, allowed: (0, 1e+06] s'),
        ('duration: 8.0', 'duration: .nan', 'duration = nan, allowed: (0, 1e+06] s'),
        ('duration: 8.0', 'duration: 8.0005', 'duration = 8.0005 s, allowed: whole steps of 0.0'),
        ('duration: 8.0', '', 'duration is missing: length of the simulation [s]'),
        ('duration: 8.0', 'duration: 8.0\nspeed: 3', 'speed is unknown, allowed here: duration'),
        ('pose_deg: [20, -95, 39.45]', 'pose: flat', "pose = 'flat', allowed: dig | reach | t"),
        ('pose_deg: [20, -95, 39.45]', '', 'pose and pose_deg: allowed: one of them'),
        ('depth: swing', 'pose: dig', 'pose and pose_deg: allowed: one of them'),
        ('[20, -95, 39.45]', '[20, -95]', 'pose has 2 angles, allowed: 3'),
        ('[20, -95, 39.45]', '[20, -95, 80]', 'theta_4 (bucket) = 80 deg, allowed by the stroke'),
        ('[20, -95, 39.45]', '[20, -95, .inf]', 'pose_deg[2] = inf, allowed: (-inf, inf) deg'),
        ('depth: swing', 'depth: deep', "depth = 'deep', allowed: surface | swing"),
        ('depth: swing', 'mode: wet', "mode = 'wet', allowed: hydraulic | printed"),
        ('depth: swing', 'soil: 1', 'soil = 1, allowed: true | false'),
        ('depth: swing', 'forces: a.csv', 'forces belongs to mode: printed'),
        ('cohesion: 15.0e+3', 'cohesion: -1', 'cohesion = -1, allowed: [0, 1e+06] Pa'),
        ('surface: -1.2', 'surface: .inf', 'surface = inf, allowed: [-100, 100] m'),
        ('surface: -1.2', 'surface: low', "surface = 'low', allowed: a number"),
        ('sweep_deg: 108.9', 'sweep_deg: 361', 'sweep_deg = 361, allowed: [0, 360] deg'),
        ('[boom]', '[bucket, bukket]', "loose has 'bukket', allowed, each once: boom | arm | b"),
        ('[boom]', '[arm, arm]', "loose has 'arm', allowed, each once: boom | arm | bucket"),
        ('time: 0.5', 'time: 1.25', 'valve_commands[1].time = 1.25 s, allowed: after 1.25 s; so'),
        ('time: 0.5', 'time: -0.5', 'valve_commands[0].time = -0.5, allowed: [0, 1e+06] s'),
        ('time: 0.5', 'time: 0.0004', 'valve_commands[0].time = 0.0004 s, allowed: whole steps'),
        ('[0, 0, 1]', '[0, 0, 1.1]', 'valve_commands[0].spools[2] = 1.1, allowed: [-1, 1]'),
        ('[0, 0, 1]', '[0, 0, .nan]', 'valve_commands[0].spools[2] = nan, allowed: [-1, 1]'),
        ('[0, 0, 1]', '[0, 1]', 'valve_commands[0].spools has 2 values, allowed: 3'),
        ('[0, 0, 1]', '0.5', 'valve_commands[0].spools = 0.5, allowed: a list'),
        (
            'depth: swing',
            'mode: printed',
            'valve_commands, loose and held belong to mode: hydraulic',
        ),
    ],
)
def test_mistakes(
    tmp_path: Path, excavator: ExcavatorParameters, old: str, new: str, message: str
) -> None:
    assert old in DIG
    with pytest.raises(InputError, match=f'^[^\n]*{re.escape(message)}') as caught:
        load_text(tmp_path, DIG.replace(old, new), excavator)
    assert str(caught.value).startswith(f'{tmp_path / "scenario.yaml"}: ')


def test_cohesion_must_fit_the_soil(tmp_path: Path, excavator: ExcavatorParameters) -> None:
    sticky = excavator.replace(soil=excavator.soil.replace(law='earthmoving'))
    text = DIG.replace('15.0e+3', '1.0e+3')
    with pytest.raises(InputError, match=r'scenario\.yaml: earthmoving\.adhesion = 2000 Pa'):
        load_text(tmp_path, text, sticky)
    assert load_text(tmp_path, text, excavator).cohesion == 1e3


@pytest.mark.parametrize(
    ('rows', 'message'),
    [
        ('time,force_boom\n0,1\n1,1\n', 'found the columns time, force_boom; allowed: time with'),
        (ROWS.replace('0.2,', '0.19,'), 'measured.csv ends at 0.19 s, allowed: at duration = 0.2'),
        (ROWS.replace('\n0,', '\n0.01,'), 'time begins at 0.01 s, allowed: 0 or before'),
        (ROWS.replace('4e4', 'nan'), "measured.csv:3: force_bucket = 'nan', allowed: finite num"),
        ('', '0 lines, allowed: one of names and others of numbers'),
    ],
)
def test_files_of_forces_are_read_with_the_scenario(
    tmp_path: Path, excavator: ExcavatorParameters, rows: str, message: str
) -> None:
    (tmp_path / 'measured.csv').write_text(rows)
    with pytest.raises(InputError, match=rf'scenario\.yaml: .*{re.escape(message)}'):
        load_text(tmp_path, MEASURED, excavator)


def test_a_start_in_the_ground_is_refused(excavator: ExcavatorParameters) -> None:
    """Tooth first, and with a curled bucket whose back is lowest."""
    for pose, lowest in ((20.0, -95.0, -15.0), -2.439), ((20.0, -95.0, -90.0), -1.847):
        scenario = Scenario(duration=1.0, pose_deg=pose, depth='terrain')
        touched = scenario.surface_height(excavator)
        assert touched == pytest.approx(lowest, abs=1e-3)
        scenario.replace(surface=touched).check_with(excavator, 1e-3)
        with pytest.raises(InputError, match=rf'surface = .* up to {touched:.4f} m.*begin above'):
            scenario.replace(surface=touched + 0.01).check_with(excavator, 1e-3)


def test_missing_file_of_forces(tmp_path: Path, excavator: ExcavatorParameters) -> None:
    with pytest.raises(InputError, match=r'measured\.csv cannot be read: No such file'):
        load_text(tmp_path, MEASURED, excavator)


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({'mode': 'dry'}, "mode = 'dry', allowed: hydraulic | printed"),
        ({'cohesion': math.nan}, 'cohesion = nan, allowed: [0, 1e+06] Pa'),
        ({'duration': -1.0}, 'duration = -1.0, allowed: (0, 1e+06] s'),
        ({'forces': 'x.csv'}, 'forces belongs to mode: printed'),
        ({'depth': ''}, "depth = '', allowed: surface | swing"),
    ],
)
def test_dig_refuses(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        dig_scenario(**values)
