"""A recorded run as the library's table; the bags are written here, without ROS running."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_dynamics.runs import compare_runs
from longreach_excavator import conversions
from longreach_excavator.columns import COLUMNS
from longreach_excavator.results import ExcavatorRun
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.simulation import simulate
from longreach_excavator.spec import EXCAVATOR
from longreach_excavator.state import CLOSED, ExcavatorState
from longreach_node.stamps import seconds_to_nanoseconds, stamp_of
from longreach_tools.recording import read_run
from longreach_tools.testing import write_bag

pytest.importorskip('rosbags.rosbag2')


def messages(run: ExcavatorRun) -> list[tuple[str, int, Any]]:
    """Return what the plant publishes of a run."""
    found: list[tuple[str, int, Any]] = []
    vapour, ground = run.parameters.oil.vapour_pressure, run.machine.constants.ground
    for time, y in zip(run.column('time'), run.states, strict=True):
        stamp = seconds_to_nanoseconds(time)
        header, state = Header(stamp=stamp_of(stamp)), ExcavatorState(y)
        joints, seen = run.machine.joint_sample(state, CLOSED), run.machine.observed(state)
        moved = {'position': joints.positions, 'velocity': joints.velocities}
        sample = JointState(header=header, name=joints.names, effort=joints.efforts, **moved)
        found += [
            ('joint_states', stamp, sample),
            ('hydraulics', stamp, conversions.hydraulics_to_message(y, seen, vapour, header)),
            ('reactions', stamp, conversions.reactions_to_message(seen, header)),
            ('soil_force', stamp, conversions.soil_force_to_message(seen, header)),
        ]
        if ground.cells:
            found.append(('terrain', stamp, conversions.terrain_to_message(ground, y, header)))
    return found


@pytest.mark.parametrize(('depth', 'duration'), [('swing', 0.2), ('terrain', 1.0)])
def test_a_recording_is_the_run(excavator, tmp_path, depth, duration):
    run = simulate(excavator, dig_scenario(duration=duration, depth=depth), sample_time=0.02)
    bag = write_bag(tmp_path / 'bag', 'excavator', messages(run))
    recorded = read_run(EXCAVATOR, bag, 'excavator', excavator)
    assert recorded.sample_time(1e-3) == pytest.approx(0.02)
    differences = compare_runs(recorded, run)
    assert differences.pop('samples_compared') == round(duration / 0.02) + 1
    assert differences.pop('samples_missing') == 0
    # Without terrain there is no such topic.
    loads = {'bucket_volume', 'bucket_mass'} if depth == 'swing' else set()
    assert set(differences) == set(COLUMNS.recorded.names) - {'time'} - loads
    assert set(differences.values()) == {0.0}
    assert {'lk_x', 'bucket_arm_z', 'soil_force', 'head_flow_boom'} < set(differences)
    assert np.ptp(recorded.column('theta_4')) > 0.01
    if depth == 'terrain':
        assert recorded.column('bucket_mass')[-1] > 100.0
