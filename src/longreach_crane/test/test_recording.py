"""A recorded run as the library's table; the bags are written here, without ROS running."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from longreach_msgs.msg import CraneCommand, CraneStatus
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_crane.parameters import Machinery
from longreach_crane.results import CraneRun, columns_of
from longreach_crane.scenario import Scenario
from longreach_crane.simulation import simulate
from longreach_crane.spec import CRANE
from longreach_dynamics.errors import InputError
from longreach_dynamics.runs import compare_runs
from longreach_node.stamps import seconds_to_nanoseconds, stamp_of
from longreach_tools.recording import read_run
from longreach_tools.testing import write_bag

pytest.importorskip('rosbags.rosbag2')


@pytest.fixture(scope='module')
def expected(machinery: Machinery, task_c: Scenario) -> CraneRun:
    """Task C to 48 s, with all of its events."""
    return simulate(machinery, task_c.replace(duration=48.0))


def run_of(machinery: Machinery, table: np.ndarray) -> CraneRun:
    """Return a run with a table."""
    return CraneRun(machinery.crane, columns_of(machinery.crane), table)


def compare(recorded: CraneRun, expected: CraneRun) -> dict[str, float]:
    """Compare runs as the command does."""
    return compare_runs(recorded, expected, 'control cycle')


def messages(result: CraneRun) -> list[tuple[str, int, Any]]:
    """Return what the nodes publish of a run."""
    found: list[tuple[str, int, Any]] = []
    reason = 0
    for row in result.table.tolist():
        values = dict(zip(result.columns.names, row, strict=True))
        time = seconds_to_nanoseconds(values['time'])
        header = Header(stamp=stamp_of(time))
        joints = JointState(header=header, name=['car_joint', 'cable_joint'])
        joints.position = [values['car_position'], values['angle']]
        joints.velocity = [values['car_velocity'], values['angular_velocity']]
        joints.effort = [values['motor_force'], 0.0]
        brake, reason = bool(values['brake']), int(values['emergency'])
        command = CraneCommand(header=header, force=values['command'], brake=brake)
        status = CraneStatus(
            header=header,
            brake=brake,
            emergency_mode=bool(reason),
            emergency_reason=reason,
            set_point=values['set_point'],
        )
        found += [('joint_states', time, joints), ('command', time, command)]
        found.append(('status', time, status))
    return found


def test_a_recording_is_the_run(machinery: Machinery, expected: CraneRun, tmp_path: Path) -> None:
    bag = write_bag(tmp_path / 'bag', 'crane', messages(expected))
    recorded = read_run(CRANE, bag, 'crane', machinery)
    np.testing.assert_array_equal(recorded.table[:, 1:], expected.table[:, 1:])
    assert recorded.column('time') == pytest.approx(expected.column('time'), abs=1e-9)
    assert [e.name for e in recorded.events] == [e.name for e in expected.events]
    assert [e.time for e in recorded.events] == pytest.approx([e.time for e in expected.events])
    differences = compare(recorded, expected)
    assert differences.pop('cycles_compared') == 4801
    assert differences.pop('cycles_missing') == 0
    assert set(differences) == set(expected.columns.names[1:])
    assert set(differences.values()) == {0.0}


def test_a_difference_is_seen(machinery: Machinery, expected: CraneRun, tmp_path: Path) -> None:
    changed = expected.table.copy()
    changed[100, expected.columns.place('car_position')] += 1e-6
    changed[200, expected.columns.place('brake')] = 1.0
    result = dataclasses.replace(expected, table=changed)
    differences = compare(
        read_run(
            CRANE, write_bag(tmp_path / 'b', 'crane', messages(result)), '/crane/', machinery
        ),
        expected,
    )
    assert differences['car_position'] == pytest.approx(1e-6)
    assert differences['brake'] == 1.0
    assert differences['angle'] == 0.0


def test_cycles_pair_by_stamp_whatever_the_order(
    machinery: Machinery, expected: CraneRun, tmp_path: Path
) -> None:
    rows = messages(dataclasses.replace(expected, table=expected.table[:300]))
    # Every tenth command is lost, and the rest comes in another order.
    lost = [row for row in rows if row[0] != 'command' or row[1] // 10_000_000 % 10 != 3]
    shuffled = [lost[i] for i in np.random.default_rng(1).permutation(len(lost))]
    recorded = read_run(CRANE, write_bag(tmp_path / 'bag', 'crane', shuffled), 'crane', machinery)
    differences = compare(recorded, dataclasses.replace(expected, table=expected.table[:300]))
    assert (differences['cycles_compared'], differences['cycles_missing']) == (270, 30)
    assert max(differences[name] for name in expected.columns.names[1:]) == 0.0


def test_other_namespaces_and_empty_runs(machinery: Machinery, tmp_path: Path) -> None:
    result = run_of(machinery, np.zeros((3, 11)))
    bag = write_bag(tmp_path / 'bag', 'second', messages(result))
    assert len(read_run(CRANE, bag, 'second', machinery).table) == 1
    with pytest.raises(InputError, match='/crane/joint_states'):
        read_run(CRANE, bag, 'crane', machinery)
    rows = [row for row in messages(result) if row[0] != 'status']
    with pytest.raises(InputError, match=r'no run of the crane.*command: 1, status: 0|status'):
        read_run(CRANE, write_bag(tmp_path / 'half', 'crane', rows), 'crane', machinery)
    with pytest.raises(InputError, match='nowhere'):
        read_run(CRANE, tmp_path / 'nowhere', 'crane', machinery)


def test_nothing_in_common(machinery: Machinery) -> None:
    early, late = np.zeros((2, 11)), np.zeros((2, 11))
    early[:, 0], late[:, 0] = (0.0, 0.01), (1.0, 1.01)
    with pytest.raises(InputError, match='no control cycle in common'):
        compare(run_of(machinery, early), run_of(machinery, late))
