"""Runs: columns declared once, and what follows from them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.stepping import IntegrationError
from longreach_machine.machine import late_events
from longreach_machine.runs import (
    Column,
    Columns,
    Derived,
    Run,
    Source,
    compare_runs,
    convert,
    each,
)

JOINTS = [Source('joint_states', 'position', name) for name in ('a', 'b')]
COLUMNS = Columns(
    (
        Column('time', 's', 'of the sample'),
        Column('tip', 'm', 'tip', Derived(tuple(JOINTS), lambda values: values.sum(axis=1))),
        *each('phi_i', (1, 2), 'rad', 'joint angle', JOINTS, mark='i'),
        *each('mode_*', ('boom', 'arm'), '', 'mode'),
    )
)
TABLE = np.array([[0.0, 1.0, 2.0, 3.0, 0.0, 1.0], [0.1, 2.0, 4.0, 6.0, 0.0, 1.0]])


def run_of(table: np.ndarray, columns: Columns = COLUMNS, **changes: Any) -> Run[None]:
    return Run(None, columns, table, **changes)


def test_columns_of_several_parts_are_named_by_their_keys() -> None:
    assert COLUMNS.names == ('time', 'tip', 'phi_1', 'phi_2', 'mode_boom', 'mode_arm')
    assert COLUMNS.recorded.names == ('time', 'tip', 'phi_1', 'phi_2')
    assert (COLUMNS.place('phi_2'), COLUMNS.unit('phi_2')) == (3, 'rad')
    with pytest.raises(InputError, match=r"column = 'phi_3', allowed: time, tip, phi_1"):
        COLUMNS.place('phi_3')


def test_values_in_other_units() -> None:
    run = run_of(TABLE)
    np.testing.assert_array_equal(run.column('phi_1'), [2.0, 4.0])
    np.testing.assert_array_equal(run.column('phi_1', 'deg'), np.degrees([2.0, 4.0]))
    np.testing.assert_array_equal(run.column('tip', 'mm'), [1e3, 2e3])
    np.testing.assert_array_equal(convert(np.array([2e5]), 'Pa', 'bar'), [2.0])
    with pytest.raises(InputError, match=r"unit = 'bar', allowed for 'rad': rad, deg"):
        run.column('phi_1', 'bar')
    np.testing.assert_array_equal(run.stack(['phi_2', 'time']), [[3.0, 0.0], [6.0, 0.1]])


@pytest.mark.parametrize(
    ('table', 'columns'),
    [(TABLE, COLUMNS.recorded), (TABLE[0], COLUMNS), (TABLE, Columns((*COLUMNS[:5], COLUMNS[1])))],
)
def test_each_column_of_a_table_has_a_name_of_its_own(table: np.ndarray, columns: Columns) -> None:
    with pytest.raises(InputError, match=r'table of the shape \(.*columns time, tip, .*allowed: '):
        run_of(table, columns)


def test_interval_of_rows() -> None:
    assert run_of(TABLE).sample_time(1e-3) == pytest.approx(0.1)
    assert run_of(TABLE[:1]).sample_time(1e-3) == 1e-3
    with pytest.raises(InputError, match=r'every 0\.1 s, allowed: whole steps of 0\.03 s'):
        run_of(TABLE).sample_time(0.03)


def test_a_run_that_failed_says_so() -> None:
    run = run_of(TABLE)
    run.check()
    assert (run.status, run.report()['status']) == ('complete', 'complete')
    failed = run_of(TABLE, message='too fast; take a shorter step')
    assert failed.report() == {
        'duration': 0.1,
        'units': {'duration': 's'},
        'status': 'failed',
        'message': 'too fast; take a shorter step',
    }
    with pytest.raises(IntegrationError, match='too fast'):
        failed.check()
    assert run_of(TABLE[:0], message='it did not begin').report()['duration'] is None


def test_a_report_has_no_number_that_json_does_not_know() -> None:
    class Endless(Run[None]):
        def summary(self) -> dict[str, Any]:
            return {'a': float('inf'), 'b': [1.0, float('nan')], 'c': {'d': 2.0}}

    report = Endless(None, COLUMNS, TABLE).report()
    assert (report['a'], report['b'], report['c']) == (None, [1.0, None], {'d': 2.0})


RECORDED = COLUMNS.recorded
EXPECTED = np.array([[0.1 * k, k, 10.0 * k, 0.0, 0.0, 0.0] for k in range(4)])


def test_differences_are_the_largest_of_each_column() -> None:
    recorded = EXPECTED[:, :4].copy()
    # Rounded to nanoseconds, as stamps are.
    recorded[:, 0] += 4e-10
    recorded[1, 1] -= 0.5
    recorded[2, 1] += 0.25
    assert compare_runs(run_of(recorded, RECORDED), run_of(EXPECTED)) == {
        'tip': 0.5,
        'phi_1': 0.0,
        'phi_2': 0.0,
        'samples_compared': 4,
        'samples_missing': 0,
    }


@pytest.mark.parametrize('swap', [False, True])
def test_rows_that_one_of_the_two_lacks_are_counted(swap: bool) -> None:
    runs = [run_of(EXPECTED[[0, 1, 3]]), run_of(EXPECTED)]
    found = compare_runs(*(runs[::-1] if swap else runs), 'control cycle')
    assert (found['cycles_compared'], found['cycles_missing']) == (3, 1)
    assert found['tip'] == 0.0


def test_a_longer_run_is_compared_as_far_as_the_other_goes() -> None:
    found = compare_runs(run_of(EXPECTED[:2]), run_of(EXPECTED))
    assert (found['samples_compared'], found['samples_missing']) == (2, 0)


def test_nothing_in_common() -> None:
    late = EXPECTED + 1.0
    with pytest.raises(InputError, match=r'^the recording and the scenario have no sample in com'):
        compare_runs(run_of(late), run_of(EXPECTED))


def test_columns_are_in_si_units() -> None:
    with pytest.raises(InputError, match=r"^column phi in 'deg', allowed: rad; figures convert$"):
        Column('phi', 'deg')


def test_what_a_scenario_has_after_its_end_is_said() -> None:
    def at(**values: float) -> SimpleNamespace:
        return SimpleNamespace(**values)

    scenario = SimpleNamespace(
        duration=2.0,
        release=(1.9, 2.0),
        attach=(at(time=1.0), at(time=3.0)),
        gusts=(at(start=2.5),),
        trajectory=(at(time=2.0), at(time=2.5)),
        spools=at(boom=((0.0, 1.0), (3.0, 0.0))),
    )
    late = late_events(scenario, paths=('trajectory', 'spools.boom'))
    assert late == ('trajectory[1] is at 2.5 s', 'spools.boom[1] is at 3 s')
    late = late_events(scenario, 'release', 'attach', 'gusts')
    assert late == ('release[1] is at 2 s', 'attach[1] is at 3 s', 'gusts[0] is at 2.5 s')
    said = (
        'after the end of the run, not reached: release[1] is at 2 s, attach[1] is at 3 s,'
        ' gusts[0] is at 2.5 s'
    )
    assert run_of(TABLE, late=late).warnings() == (said,)
    assert run_of(TABLE, late=2 * late).warnings() == (f'{said}, and 3 more',)
