"""Flexible links as a machine: motion, rotors, rest, brakes, the digital loop, runs, the cache."""

import math
import re

import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp

from longreach_dynamics.errors import InputError, LongreachError
from longreach_machine.machine import BY_SCENARIO
from longreach_machine.trajectories import Waypoint
from longreach_symbolic.arm import Arm, Drive, arm_of, check_stable, designed_arm, spectral_radius
from longreach_symbolic.basis import basis_of
from longreach_symbolic.generated import compiled, evaluator
from longreach_symbolic.links import BASES, Link, Links, chord_ends, load_links
from longreach_symbolic.machine import BRAKE_TIME, BRAKES, FlexibleLinks
from longreach_symbolic.motion import force_matrix
from longreach_symbolic.scenario import Circle, Scenario, load_scenario
from longreach_symbolic.simulation import columns_of, simulate

LINKS = load_links()
CIRCLE = Circle(centre=(0.7363, 0.3736), radius=0.11, period=10.0)
POSE = Scenario(duration=1.0, trajectory=(Waypoint(time=0.0, angles_deg=(45.0, -45.0)),))
ROUND = '{centre: [0.7, 0.3], radius: 0.1, period: 1}'
# The paper's gains.
PAPER = Drive(gain=125.0, rate_gain=25.0)
ARM = Arm(
    drives=(
        Drive(gain=90.0, rate_gain=14.0, rotor_inertia=0.1),
        Drive(gain=7.0, rate_gain=1.1, rotor_inertia=0.008),
    ),
    damping=7e-4,
)
TORQUES = (15.0, 1.5)


def chain(count, **changes):
    """Return links that are all equal but for the last, lighter one."""
    link = Link(
        length=1.0, mass=4.0, bending_stiffness=4e3, lumped_mass=1.0, lumped_place=-0.2
    ).replace(**changes)
    light = link.replace(mass=0.5 * link.mass, length=0.8)
    return Links(
        gravity=9.81,
        gravity_on_deflection=True,
        basis='cubic',
        links=(*[link] * (count - 1), light),
    )


def machine(arm=ARM, scenario=POSE, links=LINKS):
    return FlexibleLinks(links, arm, scenario)


@pytest.fixture(scope='module')
def terms():
    return evaluator(LINKS)


def derivative(terms, arm, torques):
    """Return the right-hand side, by generated Python and NumPy."""
    force = force_matrix(LINKS)
    weight, *bent = (
        terms(q, np.zeros(6)).gravity_and_stiffness for q in (np.zeros(6), *np.eye(6)[2:])
    )
    stiffness = (np.array(bent) - weight).T[2:]

    def f(_, x):
        q, rates = x[:6], x[6:]
        found = terms(q, rates)
        rotors = sum(
            drive.rotor_inertia * np.outer(column, column)
            for drive, column in zip(arm.on(LINKS).drives, force.T, strict=True)
        )
        forces = force @ torques - found.velocity_terms - found.gravity_and_stiffness
        forces[2:] -= arm.damping * stiffness @ rates[2:]
        return np.append(rates, np.linalg.solve(found.mass_matrix + rotors, forces))

    return f


def test_motion_equals_scipy_with_rotors_and_damping(terms):
    one = machine()
    state = one.initial_state()
    expected = solve_ivp(
        derivative(terms, ARM, TORQUES), (0.0, 0.2), state.x, 'DOP853', rtol=1e-11, atol=1e-12
    ).y[:, -1]
    for k in range(4):
        state = one.advance(state, TORQUES, 0.05 * k, 0.05)
    np.testing.assert_allclose(state.x, expected, rtol=0.0, atol=1e-7)
    assert np.abs(state.x - one.initial_state().x).max() > 0.05
    # Rotors matter.
    light = machine(ARM.replace(drives=[d.replace(rotor_inertia=0.09) for d in ARM.drives]))
    assert np.abs(light.advance(light.initial_state(), TORQUES, 0.0, 0.2).x - state.x).max() > 1e-2


