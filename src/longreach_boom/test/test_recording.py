"""A recorded run as the library's table; the bags are written here, without ROS running."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from longreach_msgs.msg import HydraulicState, StrainState
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_boom.machine import Boom
from longreach_boom.parameters import BoomParameters
from longreach_boom.results import BoomRun, columns_of
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_boom.spec import BOOM
from longreach_boom.state import BoomCommand, StateParts
from longreach_boom.strain import strains
from longreach_dynamics.runs import compare_runs
from longreach_node.stamps import seconds_to_nanoseconds, stamp_of
from longreach_tools.recording import read_run
from longreach_tools.testing import write_bag

pytest.importorskip('rosbags.rosbag2')

RELEASE = Scenario(duration=1.0, pose='site', loads=(HangingLoad(90.0),), release=(0.0,))


@pytest.fixture(scope='module')
def expected(boom: BoomParameters) -> BoomRun:
    return simulate(boom, RELEASE)


def messages(boom: BoomParameters, result: BoomRun) -> list[tuple[str, int, Any]]:
    """Return what the plant publishes of a run."""
    machine = Boom(boom, RELEASE)
    state, command = machine.initial_state(), BoomCommand((0.0,) * boom.size)
    found: list[tuple[str, int, Any]] = []
    modes = result.columns_like('mode').astype(np.int64)
    for k, (time, y) in enumerate(zip(result.column('time'), result.states, strict=True)):
        # The load comes off in the first step.
        state = state._replace(y=y, modes=modes[k], loads=() if k else state.loads)
        parts = StateParts.of(y, boom)
        stamp = seconds_to_nanoseconds(time)
        header = Header(stamp=stamp_of(stamp))
        joints = machine.joint_sample(state, command)
        found.append(
            (
                'joint_states',
                stamp,
                JointState(
                    header=header,
                    name=joints.names,
                    position=joints.positions,
                    velocity=joints.velocities,
                    effort=joints.efforts,
                ),
            )
        )
        hydraulics = HydraulicState(
            header=header,
            name=[cylinder.name for cylinder in boom.cylinders],
            head_pressure=parts.head_pressures.tolist(),
            rod_pressure=parts.rod_pressures.tolist(),
            head_flow=[0.0] * boom.size,
            rod_flow=[0.0] * boom.size,
            spool=parts.spools.tolist(),
        )
        beams = [beam.name for beam in boom.beams]
        strain = StrainState(header=header, name=beams, strain=strains(boom, state).tolist())
        found += [('hydraulics', stamp, hydraulics), ('strain', stamp, strain)]
    return found


def test_a_recording_is_the_run(boom: BoomParameters, expected: BoomRun, tmp_path: Path) -> None:
    recorded = read_run(
        BOOM, write_bag(tmp_path / 'bag', 'boom', messages(boom, expected)), '/boom/', boom
    )
    assert recorded.table.shape == (201, 3 + 9 * boom.size)
    np.testing.assert_array_equal(recorded.column('time'), expected.column('time'))
    differences = compare_runs(recorded, expected)
    assert differences.pop('samples_compared') == 201
    assert differences.pop('samples_missing') == 0
    # Modes of pistons, flows through relief and make-up valves, and openings are in no message.
    of = ('mode', 'port', 'counterbalance')
    unsent = {name for name in columns_of(boom).names if name.startswith(of)}
    assert set(differences) == set(columns_of(boom).names) - unsent - {'time'}
    # The tip is put together anew, of numbers up to 36 m; all else is in the messages.
    tips = [name for name in differences if name.startswith('tip_')]
    assert len(tips) == 2 + 2 * boom.size
    assert max(differences.pop(name) for name in tips) < 1e-13
    assert set(differences.values()) == {0.0}
    assert np.ptp(expected.column('tip_z')) > 0.3


@pytest.mark.parametrize('rotation', ['exact', 'printed'])
def test_the_tip_of_any_boom(
    resized: Callable[..., BoomParameters], tmp_path: Path, rotation: str
) -> None:
    boom = resized(3, rotation=rotation, functions=3)
    result = simulate(boom, RELEASE.replace(duration=0.05))
    recorded = read_run(
        BOOM, write_bag(tmp_path / 'bag', 'boom', messages(boom, result)), 'boom', boom
    )
    for name in ('tip_x', 'tip_z'):
        np.testing.assert_allclose(recorded.column(name), result.column(name), rtol=0, atol=1e-13)
