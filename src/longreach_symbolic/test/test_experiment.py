"""The paper's experiment: exact beams, motion against SciPy, what the force map does."""

import csv
import math

import numpy as np
import pytest
import yaml
from links_reference import random_links
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from longreach_dynamics.finite_elements import ChainBeam, chain_modes
from longreach_symbolic.experiment import GAIN, RATE_GAIN, START, experiment, frequency_table
from longreach_symbolic.generated import evaluator
from longreach_symbolic.links import load_links
from longreach_symbolic.motion import force_matrix, move
from longreach_symbolic.vibration import (
    Joints,
    exact_eigenvalues,
    linear_system,
    modal_eigenvalues,
    oscillating,
)
from longreach_tools.testing import Outcome


def beams(links, theta):
    """Return links as beams of finite elements."""
    return [
        ChainBeam(
            length=link.length,
            mass_per_length=lambda _, value=link.mass / link.length: value,
            bending_stiffness=lambda _, value=link.bending_stiffness: value,
            angle=angle,
            masses=(((1.0 + link.lumped_place) * link.length, link.lumped_mass),),
        )
        for link, angle in zip(links.links, np.cumsum(theta), strict=True)
    ]


@pytest.mark.parametrize('stiffness', [math.inf, 125.0])
@pytest.mark.parametrize('count', [1, 2, 3])
def test_exact_eigenvalues_are_those_of_finite_elements(count, stiffness):
    links = random_links(count)
    theta = np.linspace(0.7, -0.9, count)
    springs = None if math.isinf(stiffness) else [stiffness] * count
    wanted = chain_modes(beams(links, theta), 20, 3, springs, foreshortening=False)
    found = exact_eigenvalues(links, theta, Joints(stiffness, 0.0), 3)
    np.testing.assert_allclose(found.imag, 2.0 * np.pi * wanted, rtol=1e-5)
    assert np.abs(found.real).max() < 1e-9 * np.abs(found).max()


def test_modes_approach_exact_beams_under_pd_control():
    links = load_links()
    joints = Joints(GAIN, RATE_GAIN)
    exact = exact_eigenvalues(links, START, joints, 2)
    errors = []
    for modes in (2, 3, 4):
        fine = links.replace(basis='cubic', modes=modes)
        found = oscillating(modal_eigenvalues(fine, START, joints), 2)
        errors.append(np.abs(found / exact - 1.0).max())
    assert errors[0] < 1e-4
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 1e-2 * errors[0]


def test_table_of_frequencies():
    first, second = frequency_table(load_links())[:2]
    assert (first['exact'], second['exact']) == pytest.approx((12.550, 39.039), abs=1e-3)
    assert (first['sine_error'], second['sine_error']) == pytest.approx((0.1319, 0.1899), abs=1e-4)
    assert max(abs(first['cubic_error']), abs(second['cubic_error'])) < 1e-4
    locked = Joints(math.inf, 0.0)
    exact = exact_eigenvalues(load_links(), START, locked, 1)
    for basis, modes, error in (('cubic', 1, 0.0769), ('sine', 4, 0.066)):
        links = load_links().replace(basis=basis, modes=modes)
        found = oscillating(modal_eigenvalues(links, START, locked), 1)
        assert (found / exact).real == pytest.approx([1.0 + error], abs=1e-4)
    # The cubic basis is enough with lumped masses at the ends only: one bare link.
    link = load_links().links[0].replace(lumped_mass=0.0)
    bare = load_links().replace(links=(link,), basis='cubic')
    cubic = oscillating(modal_eigenvalues(bare, [0.0], locked), 2)
    off = (cubic / exact_eigenvalues(bare, [0.0], locked, 2)).real
    np.testing.assert_allclose(off, [1.005, 1.58], atol=0.002)


@pytest.mark.slow
@pytest.mark.parametrize('locked', [False, True])
def test_motion_is_that_of_another_integrator(locked):
    links = load_links()
    joints = Joints(math.inf if locked else 125.0, 0.0)
    interval, rows = 1e-3, 31
    time = np.arange(rows) * interval
    references = np.stack((START[0] + 0.3 * time, START[1] - 0.2 * time), axis=1)
    rates = np.tile([0.3, -0.2], (rows, 1))
    q = np.array([*START, 0.002, 0.0, -0.001, 0.0])
    found = move(links, q, references, rates, interval, joints)
    terms, force = evaluator(links), force_matrix(links)

    def right_hand_side(t, x):
        mass, velocity, static, own = terms(x[:6], x[6:])
        np.testing.assert_allclose(own, force, atol=1e-12)
        if locked:
            matrix = np.block([[mass, -own], [own.T, np.zeros((2, 2))]])
            right = np.concatenate((-velocity - static, np.zeros(2)))
            return np.concatenate((x[6:], np.linalg.solve(matrix, right)[:6]))
        wanted = np.array([START[0] + 0.3 * t, START[1] - 0.2 * t])
        torque = joints.stiffness * (wanted - own.T @ x[:6])
        return np.concatenate((x[6:], np.linalg.solve(mass, own @ torque - velocity - static)))

    start = np.concatenate((q, np.zeros(6)))
    wanted = solve_ivp(right_hand_side, (0.0, time[-1]), start, 'DOP853', time, rtol=1e-9,
                       atol=1e-11).y.T  # fmt: skip
    assert found.complete
    np.testing.assert_allclose(found.q, wanted[:, :6], rtol=0.0, atol=2e-7)
    np.testing.assert_allclose(found.rates, wanted[:, 6:], rtol=0.0, atol=2e-5)
    for row in (0, 17):
        mass, velocity, static, own = terms(found.q[row], found.rates[row])
        left = mass @ found.accelerations[row] + velocity + static
        np.testing.assert_allclose(left, own @ found.torques[row], rtol=0.0, atol=1e-8)


