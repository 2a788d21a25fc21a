"""The operator's station as a node, in lockstep with the plant: the library's closed loop."""

import numpy as np
import pytest
from harvesters import STANDARD
from sensor_msgs.msg import Joy

from longreach_harvester.control import load_controller
from longreach_harvester.machine import Harvester
from longreach_harvester.operator_node import OperatorNode
from longreach_harvester.parameters import default_file
from longreach_harvester.plant_node import PlantNode
from longreach_harvester.scenario import resting_scenario
from longreach_harvester.teleoperation import Measurement, Teleoperation, load_teleoperation
from longreach_machine.teleoperation import OperatorState
from longreach_node import qos
from longreach_node.testing import bench, setting

PERIOD = 0.01  # [s]
AXES = [0.5, -0.8, 0.0, 0.0, 0.6]
pytestmark = pytest.mark.usefixtures('patient')


@pytest.mark.parametrize('control', ['joints', 'tip'])
def test_in_lockstep_with_the_plant_it_is_the_librarys_closed_loop(tmp_path, control):
    file = tmp_path / 'mine.yaml'
    file.write_text(
        default_file('teleoperation.yaml').read_text().replace('timeout: 0.5', 'timeout: 60.0')
    )
    words = setting('operator', teleoperation=file, control=control)
    words += setting('plant', real_time_factor=0.0, lockstep=True, duration=0.5)
    with bench(*words) as b:
        operator = b.add(OperatorNode)
        # The sample of time 0 is not answered before a stick has moved; the plant repeats it.
        plant = b.add(PlantNode)
        joy = b.publisher(Joy, 'joy', qos.SET_POINT)
        joy.publish(Joy(axes=AXES))
        b.until(lambda: operator._state.engaged, 'order')
        b.until(plant.done.done, 'end')
    parameters = load_teleoperation(file).controlling(control)
    seat = Teleoperation(parameters, STANDARD, load_controller())
    # A message has numbers of four bytes.
    axes = np.array(AXES, dtype=np.float32).tolist()
    levers = seat.take(OperatorState(), seat.order_of_sticks(axes), 0.0)
    machine = Harvester(STANDARD, resting_scenario())
    state = machine.initial_state()
    for k in range(50):
        measured = Measurement(k * 10_000_000 * 1e-9, state.y[:3])
        levers, command = seat.cycle(levers, measured, 0.0)
        state = machine.advance(state, command, k * PERIOD, PERIOD)
    np.testing.assert_array_equal(plant.state.y, state.y)
    assert np.abs(state.y[:3] - machine.scenario.angles).min() > 1e-3
