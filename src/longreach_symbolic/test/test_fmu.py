"""FMUs of links: valid by fmpy, and equal to the equations under both kinds of simulation."""

from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu
from links_reference import random_links
from scipy.integrate import solve_ivp

from longreach_dynamics import fmu
from longreach_symbolic.fmu import write_links_fmu
from longreach_symbolic.generated import derive, evaluator
from longreach_symbolic.links import chord_ends, default_file, load_links, model_of, symbolic_model
from longreach_tools.testing import Outcome

START = {'theta_1': 0.7, 'theta_2': -0.4, 'f_11': 0.01, 'f_22': -0.005, 'dtheta_1': 0.3}
TORQUES = (9.0, 1.5)
END = 0.2


def wanted(links):
    """Return q, rates and map to motor angles at the end, by SciPy."""
    terms = evaluator(links)

    def right_hand_side(_, x):
        mass, velocity, static, force = terms(x[:6], x[6:])
        return [*x[6:], *np.linalg.solve(mass, force @ TORQUES - velocity - static)]

    start = [0.7, -0.4, 0.01, 0.0, 0.0, -0.005, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0]
    x = solve_ivp(right_hand_side, (0.0, END), start, 'DOP853', rtol=1e-9, atol=1e-11).y[:, -1]
    return x[:6], terms(x[:6], x[6:]).force_map


def simulated(file, kind, parameters=None):
    """Return the last row of a simulation by fmpy."""
    inputs = np.array(
        [(0.0, *TORQUES)], dtype=[('time', float), ('torque_1', float), ('torque_2', float)]
    )
    return fmpy.simulate_fmu(
        str(file), fmi_type=kind, stop_time=END, output_interval=0.01, input=inputs,
        relative_tolerance=1e-9, start_values=START | (parameters or {}),
    )[-1]  # fmt: skip


def test_simulations_are_those_of_the_equations(capsys, tmp_path):
    file = tmp_path / 'links.fmu'
    done = Outcome(
        capsys, 'symbolic', 'generate', '--file', default_file(), '--format', 'fmu', '--out', file
    )  # fmt: skip
    assert (done.code, done.out) == (0, '')
    assert validate_fmu(str(file)) == []
    links = load_links()
    first, second = links.links
    first = first.replace(length=0.6, lumped_place=-0.3)
    heavy = links.replace(gravity=3.0, links=(first, second.replace(bending_stiffness=20.0)))
    changed = {'g': 3.0, 'L_1': 0.6, 'mu_1': -0.3, 'EI_2': 20.0}
    for model, parameters in ((links, {}), (heavy, changed)):
        q, force = wanted(model)
        for kind in ('ModelExchange', 'CoSimulation'):
            row = simulated(file, kind, parameters)
            names = ('theta_1', 'theta_2', 'f_11', 'f_12', 'f_21', 'f_22')
            np.testing.assert_allclose([row[n] for n in names], q, rtol=0.0, atol=2e-6)
            motors = [row['motor_angle_1'], row['motor_angle_2']]
            np.testing.assert_allclose(motors, force.T @ q, rtol=0.0, atol=2e-6)
            end = chord_ends(model, q[np.newaxis, :2])[0, -1]
            np.testing.assert_allclose([row['end_x_2'], row['end_y_2']], end, atol=2e-6)


def test_step_of_co_simulation_is_a_parameter(tmp_path):
    file = tmp_path / 'links.fmu'
    links = load_links()
    write_links_fmu(file, derive(model_of(links, 'none')))
    q, _ = wanted(links)
    errors = [
        abs(simulated(file, 'CoSimulation', {fmu.STEP: step})['f_22'] - q[5])
        for step in (4e-4, 2e-4)
    ]
    # RK4: a sixteenth of the error at half the step.
    assert 8.0 < errors[0] / errors[1] < 40.0


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        ({'m_1': -1.0}, b'm_1, allowed: above 0 to 1e+09'),
        ({'mu_2': 1.5}, b'mu_2, allowed: from -1 to 0'),
        ({fmu.STEP: 1.0}, b'integration_step, allowed: from 1e-09 to '),
        # Without mass.
        ({'m_1': 1e-300, 'M_1': 0.0, 'm_2': 1e-300, 'M_2': 0.0}, b'finite'),
    ],
)
def test_parameters_without_motion_are_an_error(tmp_path, values, text):
    file = tmp_path / 'links.fmu'
    write_links_fmu(file, derive(model_of(random_links(2), 'all')))
    said = []
    with pytest.raises(fmpy.fmi1.FMICallException):
        fmpy.simulate_fmu(
            str(file), start_values=values, logger=lambda *words: said.append(words[-1])
        )
    assert any(text in words for words in said)


def test_symbols_without_values():
    with pytest.raises(fmu.InputError, match='an FMU needs start values'):
        write_links_fmu('links.fmu', derive(symbolic_model(1)))


def test_example_of_the_document(capsys, tmp_path, monkeypatch):
    text = (Path(__file__).resolve().parents[3] / 'docs' / 'symbolic.md').read_text('utf-8')
    example = text.partition('## FMU')[2].partition('```python\n')[2].partition('```')[0]
    monkeypatch.chdir(tmp_path)
    write_links_fmu('links.fmu', derive(model_of(load_links(), 'all')))
    exec(compile(example, 'symbolic.md', 'exec'), {})
    assert -2.0 * np.pi < float(capsys.readouterr().out) < 0.0
