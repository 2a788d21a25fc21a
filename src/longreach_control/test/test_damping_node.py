"""The node of a damping controller in lockstep with the plant: equal to the library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from longreach_msgs.msg import HydraulicState

from longreach_boom.follower import Measurement
from longreach_boom.machine import Boom
from longreach_boom.parameters import load_boom
from longreach_boom.plant_node import PlantNode
from longreach_boom.scenario import load_scenario
from longreach_boom.state import StateParts
from longreach_control.benchmark import read
from longreach_control.damping_node import DampingNode
from longreach_control.follower import DampingFollower
from longreach_dynamics.trajectories import Trajectory
from longreach_node.testing import bench

SCENARIO = """
duration: 0.5
pose: site
trajectory:
  - {time: 0.0, angles_deg: [70, -50, -35, -30]}
  - {time: 1.4, angles_deg: [69.5, -49, -34, -28]}
"""
CYCLE, CYCLES = 0.005, 100


def test_in_lockstep_the_node_commands_as_the_library(tmp_path: Path) -> None:
    """Spools and pressures of a closed loop over ROS are those of the library's loop."""
    file = tmp_path / 'scenario.yaml'
    file.write_text(SCENARIO)
    words = ['-p', 'lockstep:=true', '-p', f'scenario:={file}']
    words += ['-p', 'plant:real_time_factor:=0.0', '-p', 'plant:duration:=0.5']
    with bench(*words, deadline=60.0) as b:
        seen = b.listen(HydraulicState, 'hydraulics')
        b.add(DampingNode)
        b.add(PlantNode)
        b.until(lambda: len(seen) > CYCLES, 'the last sample')
    boom = load_boom()
    scenario = load_scenario(file, boom)
    machine = Boom(boom, scenario)
    follower = DampingFollower(boom, scenario, CYCLE)
    trajectory = Trajectory.of(scenario.waypoints(boom))
    state, memory = machine.initial_state(), None
    for k in range(CYCLES):
        angles = StateParts.of(state.y, boom).q[: boom.size]
        measured = Measurement(angles, *read(boom, state))
        memory, command = follower.control(memory, measured, trajectory.at(k * CYCLE))
        state = machine.advance(state, command, k * CYCLE, CYCLE)
    parts, last = StateParts.of(state.y, boom), seen[CYCLES]
    assert np.abs(parts.spools).max() > 0.05
    np.testing.assert_allclose(last.spool, parts.spools, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(last.head_pressure, parts.head_pressures, rtol=1e-6)