@pytest.mark.slow
def test_free_vibration():
    run = experiment(load_links(), 'free')
    # Locked motors do not turn, and hold the weight in the mean.
    assert np.abs(run.motor_angles - START).max() < 1e-7
    links = run.links.links
    ends = np.cumsum([link.length for link in links] * np.cos([START[0], 0.0]))
    centres = [ends[0] / 2.0, ends[0] + links[1].length / 2.0]
    levers = np.array([*centres, *ends])
    masses = np.array([link.mass for link in links] + [link.lumped_mass for link in links])
    assert run.motion.torques[:, 0].mean() == pytest.approx(9.81 * levers @ masses, rel=0.05)
    # The weight lowers the frequencies a little: it bends links that are no longer straight.
    summary = run.summary()
    for peak, row in zip(summary['peaks'], summary['frequencies'], strict=False):
        assert peak == pytest.approx(row['sine'], rel=0.02)
    assert summary['stable']


def test_circle():
    run = experiment(load_links(), 'circle')
    summary = run.summary()
    assert summary['stable']
    assert summary['complete']
    # What PD control leaves: weight over gain.
    error = run.references - run.motor_angles
    torque = GAIN * error[5000:]
    np.testing.assert_allclose(torque, run.motion.torques[5000:], rtol=0.0, atol=1.0)
    # Recorded rates and references are the derivatives of angles.
    slope = np.gradient(run.references, run.time, axis=0)[1:-1]
    damping = (run.motion.torques - GAIN * error)[1:-1] / RATE_GAIN
    rates = (run.motion.rates @ force_matrix(run.links))[1:-1]
    np.testing.assert_allclose(damping + rates, slope, rtol=0.0, atol=1e-6)


def test_printed_force_map_is_unstable():
    run = experiment(load_links(), 'circle', printed=True)
    summary = run.summary()
    assert not summary['stable']
    assert not summary['complete']
    assert summary['growth_rate'] > 100.0
    assert summary['ended_at'] < 0.1
    # Without weight, small deflections grow as those of the linear system.
    links = run.links.replace(gravity=0.0)
    references = np.tile(START, (31, 1))
    moved = np.array([0.0, 0.0, 1e-6, 0.0, 0.0, 0.0])
    force = force_matrix(links, printed=True)
    joints = Joints(GAIN, RATE_GAIN)
    q = np.array([*START, *moved[2:]])
    found = move(links, q, references, 0.0 * references, 1e-3, joints, force)
    mass, stiffness, own = linear_system(links, START)
    matrix = np.zeros((12, 12))
    matrix[:6, 6:] = np.eye(6)
    static = stiffness + GAIN * force @ own.T
    matrix[6:] = -np.linalg.solve(mass, np.hstack((static, RATE_GAIN * force @ own.T)))
    wanted = (expm(0.03 * matrix) @ [*moved, *np.zeros(6)])[:6]
    assert np.abs(wanted).max() > 100.0 * np.abs(moved).max()
    change = found.q[30] - q + moved
    np.testing.assert_allclose(change, wanted, rtol=0.0, atol=0.02 * np.abs(wanted).max())


def experimented(capsys, case, *words):
    return Outcome(capsys, 'symbolic', 'experiment', '--case', case, *words)


def test_command(capsys, tmp_path):
    table, picture = tmp_path / 'run.csv', tmp_path / 'run.png'
    words = ('--force-map', 'printed', '--format', 'json', '--csv', table, '--plot', picture)
    found = experimented(capsys, 'circle', *words).json
    assert (found['case'], found['stable'], found['force_map']) == ('circle', False, 'printed')
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    assert float(rows[-1]['time']) == pytest.approx(found['ended_at'])
    assert float(rows[0]['motor_angle_1']) == pytest.approx(math.pi / 4.0)
    assert {'torque_2', 'x_2', 'y_2', 'acceleration_y_1', 'f_22'} <= set(rows[0])
    assert picture.stat().st_size > 10_000
    text = experimented(capsys, 'free', '--plot', tmp_path / 'free.svg').out
    assert '12.5498' in text
    assert '13.1889' in text


def test_refused(capsys, tmp_path):
    error = 'joints = locked, allowed with the circle'
    experimented(capsys, 'circle', '--joints', 'locked').refused(error)
    error = 'the printed force map needs a controller'
    experimented(capsys, 'free', '--force-map', 'printed').refused(error)
    file, links = tmp_path / 'links.yaml', load_links()
    short = links.links[0].replace(length=0.2)
    for count, error in ((3, 'links has 3 values, allowed: 2'), (2, 'the circle is 0.65')):
        file.write_text(yaml.safe_dump(links.replace(links=[short] * count).as_mapping()))
        experimented(capsys, 'circle', '--file', file).refused(error)
