"""A truck on springs: against point masses, finite elements, and the fixed truck."""

from xml.etree import ElementTree

import numpy as np
import pytest
from boom_reference import reference_run
from test_motion import masses
from test_strain import finite_elements, shown_by

from longreach_boom.description import robot_description
from longreach_boom.kinematics import TRUCK_JOINTS, point_motion
from longreach_boom.machine import Boom
from longreach_boom.model import Load, constants_of
from longreach_boom.modes import natural_modes
from longreach_boom.motion import inertia
from longreach_boom.parameters import FrictionParameters, default_file, load_boom
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors import Sensors, load_sensors
from longreach_boom.simulation import columns_of, simulate
from longreach_boom.state import BoomState, truck_of
from longreach_boom.statics import equilibrium, potential_forces
from longreach_boom.strain import strains
from longreach_boom.visuals import marker_positions, shape_of
from longreach_dynamics.errors import LongreachError
from longreach_dynamics.hydraulics.friction import STUCK

SITE = np.radians([70.0, -50.0, -35.0, -30.0])
TIP_LOAD = Load(90.0, 3, 9.0)
RELEASE = Scenario(duration=2.0, pose='site', loads=(HangingLoad(90.0),), release=(0.0,))
N, n = 4, 12


@pytest.fixture(scope='module')
def boom():
    return load_boom(default_file().with_name('boom_on_truck.yaml'))


def places(boom, q, v):
    """Return places and velocities (particles, 2) for q, heave and pitch, and their rates."""
    truck = np.concatenate([q[n:], v[n:]])
    motions = [point_motion(boom, q[:n], v[:n], i, x, truck=truck) for i, x, _ in masses(boom)]
    return np.array([m.position for m in motions]), np.array([m.velocity for m in motions])


def energy(boom, q, v):
    """Return kinetic energy, and potential energy of weight, bending and springs [J]."""
    position, velocity = places(boom, q, v)
    dm = np.array([mass for *_, mass in masses(boom)])
    rigid = boom.truck.mass * v[n] ** 2 + boom.truck.inertia * v[n + 1] ** 2
    springs = boom.truck.heave_stiffness * q[n] ** 2 + boom.truck.pitch_stiffness * q[n + 1] ** 2
    bending = sum(
        q[N + i : n : N] @ K @ q[N + i : n : N] for i, K in enumerate(constants_of(boom).stiffness)
    )
    kinetic = (dm @ np.sum(velocity**2, axis=1) + rigid) / 2.0
    return float(kinetic), float(boom.gravity * (dm @ position[:, 1]) + (springs + bending) / 2.0)


def some_motion():
    random = np.random.default_rng(3)
    h = 0.1 * random.normal(size=n - N)
    return np.concatenate([SITE, h, [0.2, -0.3]]), random.normal(size=n + 2)


def test_velocities_are_rates_of_places(boom):
    q, v = some_motion()
    ahead, back = (places(boom, q + h * v, v)[0] for h in (1e-6, -1e-6))
    np.testing.assert_allclose(places(boom, q, v)[1], (ahead - back) / 2e-6, atol=1e-7)


@pytest.mark.slow
def test_inertia_and_weight_are_those_of_point_masses(boom):
    q, v = some_motion()
    M, f = np.empty((n + 2, n + 2)), np.empty(n + 2)
    y = np.concatenate([q[:n], v[:n], q[n:], v[n:]])
    inertia(y, constants_of(boom), M, f)
    assert v @ M @ v / 2.0 == pytest.approx(energy(boom, q, v)[0], rel=1e-11)
    for k in range(n + 2):
        for other in range(k):
            pair = np.eye(n + 2)[k] + np.eye(n + 2)[other]
            assert pair @ M @ pair / 2.0 == pytest.approx(energy(boom, q, pair)[0], rel=1e-9)
    g = potential_forces(q, constants_of(boom))
    still = np.zeros(n + 2)
    for k, step in enumerate(1e-5 * np.eye(n + 2)):
        ahead, back = (energy(boom, q + s, still)[1] for s in (step, -step))
        assert g[k] == pytest.approx((ahead - back) / 2e-5, rel=1e-5, abs=1e-1)