def test_energy_of_links_and_rotors_is_kept(terms):
    # Damping and torques of 0: what is stable with them does not matter here.
    one = machine(ARM.replace(damping=0.0, sample_time=0.001), POSE.replace(straight=True))
    force, rotors = force_matrix(LINKS), np.array([d.rotor_inertia for d in ARM.drives])
    potential = compiled(LINKS).potential_energy

    def energy(x):
        q, rates = x[:6], x[6:]
        moving = 0.5 * rates @ terms(q, rates).mass_matrix @ rates
        turning = 0.5 * rotors @ (rates @ force) ** 2
        return moving + turning + potential(q, one.controller.constants.values), turning

    state = one.initial_state()
    before, _ = energy(state.x)
    for k in range(10):
        state = one.advance(state, (0.0, 0.0), 0.02 * k, 0.02)
    after, turning = energy(state.x)
    assert turning > 0.1
    assert after == pytest.approx(before, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize('links', [LINKS, chain(1)], ids=['paper', 'cubic, one'])
def test_links_rest_under_the_holding_torques(links):
    count = len(links.links)
    scenario = Scenario(duration=1.0, trajectory=(Waypoint(time=0.0, angles_deg=(30.0,) * count),))
    one = machine(designed_arm(links), scenario, links)
    q, torques = one.controller.rest(0.0)
    np.testing.assert_allclose(q[:count], math.radians(30.0))
    found = evaluator(links)(q, np.zeros(links.size))
    left = found.gravity_and_stiffness - found.force_map @ torques
    assert np.abs(left).max() < 1e-10 * np.abs(found.gravity_and_stiffness).max()
    assert np.abs(q[count:]).max() > 1e-4
    state = one.advance(one.initial_state(), tuple(torques), 0.0, 0.05)
    assert np.abs(state.x - one.initial_state().x).max() < 1e-8


def test_brakes_stop_the_motors():
    one = machine()
    state = one.advance(one.initial_state(), TORQUES, 0.0, 0.1)
    _, before = one.controller.motors(state.x)
    braked = one.advance(state, BRAKES, 0.1, BRAKE_TIME)
    _, after = one.controller.motors(braked.x)
    assert np.abs(before).max() > 0.1
    np.testing.assert_allclose(after, before * math.exp(-1.0), rtol=1e-6)
    assert np.abs(braked.torques).max() > 1.0
    for k in range(40):
        braked = one.advance(braked, BRAKES, 0.005 * k, 0.005)
    assert np.abs(one.controller.motors(braked.x)[1]).max() < 1e-6


@pytest.mark.parametrize('time', [0.005, 0.02])
def test_spectral_radius_is_that_of_the_simulated_loop(time):
    """Differences of cycles of the machine about its rest, against matrix exponentials."""
    arm = ARM.replace(sample_time=time)
    one = FlexibleLinks(LINKS, ARM, POSE)
    one.controller.arm = arm  # The machine refuses an unstable one.
    rest = one.initial_state()
    wanted, torques = one.controller.motors(rest.x)[0], rest.torques
    columns = []
    for step in 1e-6 * np.eye(12):
        ends = []
        for sign in (1.0, -1.0):
            x = rest.x + sign * step
            angles, rates = one.controller.motors(x)
            tau = torques + arm.column('gain') * (wanted - angles)
            tau -= arm.column('rate_gain') * rates
            ends.append(one.advance(rest._replace(x=x), tuple(tau), 0.0, time).x)
        columns.append((ends[0] - ends[1]) / 2e-6)
    simulated = np.abs(np.linalg.eigvals(np.array(columns).T)).max()
    found = spectral_radius(LINKS, arm, rest.x[:6])
    assert found == pytest.approx(simulated, rel=1e-5)
    assert (found < 1.0) == (time < 0.02)


@pytest.mark.parametrize('basis', ['sine', 'cubic'])
def test_gains_of_the_paper_are_refused(basis):
    links = LINKS.replace(basis=basis)
    arm = Arm(drives=(PAPER,), sample_time=0.001).on(links)
    # Far above 1.
    error = r'spectral radius [1-9]\d[\d.]* with sample_time = 0\.001 s'
    with pytest.raises(InputError, match=error):
        check_stable(links, arm, [np.zeros(6)])


@pytest.mark.parametrize(
    'links',
    [
        LINKS,
        LINKS.replace(basis='cubic'),
        chain(1),
        chain(4),
        chain(2, lumped_mass=200.0, bending_stiffness=4e4),
    ],
    ids=['paper', 'cubic', 'one', 'four', 'heavy'],
)
def test_a_designed_arm_is_stable(links):
    arm, q = designed_arm(links).on(links), np.zeros(links.size)
    for turn in (0.0, 0.5, -1.0):
        q[: len(links.links)] = turn
        check_stable(links, arm, [q])


def test_links_without_a_designed_arm_are_refused():
    error = r'^no motors can be designed for these links \(gain = \d+\S*, allowed: .*give an arm'
    with pytest.raises(InputError, match=error):
        designed_arm(chain(2, mass=2e6, length=300.0, bending_stiffness=1e15))


def test_a_run_follows_the_circle():
    run = simulate(machine(designed_arm(LINKS), Scenario(duration=12.0, circle=CIRCLE)))
    assert run.status == 'complete'
    times, ends = run.column('time'), run.stack(['tip_x', 'tip_z'])
    assert len(times) == 2401
    inside = np.hypot(*(ends - 0.91 * np.array(CIRCLE.centre)).T)
    np.testing.assert_allclose(inside, 0.1001, atol=1e-3)
    summary = run.summary()
    assert 1e-5 < summary['tip_error'] < 1e-3
    # A whole turn.
    turned = np.unwrap(np.arctan2(*(ends - 0.91 * np.array(CIRCLE.centre)).T[::-1]))
    assert turned[-1] - turned[0] == pytest.approx(2.0 * math.pi * 1.15, abs=0.05)
    assert run.columns.names == columns_of(LINKS).names


def test_torques_that_move_a_stiff_link_are_those_of_a_rigid_one():
    links = chain(1, bending_stiffness=1e9)
    (link,) = links.links
    points = [{'time': 0.0, 'angles_deg': [10.0]}, {'time': 2.0, 'angles_deg': [70.0]}]
    arm = designed_arm(links)
    one = FlexibleLinks(links, arm, Scenario(duration=2.0, trajectory=points))
    inertia = link.mass * link.length**2 / 3.0 + link.lumped_mass * (0.8 * link.length) ** 2
    moment = link.length * (0.5 * link.mass + 0.8 * link.lumped_mass)
    for time in (0.3, 1.0, 1.4):
        s = time / 2.0
        share, turning = s**3 * (10 - 15 * s + 6 * s**2), (60 * s - 180 * s**2 + 120 * s**3) / 4
        theta = math.radians(10.0 + 60.0 * share)
        expected = (inertia + arm.drives[0].rotor_inertia) * math.radians(60.0) * turning
        expected += 9.81 * moment * math.cos(theta)
        rate = math.radians(60) * 30 * (s * (1 - s)) ** 2 / 2
        # At the reference, which the controller has to within 1e-6 rad and 1e-5 rad/s.
        controller, drive = one.controller, arm.drives[0]
        found = controller.torques_towards(controller.planned_angles, [theta], [rate], time)
        near = 1e-5 * abs(expected) + 1e-6 * drive.gain + 1e-5 * drive.rate_gain
        assert found == pytest.approx([expected], abs=near)


def test_a_run_that_cannot_go_on_keeps_its_rows():
    points = ((0.0, (45.0, -45.0)), (0.1, (45.0, -45.0)), (0.4, (3000.0, -45.0)))
    waypoints = tuple(Waypoint(time=time, angles_deg=angles) for time, angles in points)
    run = simulate(machine(scenario=Scenario(duration=2.0, trajectory=waypoints)))
    assert run.status == 'failed'
    assert re.search(r'link \d is bent by more than its length', run.message)
    assert 20 < len(run.table) < 80


@pytest.mark.parametrize('basis', BASES)
def test_a_deflection_is_the_sum_of_its_functions(basis):
    """Coordinates of ``cubic`` are larger than what they bend."""
    links = LINKS.replace(basis=basis, modes=3)
    f = np.array([[0.02, -0.03, 0.01, 0.0, 0.01, 0.02]])
    known = basis_of(basis, 3)
    place = np.linspace(-1.0, 0.0, 2001)
    shapes = [sympy.lambdify(known.place, one, 'numpy')(place) for one in known.functions]
    expected = [np.abs(own @ shapes).max() for own in f.reshape(2, 3)]
    np.testing.assert_allclose(links.largest_deflections(f), [expected], rtol=2e-3)


def test_gains_that_do_not_hold_the_weight_are_refused():
    soft = ARM.replace(drives=[drive.replace(gain=0.05 * drive.gain) for drive in ARM.drives])
    up = POSE.replace(trajectory=(Waypoint(time=0.0, angles_deg=(90.0, 0.0)),))
    with pytest.raises(InputError, match=r'unstable: .* `longreach links stability` shows'):
        FlexibleLinks(LINKS, soft, up)


@pytest.mark.parametrize('bend', ['up', 'down'])
@pytest.mark.parametrize(
    ('lengths', 'circle'),
    [
        ((0.475, 0.435), CIRCLE),
        ((1.0, 0.5, 2.0), CIRCLE),
        ((1.0,) * 12, CIRCLE),
        # Where the end comes behind the first link.
        ((0.6, 1.1, 1.9), Circle(centre=(0.09, 0.5), radius=0.18, period=10.0)),
    ],
)
def test_links_on_a_circle_are_a_polygon_that_ends_there(lengths, circle, bend):
    circle = circle.replace(bend=bend)
    circle.check_lengths(lengths)
    (link,) = chain(1).links
    links = chain(1).replace(links=[link.replace(length=length) for length in lengths])
    before = None
    for time in np.linspace(0.0, 12.0, 49):
        theta = circle.angles(time, lengths)
        x, z = chord_ends(links, theta[np.newaxis])[0, -1] / sum(lengths)
        assert complex(x, z) == pytest.approx(circle.place(time), abs=1e-12)
        assert len(set(theta[1:])) == 1
        assert (theta[1] < 0.0) == (bend == 'up')
        assert before is None or np.abs(theta - before).max() < 0.3
        before = theta


@pytest.mark.parametrize(
    ('changes', 'text'),
    [
        ({'radius': 0.9}, 'circle.radius = 0.9, allowed: below 0.82'),
        ({'radius': 0.3}, 'lengths of all links from the base, allowed: between'),
        ({'centre': (0.05, 0.0), 'radius': 0.04}, 'from the base, allowed: between 0.04'),
    ],
)
def test_circles_out_of_reach_are_refused(changes, text):
    with pytest.raises(InputError, match=re.escape(text)):
        machine(scenario=Scenario(duration=1.0, circle=CIRCLE.replace(**changes)))


def test_bad_scenarios_are_refused(tmp_path):
    file = tmp_path / 'scenario.yaml'
    points = '{duration: 1, trajectory: [{time: 0, angles_deg: [1]}]'
    for text, error in (
        ('{duration: 1.0}', 'none of circle, trajectory given'),
        (f'{points}, circle: {ROUND}}}', 'circle and trajectory given'),
        (f'{points}}}', 'has 1 values, allowed: 2'),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=rf'scenario\.yaml: .*{error}'):
            load_scenario(file, LINKS)
    with pytest.raises(InputError, match=r'duration = 0\.0033'):
        simulate(machine(scenario=POSE.replace(duration=0.0033)))


def test_bad_arms_are_refused(tmp_path):
    for text, error in (
        ('{drives: []}', 'drives has 0 entries'),
        ('{drives: [{gain: 1, rate_gain: 1}, {gain: 1, rate_gain: 1}, {gain: 1, rate_gain: 1}]}',
         'drives has 3 entries, allowed for 2 links: 2, or 1 for all'),
        ('{drives: [{gain: 1, rate_gain: 1}], sample_time: 0.0033333333333333}', 'nanoseconds'),
    ):  # fmt: skip
        file = tmp_path / 'arm.yaml'
        file.write_text(text)
        with pytest.raises(InputError, match=rf'arm\.yaml: .*{error}'):
            arm_of(LINKS, file)
    one = machine()
    with pytest.raises(InputError, match='command has 1 torques, allowed: 2'):
        one.advance(one.initial_state(), (1.0,), 0.0, 0.005)
    with pytest.raises(LongreachError, match='finite'):
        one.advance(one.initial_state(), (1e300, 0.0), 0.0, 0.005)


def test_the_machine_takes_whole_cycles_by_its_scenario():
    one = machine()
    state = one.initial_state()
    at_once = one.advance(state, BY_SCENARIO, 0.0, 0.015)
    for k in range(3):
        state = one.advance(state, BY_SCENARIO, one.controller.time(k), one.step)
    np.testing.assert_array_equal(at_once.x, state.x)
    with pytest.raises(InputError, match='whole steps'):
        one.advance(state, BY_SCENARIO, 0.0, 0.007)
