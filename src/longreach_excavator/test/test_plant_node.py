"""The excavator as a node: what it publishes and refuses."""

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from longreach_dynamics.errors import InputError
from longreach_excavator.motion import HEAD, RATE, SIZE
from longreach_excavator.nodes import PlantNode
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.terrain import heights
from longreach_node.testing import bench, setting

PERIOD = 0.01  # [s]
FAST = setting('plant', real_time_factor=0.0, publish_rate=1.0 / PERIOD)


def test_a_given_cohesion_is_used_instead_of_the_scenarios(tmp_path):
    file = tmp_path / 'scenario.yaml'
    file.write_text('duration: 0.6\npose: dig\ncohesion: 1.0e+4\n')
    with bench(*FAST, *setting('plant', scenario=file, cohesion=3.0e3)) as b:
        assert b.add(PlantNode).machine.parameters.soil.cohesion == 3.0e3


@pytest.mark.parametrize(('held', 'said'), [('', 1), ('held: [boom, arm]', 0)])
def test_a_joint_that_moves_with_the_law_of_swing_is_said(tmp_path, capfd, held, said):
    file = tmp_path / 'swing.yaml'
    commands = 'valve_commands: [{time: 0.0, spools: [0, 0, 1]}]'
    file.write_text(f'duration: 1.0\npose: dig\ndepth: swing\n{held}\n{commands}\n')
    with bench(*FAST, *setting('plant', scenario=file, duration=1.0)) as b:
        plant = b.add(PlantNode)
        b.until(plant.done.done, 'end')
    assert ''.join(capfd.readouterr()).count("assumes the bucket's joint D at rest") == said


def test_without_a_scenario_it_stands_at_the_soil_in_the_first_pose(standard):
    with bench(*FAST, *setting('plant', start_paused=True, command_timeout=0.05)) as b:
        joints, plant = b.listen(JointState, 'joint_states'), b.add(PlantNode)
        b.until(lambda: joints, 'first sample')
        assert list(joints[0].position)[:3] == standard.pose('dig').tolist()
        # Ground to be driven in, from the tooth on.
        surface = dig_scenario(depth='terrain').surface_height(standard)
        assert np.all(heights(plant.state.y[SIZE:]) == surface)
        assert surface == pytest.approx(plant.machine.observed(plant.state)['tip_z'])
        for _ in range(100):
            assert not plant.simulation.step_once()
        assert np.abs(plant.state.y[RATE:HEAD]).max() < 1e-3


def test_given_forces_end_with_their_scenario(tmp_path):
    file = tmp_path / 'printed.yaml'
    file.write_text('duration: 0.1\npose: dig\nmode: printed\n')
    with bench(*FAST, *setting('plant', scenario=file)) as b:
        plant = b.add(PlantNode)
        b.until(plant.done.done, 'end')
    assert plant.state.forces[2] > 2e5
    late = setting('plant', scenario=file, duration=0.2)
    error = r'duration = 0\.2 s, allowed with mode: printed: up to that of the scenario, 0\.1 s'
    with bench(*FAST, *late) as b, pytest.raises(InputError, match=error):
        b.add(PlantNode)