def test_it_is_the_boom_on_a_tilted_ground(boom):
    q, v = some_motion()
    y = np.concatenate([q[:n], v[:n], q[n:], v[n:]])
    M, M_standing = np.empty((n + 2, n + 2)), np.empty((n, n))
    inertia(y, constants_of(boom), M, np.empty(n + 2))
    tilted = np.concatenate([q[:n], v[:n]])
    tilted[0] += q[n + 1]
    inertia(tilted, constants_of(boom.replace(truck=None)), M_standing, np.empty(n))
    np.testing.assert_allclose(M[:n, :n], M_standing, rtol=1e-9, atol=1e-9 * M_standing.max())


@pytest.mark.slow
@pytest.mark.parametrize('held', [True, False])
def test_energy_stays_without_damping(boom, held):
    # Pistons that stand do no work; those that slide compress oil in closed chambers.
    friction = FrictionParameters(viscous=0.0, coulomb=1e7 * held, static=1e7 * held)
    boom = boom.replace(
        beams=tuple(b.replace(beam_damping=0.0, joint_damping=0.0) for b in boom.beams),
        cylinders=tuple(c.replace(friction=friction) for c in boom.cylinders),
        truck=boom.truck.replace(heave_damping=0.0, pitch_damping=0.0),
    )
    machine = Boom(boom, RELEASE, 2.5e-4)
    state = machine.initial_state()._replace(loads=())
    found = []
    for k in range(5):
        y, truck = state.y, truck_of(state.y, boom)
        q, v = np.concatenate([y[:n], truck[:2]]), np.concatenate([y[n : 2 * n], truck[2:]])
        kinetic, potential = energy(boom, q, v)
        found.append((kinetic, kinetic + potential + oil_energy(boom, y)))
        state = machine.advance(state, (0.0,) * 4, 0.25 * k, 0.25)
    kinetics, totals = np.array(found).T
    assert kinetics.max() > 50.0
    assert np.ptp(totals) < 1e-4 * kinetics.max()


def oil_energy(boom, y):
    """Return the energy of oil in closed chambers but for a constant [J]."""
    total = 0.0
    for i, cylinder in enumerate(boom.cylinders):
        position = cylinder.linkage.position(y[i])
        head = (cylinder.dead_length + position) * cylinder.head_area
        rod = (cylinder.stroke + cylinder.dead_length - position) * cylinder.rod_area
        for pressure, volume in ((y[2 * n + i], head), (y[2 * n + N + i], rod)):
            # -int p dV with dp = -beta dV / V.
            whole = volume + cylinder.line_volume
            total -= whole * (boom.oil.bulk_modulus + pressure)
    return total


@pytest.mark.slow
@pytest.mark.parametrize('friction', [False, True])
def test_steps_follow_the_reference(boom, friction):
    scenario = RELEASE.replace(duration=0.5, friction=friction)
    run = simulate(boom, scenario)
    states, _ = reference_run(Boom(boom, scenario), run.column('time'), 1e-9, 1e-11)
    error = np.abs(run.states - states)
    assert error[:, :n].max() < (1e-3 if friction else 1e-8)
    assert error[:, -4:-2].max() < (1e-4 if friction else 1e-8)
    assert np.ptp(states[:, -3]) > 1e-4


def test_it_settles_under_the_boom(boom):
    rest = equilibrium(boom, SITE, (TIP_LOAD,))
    heave, pitch = rest.truck
    mass = sum(m for *_, m in masses(boom))
    assert boom.truck.heave_stiffness * heave == pytest.approx(
        -boom.gravity * (mass + 90.0), rel=1e-10
    )
    position, _ = places(boom, rest.coordinates, np.zeros(n + 2))
    dm = np.array([m for *_, m in masses(boom)])
    moment = dm @ (position[:, 0] - boom.truck.x) + 90.0 * (rest.tip[0] - boom.truck.x)
    assert boom.truck.pitch_stiffness * pitch == pytest.approx(-boom.gravity * moment, rel=1e-8)
    assert Boom(boom, RELEASE).initial_state().y[-3] == pitch


@pytest.mark.slow
@pytest.mark.parametrize('pistons', ['locked', 'free'])
@pytest.mark.parametrize('pose', ['sprawled', 'site', 'upright'])
def test_modes_against_finite_elements(boom, pose, pistons):
    modes = natural_modes(boom, boom.pose(pose), (TIP_LOAD,), pistons, count=2)
    assert np.all(np.abs(modes.relative_error) < [0.0003, 0.003])
    standing = natural_modes(boom.replace(truck=None), boom.pose(pose), (TIP_LOAD,), pistons)
    assert modes.frequencies[0] < 0.985 * standing.frequencies[0]


