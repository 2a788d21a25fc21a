"""Given forces: the thesis' trend lines, and measurements from files."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_excavator.forces import (
    FORCE_COLUMNS,
    PRESSURE_COLUMNS,
    printed_forces,
    read_forces,
)
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.scenario import Scenario
from longreach_excavator.simulation import simulate

FORCES = 'time,force_boom,force_arm,force_bucket\n-1,0,0,0\n0,10,20,30\n2,30,0,-50\n'


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / 'forces.csv'
    file.write_text(text)
    return file


# The trend lines


def test_trend_lines_at_hand_computed_times() -> None:
    # (5.8) to (5.10): at 0 s the constants, at 1 s the sums, at 2 s by Horner's rule.
    boom = 432.22 - 8025.2 + 55726.0 - 174147.0 + 203089.0 - 82794.0 + 304693.0
    arm = 55.87 - 740.01 + 990.47 + 21511.0 - 124023.0 + 261122.0 + 143365.0
    bucket = -33.321 + 695.16 - 5343.7 + 20582.0 - 45741.0 + 51376.0 - 305709.0
    found = printed_forces().at(np.array([0.0, 1.0]))
    # The thesis counts boom and bucket in tension.
    expected = [[-304693.0, 143365.0, 305709.0], [-boom, arm, -bucket]]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    two = (((((55.87 * 2 - 740.01) * 2 + 990.47) * 2 + 21511) * 2 - 124023) * 2 + 261122) * 2
    assert printed_forces().at(np.array(2.0))[1] == pytest.approx(two + 143365, rel=1e-13)


def test_trend_lines_are_forces_of_a_machine_of_20_t(excavator: ExcavatorParameters) -> None:
    # Within the six seconds of the measurement: no more than its pressures can give.
    forces = printed_forces().at(np.linspace(0.0, 6.0, 61))
    assert forces.shape == (61, 3)
    assert printed_forces().end == 7.0
    highest = 350e5
    for k, cylinder in enumerate(excavator.cylinders):
        assert forces[:, k].max() < cylinder.head_area * highest
        assert forces[:, k].min() > -cylinder.rod_area * highest
    # The boom's rod is pulled, arm and bucket push: the tooth is pressed into the soil.
    assert np.all(forces[:20, 0] < 0.0)
    assert np.all(forces[:20, 1:] > 0.0)


def test_thesis_says_290_kilonewtons() -> None:
    # What the bucket cylinder pushes with, when it is at its deepest.
    forces = printed_forces().at(np.linspace(1.0, 5.0, 41))[:, 2]
    assert np.median(forces) == pytest.approx(290e3, rel=0.05)


# Files


def test_forces_of_a_file_are_straight_lines(
    tmp_path: Path, excavator: ExcavatorParameters
) -> None:
    given = read_forces(write(tmp_path, FORCES), excavator)
    assert given.end == 2.0
    found = given.at(np.array([-0.5, 0.0, 0.5, 2.0]))
    expected = [[5.0, 10.0, 15.0], [10.0, 20.0, 30.0], [15.0, 15.0, 10.0], [30.0, 0.0, -50.0]]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert given.at(np.array(0.5)).shape == (3,)


def test_pressures_become_forces(tmp_path: Path, excavator: ExcavatorParameters) -> None:
    random = np.random.default_rng(2)
    pressures = random.uniform(0.0, 300e5, (4, 6))
    head = ','.join(('time', *PRESSURE_COLUMNS))
    rows = [','.join(map(repr, (0.1 * k, *row))) for k, row in enumerate(pressures.tolist())]
    given = read_forces(write(tmp_path, '\n'.join([head, *rows])), excavator)
    found = given.at(0.1 * np.arange(4))
    for k, cylinder in enumerate(excavator.cylinders):
        # (5.1) to (5.5), of all cylinders side by side.
        piston = cylinder.count * math.pi / 4.0 * cylinder.bore**2
        ring = cylinder.count * math.pi / 4.0 * (cylinder.bore**2 - cylinder.rod**2)
        expected = pressures[:, k] * piston - pressures[:, 3 + k] * ring
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-12)


def test_columns_may_stand_anywhere(tmp_path: Path, excavator: ExcavatorParameters) -> None:
    text = 'force_bucket;note;force_arm;time;force_boom\n3;0;2;0;1\n6;0;4;1;2\n'
    given = read_forces(write(tmp_path, text), excavator)
    assert given.at(np.array(1.0)).tolist() == [2.0, 4.0, 6.0]


def test_forces_go_before_pressures(tmp_path: Path, excavator: ExcavatorParameters) -> None:
    names = ('time', *PRESSURE_COLUMNS, *FORCE_COLUMNS)
    row = ','.join(['0', *['1e7'] * 6, '1', '2', '3'])
    text = '\n'.join([','.join(names), row, row.replace('0,', '1,', 1)])
    given = read_forces(write(tmp_path, text), excavator)
    assert given.at(np.array(0.5)).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize('soil', [True, False])
def test_table_of_a_run_can_be_read_again(
    tmp_path: Path, excavator: ExcavatorParameters, soil: bool
) -> None:
    result = simulate(excavator, Scenario(duration=0.05, pose='reach', soil=soil))
    assert np.isfinite(result.table).all()


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (
            'time,force_boom,force_arm\n0,1,2\n1,1,2\n',
            'found the columns time, force_boom, force_',
        ),
        ('time,p_head_boom\n0,1\n1,1\n', 'allowed: time with force_boom, force_arm, force_bucke'),
        (FORCES.replace('\n-1,', '\n#'), 'forces.csv: time begins at'),
        (FORCES.replace('30\n2', '30\n0'), 'forces.csv:4: time = 0, allowed: above 0 of the row'),
        (FORCES.replace('20', 'inf'), "forces.csv:3: force_arm = 'inf', allowed: finite numbers"),
        (FORCES.replace('time', 't'), 'forces.csv: column time is missing, found: t, force_boom'),
        (FORCES.replace(',30\n', '\n'), 'forces.csv:3: 3 values, allowed: 4, one for each name'),
        ('', 'forces.csv: 0 lines, allowed: one of names and others of numbers'),
    ],
)
def test_files_that_are_no_forces(
    tmp_path: Path, excavator: ExcavatorParameters, text: str, message: str
) -> None:
    text = text.replace('\n0,10', '\n0.5,10') if 'begins' in message else text
    with pytest.raises(InputError, match=re.escape(message)):
        read_forces(write(tmp_path, text), excavator)


def test_missing_file(tmp_path: Path, excavator: ExcavatorParameters) -> None:
    with pytest.raises(InputError, match=r'none\.csv cannot be read: No such file'):
        read_forces(tmp_path / 'none.csv', excavator)
    with pytest.raises(InputError, match='cannot be read: Is a directory'):
        read_forces(tmp_path, excavator)
