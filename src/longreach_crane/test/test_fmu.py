"""The FMU of the crane is its plant with the brake open."""

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

from longreach_crane.machine import Command, Crane
from longreach_crane.model import Constants, load_position
from longreach_crane.parameters import load_machinery
from longreach_crane.scenario import Disturbance, Scenario
from longreach_tools.testing import Outcome

END = 2.0


@pytest.mark.parametrize('kind', ['ModelExchange', 'CoSimulation'])
def test_plant(capsys, tmp_path, kind):
    file = tmp_path / 'crane.fmu'
    done = Outcome(capsys, 'crane', 'fmu', '--out', file)
    assert (done.code, done.out, done.err) == (0, '', '')
    assert validate_fmu(str(file)) == []
    parameters = load_machinery().crane.replace(load_mass=500.0, car_friction=20.0)
    disturbance = Disturbance(0.0, END, -70.0)
    crane = Crane(parameters, Scenario(duration=END, disturbances=(disturbance,)))
    state = crane.advance(crane.initial_state(), Command(160.0, False), 0.0, END)
    row = fmpy.simulate_fmu(
        str(file), fmi_type=kind, stop_time=END, output_interval=0.1, relative_tolerance=1e-10,
        start_values={'m_l': 500.0, 'd_c': 20.0, 'integration_step': 1e-3},
        input=np.array(
            [(0.0, 160.0, -70.0)],
            dtype=[('time', float), ('desired_force', float), ('disturbance', float)],
        ),
        output=['motor_force', 'car_position', 'car_velocity', 'angle', 'angular_velocity',
                'load_position'],
    )[-1]  # fmt: skip
    wanted = [*state.x, load_position(state.x, Constants.of(parameters))]
    np.testing.assert_allclose(list(row)[1:], wanted, rtol=2e-6, atol=1e-9)