def test_a_stiff_truck_stands(boom):
    stiff = boom.truck.replace(heave_stiffness=1e12, pitch_stiffness=1e13)
    found = natural_modes(boom.replace(truck=stiff), SITE, count=3)
    standing = natural_modes(boom.replace(truck=None), SITE, count=3)
    np.testing.assert_allclose(found.frequencies, standing.frequencies, rtol=1e-5)


@pytest.mark.parametrize('stiffness', [1e-12, 1e-6])
@pytest.mark.parametrize('spring', ['heave_stiffness', 'pitch_stiffness'])
def test_springs_that_carry_nothing_are_named(boom, spring, stiffness):
    with pytest.raises(LongreachError, match=r'springs of the truck are too weak.*stiffnesses'):
        equilibrium(boom.with_value(f'truck.{spring}', stiffness), SITE)


def test_strain_at_rest(boom):
    chain = finite_elements(boom, SITE, (TIP_LOAD,))
    q = chain.equilibrium()
    expected = shown_by(chain, boom, q)
    rest = equilibrium(boom, SITE, (TIP_LOAD,))
    np.testing.assert_allclose(rest.truck, q[-2:], rtol=1e-3)
    state = BoomState(rest.state(np.zeros(N)), np.full(N, STUCK, dtype=np.int64), (TIP_LOAD,))
    np.testing.assert_allclose(strains(boom, state), expected, rtol=0.0025)


def test_the_slewing_gear_moves_as_in_figure_15(boom):
    machine = Boom(boom, RELEASE)
    state = machine.initial_state()
    run = simulate(boom, RELEASE)
    heights = [marker_positions(boom, state._replace(y=y)).positions[0, 2] for y in run.states]
    assert marker_positions(boom, state).names[0] == 'truck'
    assert 1.8e-3 < max(heights) - heights[0] < 2.3e-3
    standing = boom.replace(truck=None)
    still = Boom(standing, RELEASE).initial_state()
    assert marker_positions(standing, still).positions[0].tolist() == [0.0, 0.0, -0.5]


def test_frames_joints_and_tables_move_along(boom):
    run = simulate(boom, RELEASE.replace(duration=0.3))
    machine = Boom(boom, RELEASE)
    state = machine.initial_state()._replace(y=run.states[-1])
    sample = machine.joint_sample(state, (0.0,) * 4)
    joints = {
        joint.get('name')
        for joint in ElementTree.fromstring(robot_description(boom).split('?>')[-1]).iter('joint')
        if joint.get('type') != 'fixed'
    }
    assert joints == set(sample.names)
    told = dict(zip(sample.names, sample.positions, strict=True))
    assert [told[name] for name in TRUCK_JOINTS] == run.states[-1, -4:-2].tolist()
    # The tip put together from a recording, markers, shapes, and sensors agree.
    columns = {column.name: column.source for column in columns_of(boom)}
    for axis in 'xz':
        source = columns[f'tip_{axis}_4']
        values = np.array([[told[part.name] for part in source.sources]])
        expected = run.column(f'tip_{axis}_4')[-1]
        assert source.function(values)[0] == pytest.approx(expected, abs=1e-12)
    tip = [run.column('tip_x')[-1], run.column('tip_z')[-1]]
    motion = marker_positions(boom, state)
    assert motion.positions[-1, [0, 2]].tolist() == pytest.approx(tip, abs=1e-12)
    shown = shape_of(boom, state)[-1].edges.mean(axis=0)[-1]
    assert shown.tolist() == pytest.approx(tip, abs=1e-12)
    shown = Sensors(boom, load_sensors(), 200.0).read(state, 0)
    y = state.y
    along = point_motion(boom, y[:n], y[n : 2 * n], 3, 9.0, truck=y[-4:]).inclination
    assert shown['inclination'][-1] == pytest.approx(float(along), abs=1e-12)
    assert [run.column(name)[-1] for name in TRUCK_JOINTS] == run.states[-1, -4:-2].tolist()
