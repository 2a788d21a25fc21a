"""Recorded runs beside those of the library."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_tools.bag import named_values
from longreach_tools.comparison import compare_tables, differences_table, is_same_run

COLUMNS = ('time', 'position', 'force')
EXPECTED = np.array([[0.0, 1.0, 10.0], [0.1, 2.0, 20.0], [0.2, 3.0, 30.0]])


def test_differences_are_the_largest_of_each_column() -> None:
    recorded = EXPECTED.copy()
    # Rounded to nanoseconds, as stamps are.
    recorded[:, 0] += 4e-10
    recorded[1, 1] -= 0.5
    recorded[2, 1] += 0.25
    assert compare_tables(COLUMNS, recorded, EXPECTED) == {
        'position': 0.5,
        'force': 0.0,
        'samples_compared': 3,
        'samples_missing': 0,
    }


@pytest.mark.parametrize('swap', [False, True])
def test_rows_that_one_of_the_two_lacks_are_counted(swap: bool) -> None:
    tables = (EXPECTED[1:], EXPECTED)
    found = compare_tables(COLUMNS, *tables[:: -1 if swap else 1], 'control cycle')
    assert (found['cycles_compared'], found['cycles_missing']) == (2, 1)
    assert found['force'] == 0.0


def test_nothing_in_common() -> None:
    with pytest.raises(InputError, match=r'^the recording and the scenario have no sample in com'):
        compare_tables(COLUMNS, EXPECTED + 1.0, EXPECTED)


def test_table_of_differences() -> None:
    head, first, second = differences_table({'force': 0.5, 'samples_missing': 3}).splitlines()
    assert head.split('  ')[-1] == 'value'
    assert first.split() == ['force', '0.5']
    assert second.split() == ['samples_missing', '3']


@pytest.mark.parametrize(
    ('largest', 'missing', 'same'), [(1e-9, 0, True), (1.1e-9, 0, False), (0.0, 1, False)]
)
def test_another_run_is_told_with_what_to_do(
    capsys: pytest.CaptureFixture[str], largest: float, missing: int, same: bool
) -> None:
    assert is_same_run('crane', largest, missing, 'Name it') is same
    text = 'longreach crane compare: the recording is not this run of the library. Name it\n'
    assert capsys.readouterr() == ('', '' if same else text)


def test_values_come_in_the_order_of_names() -> None:
    messages = [
        SimpleNamespace(name=['a', 'b', 'c'], position=[1.0, 2.0, 3.0]),
        SimpleNamespace(name=['c', 'b', 'a'], position=np.array([6.0, 5.0, 4.0])),
    ]
    values = named_values('joint_states', messages, 'position', ['c', 'a'], 'crane')
    np.testing.assert_array_equal(values, [[3.0, 1.0], [6.0, 4.0]])
    error = '^joint_states has no d, found: a, b, c; give the crane file of the run$'
    with pytest.raises(InputError, match=error):
        named_values('joint_states', messages, 'position', ['a', 'd'], 'crane')
