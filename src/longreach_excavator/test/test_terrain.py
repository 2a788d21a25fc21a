"""Ground that is cut, carried and dumped: volumes, forces, and machines that work in it."""

import cmath
import itertools
import math

import numpy as np
import pytest

from longreach_dynamics.planar_chain import CENTER, CENTER_IM, FIRST, INERTIA, MASS, SECOND
from longreach_excavator.excavation import (
    bearing_of_edge,
    carry,
    contact_of_shell,
    depth_ahead,
    move_soil,
)
from longreach_excavator.kinematics import pin_places
from longreach_excavator.machine import Excavator, ExcavatorCommand
from longreach_excavator.motion import RATE, SIZE, SOIL
from longreach_excavator.parameters import load_excavator
from longreach_excavator.scenario import Scenario, dig_scenario
from longreach_excavator.simulation import columns_of, series, simulate
from longreach_excavator.soil import resistance_at
from longreach_excavator.terrain import (
    FIRM,
    SHELL,
    VOLUME,
    bucket_volumes,
    flat_ground,
    heights,
    places,
)
from longreach_machine.machine import BY_SCENARIO
from longreach_machine.scenarios import ValveCommand

C = 17e3


def volume_of_ground(ground, state, bottom):
    """Return the volume (...) [m^3] of soil above the height ``bottom`` [m] and in the bucket."""
    piled = (heights(state) - bottom).sum(axis=-1) * ground.cell * ground.width
    return piled + state[..., VOLUME]


def cut_direction(run):
    """Return the direction across DN in which the bucket cuts, (rows, 2)."""
    attitude = run.states[:, :RATE].sum(axis=1)
    return np.column_stack([np.sin(attitude), -np.cos(attitude)])


@pytest.fixture(scope='module')
def constants(excavator):
    """Numbers of a machine with terrain."""
    return Excavator(excavator, dig_scenario(depth='terrain')).constants


@pytest.mark.parametrize(
    'pose', [(20.0, -95.0, 39.45), (20.0, -95.0, -15.0), (10.0, -60.0, -40.0)]
)
def test_boom_lifts_the_bucket_out_of_the_ground(excavator, pose):
    """The law without terrain holds it: with its valve open the boom hangs at the supply."""
    deep = float(pin_places(excavator, np.radians(pose))[-1].imag)
    lifts = Scenario(
        duration=2.0,
        pose_deg=pose,
        cohesion=C,
        valve_commands=(ValveCommand(0.0, (1.0, 0.0, 0.0)),),
    )
    held = simulate(excavator, lifts.replace(surface=deep + 0.69))
    # Ground that has fallen on the bucket: no scenario begins in the ground.
    machine = Excavator(excavator, lifts.replace(surface=deep, depth='terrain'))
    start = machine.initial_state()
    start.y[SIZE + FIRM : SIZE + FIRM + machine.constants.ground.cells] += 0.69
    _, states = machine.advance_recorded(start, BY_SCENARIO, 0, 2000, 5)
    table = series(machine, np.zeros(len(states)), states)
    free = dict(zip(columns_of(machine).names, table.T, strict=True))
    assert held.column('tip_z')[-1] < deep + 0.1
    assert held.column('p_head_boom')[-1] == pytest.approx(288e5, rel=1e-3)
    assert held.column('soil_z')[-1] < -45e3
    assert free['tip_z'][-1] > deep + 1.5
    # Nothing has pulled it down.
    assert free['soil_z'].min() >= 0.0


def test_bucket_opens_in_the_ground(excavator):
    """After 2.5 s of digging, in which the tooth gets 0.6 m deep."""
    commands = (ValveCommand(0.0, (0.0, 0.0, 1.0)), ValveCommand(2.5, (0.0, 0.0, -1.0)))
    scenario = Scenario(duration=5.5, pose='dig', cohesion=C, valve_commands=commands)
    held, free = (
        np.ptp(simulate(excavator, scenario.replace(depth=depth)).column('theta_4')[500:])
        for depth in ('surface', 'terrain')
    )
    assert free > math.radians(60.0)
    assert held < 0.5 * free


def test_first_cut_has_the_force_of_the_depth(excavator):
    """In flat ground the law is that of depth: surface at the tooth, once it is mobilised."""
    run = simulate(excavator, dig_scenario(cohesion=C, depth='terrain', duration=3.0))
    rows = (run.column('time') > 0.3) & (run.column('bucket_volume') < 0.6)
    depth = run.column('tip_z')[0] - run.column('tip_z')
    np.testing.assert_allclose(run.column('depth')[rows], depth[rows], atol=1e-9)
    law = resistance_at(run.parameters.soil, depth)
    assert rows.sum() > 300
    assert not run.column('soil_moment')[rows].any()
    # The pin D moves, so that the tooth does not go quite across DN: only its way along the
    # direction of cut meets the law, that along DN the edge's bearing.
    ways = cut_direction(run)
    share = (run.states[:, SOIL : SOIL + 2] * ways).sum(axis=1)
    assert share[rows].min() > 0.95
    along = run.column('soil_x') * ways[:, 0] + run.column('soil_z') * ways[:, 1]
    np.testing.assert_allclose(-along[rows], (law * share)[rows], rtol=1e-9)


def test_rising_edge_meets_the_whole_resistance(constants):
    """Where the edge has advanced, the force is against its way, downwards too; else it is 0."""
    scenario = Scenario(duration=1.0, pose_deg=(20.0, -95.0, -75.0), depth='terrain', cohesion=C)
    machine = Excavator(load_excavator(), scenario)
    state = machine.initial_state()
    ground, y = machine.constants.ground, state.y
    seen = machine.observed(state)
    tooth, cut = complex(seen['tip_x'], seen['tip_z']), ground.cut * np.exp(1j * y[:RATE].sum())
    assert cut.imag > 0.8
    # A cut of 0.4 m that ends at the tooth.
    uncut = places(ground) < tooth.real - 0.5 * ground.cell
    y[SIZE + 1 : SIZE + 1 + ground.cells] = np.where(uncut, tooth.imag + 0.4, tooth.imag - 2.0)
    law = float(resistance_at(machine.parameters.soil, np.array([0.4]))[0])
    for share, force in ((1.0, law), (0.5, 0.5 * law), (-1.0, 0.0)):
        y[SOIL : SOIL + 2] = share * cut.real, share * cut.imag
        seen = machine.observed(state)
        assert seen['soil_x'] == pytest.approx(-force * cut.real)
        assert seen['soil_z'] == pytest.approx(-force * cut.imag)


def pull(run):
    """Return the downward force of the soil [N] in rows where the edge has not risen, (rows,)."""
    cut, mobilised = cut_direction(run), run.states[:, SOIL : SOIL + 2]
    rises = np.zeros(len(cut), dtype=bool)
    for way in (cut, np.column_stack([-cut[:, 1], cut[:, 0]])):
        rises |= ((mobilised * way).sum(axis=1) > 0.0) & (way[:, 1] > 0.0)
    return np.where(rises, 0.0, np.minimum(run.column('soil_z'), 0.0))


def test_cycle_digs_carries_and_dumps(cycle):
    ground, states = cycle.machine.constants.ground, cycle.states[:, SIZE:]
    volumes = volume_of_ground(ground, states, -5.0)
    assert np.ptp(volumes) < 1e-12 * volumes[0]
    carried = cycle.column('bucket_volume')
    # Struck capacity, within the heaped one; all of it falls again.
    assert 0.85 < carried.max() < 0.95
    assert carried[-1] == 0.0
    assert cycle.column('bucket_mass').max() == pytest.approx(carried.max() * 17e3 / 9.81)
    # What has been dug lies on the ground as loose soil, most of it beyond the trench.
    cells = ground.cells
    loose = states[-1, 1 + cells :].sum() * ground.cell * ground.width
    firm = states[:, 1 : 1 + cells]
    dug = np.maximum(firm[0] - firm[-1], 0.0).sum() * ground.cell * ground.width
    assert loose == pytest.approx(dug, rel=1e-12)
    assert dug > 1.2
    heap = heights(states[-1]) - heights(states[0])
    assert heap.max() > 0.2
    assert 7.0 < places(ground)[heap.argmax()] < 8.0
    # Nowhere steeper than the angle of repose where it is loose.
    steep = np.abs(np.diff(heights(states[-1]))) / ground.cell
    both = (states[-1, 1 + cells : -1] > 1e-9) & (states[-1, 2 + cells :] > 1e-9)
    assert steep[both].max() < math.tan(math.radians(35.0)) * 1.01
    assert not pull(cycle).any()
    assert cycle.energy_error() < 1e-6
    assert not cycle.message


def test_loaded_chain_is_that_of_the_links(constants):
    """Against a chain that is built with the masses put together by hand."""
    excavator, ground = load_excavator(), constants.ground
    state = flat_ground(ground, 0.0)
    state[VOLUME] = 0.7
    table = constants.chain.copy()
    carry(ground, state, table)
    soil, empty = 0.7 * ground.density, excavator.bucket.mass
    own = excavator.bucket.center * np.exp(1j * math.radians(excavator.bucket.center_deg))
    center = (empty * own + soil * ground.middle) / (empty + soil)
    inertia = excavator.bucket.inertia + empty * abs(own - center) ** 2
    inertia += soil * (ground.gyration + abs(ground.middle - center) ** 2)
    bucket = excavator.bucket.replace(
        mass=empty + soil,
        center=abs(center),
        center_deg=math.degrees(np.angle(center)),
        inertia=inertia,
    )
    expected = excavator.replace(bucket=bucket).chain().table()
    for row in (MASS, CENTER, CENTER_IM, INERTIA, FIRST, SECOND):
        np.testing.assert_allclose(table[row], expected[row], rtol=1e-12)


def test_random_driving_conserves_the_soil_and_never_pulls(excavator):
    random = np.random.default_rng(8)
    commands = tuple(
        ValveCommand(0.25 * k, tuple(random.uniform(-1.0, 1.0, 3).round(2))) for k in range(40)
    )
    for pose, surface in (('dig', None), ('reach', 0.5)):
        scenario = Scenario(
            duration=10.0, pose=pose, surface=surface, depth='terrain', valve_commands=commands
        )
        run = simulate(excavator, scenario)
        assert not run.message
        ground, states = run.machine.constants.ground, run.states[:, SIZE:]
        volumes = volume_of_ground(ground, states, -10.0)
        assert np.ptp(volumes) < 1e-12 * volumes[0]
        assert states[:, VOLUME].min() >= 0.0
        assert states[:, 1 + ground.cells :].min() >= 0.0
        assert not pull(run).any()
        assert run.energy_error() < 1e-4


def test_adaptive_steps_cut_the_same(excavator):
    scenario = dig_scenario(cohesion=C, depth='terrain', duration=1.0)
    fixed, fine = (
        simulate(excavator, scenario, tolerance=tolerance).column('bucket_volume')[-1]
        for tolerance in (0.0, 1e-8)
    )
    assert fine == pytest.approx(fixed, rel=1e-3)


def test_soil_that_is_dumped_into_a_pit_lies_where_it_falls(standard):
    """The ground deep below is reached only near the machine, the air above it beyond."""
    pit = Scenario(duration=8.0, pose_deg=(14.0, -29.6, -30.0), depth='terrain', surface=-5.0)
    machine = Excavator(standard, pit)
    ground, state = machine.constants.ground, machine.initial_state()
    y = state.y.copy()
    y[SIZE + VOLUME] = 0.5
    falls = pin_places(standard, y[:RATE])[-1].real
    opens = ExcavatorCommand((0.0, 0.0, -1.0))
    loose = machine.advance(state._replace(y=y), opens, 0.0, 4.0).y[SIZE + FIRM + ground.cells :]
    assert loose.sum() * ground.cell * ground.width == pytest.approx(0.5, rel=1e-9)
    assert loose @ places(ground) / loose.sum() == pytest.approx(falls, abs=0.05)


def test_bucket_holds_what_stays_in_it():
    inside, middle, gyration, held = bucket_volumes(35.0)
    # The polygon by hand: shoelace over the shell's corners.
    corners = [0.14 - 0.02j, 0.14 + 0.30j, 0.30 + 0.46j, 0.55 + 0.50j, 0.78 + 0.38j, 0.95 + 0.11j]
    x, z = np.array([(p.real, p.imag) for p in [*corners, 1.0 + 0.0j]]).T
    area = 0.5 * abs(np.sum(x * np.roll(z, -1) - z * np.roll(x, -1)))
    assert inside == pytest.approx(area, rel=0.01)
    assert 0.4 < middle.real < 0.6
    assert 0.15 < middle.imag < 0.3
    assert 0.02 < gyration < 0.1
    turn = np.linspace(0.0, 360.0, len(held))
    # Level with its mouth up it is heaped; upside down or with its tooth ahead it is empty.
    assert held.argmax() == pytest.approx(len(held) / 2, abs=3)
    assert held.max() > 1.2 * inside
    assert not held[(turn < 45.0) | (turn > 285.0)].any()
    # A flatter angle of repose holds less.
    assert bucket_volumes(20.0)[3].max() < held.max()


def test_tooth_takes_what_is_above_its_path(constants):
    ground = constants.ground
    state = flat_ground(ground, -1.0)
    z4, place = -1j, complex(7.02, -1.4)
    # The trench in which the bucket stands.
    state[1 : 1 + ground.cells][places(ground) > place.real] = place.imag
    whole = volume_of_ground(ground, state, -3.0)
    # DN hangs down: the direction of cut is towards the machine, and the mouth is closed.
    while place.real > 6.0:
        after = place - 0.003
        move_soil(after - ground.tooth * z4, place, after, z4, -0.5 * math.pi, ground, state)
        place = after
    assert state[VOLUME] == pytest.approx(0.4 * (7.02 - place.real) * ground.width, rel=0.04)
    assert volume_of_ground(ground, state, -3.0) == pytest.approx(whole, rel=1e-14)
    assert depth_ahead(place, -1.0, ground, state) == pytest.approx(0.4, abs=1e-12)
    # Of loose soil above the tooth a share counts, of air all.
    state[1 + ground.cells :] = 0.2
    for height, depth in ((-0.9, 0.1 * ground.loose_share), (2.2, -3.0)):
        found = depth_ahead(complex(5.0, height), -1.0, ground, state)
        assert found == pytest.approx(depth, abs=1e-12)
    state[1 + ground.cells :] = 0.0
    cut = (places(ground) > 6.1) & (places(ground) < 6.9)
    assert heights(state)[cut] == pytest.approx(-1.4, abs=1e-12)
    # Back through its own cut, and up, it takes nothing.
    before = state.copy()
    for step in (0.01, 0.01j, 0.003 + 0.002j):
        move_soil(place + step - ground.tooth * z4, place, place + step, z4, -1.6, ground, before)
    assert before[VOLUME] == state[VOLUME]


def ground_of_soil(excavator, cohesion=C, friction=29.0, cell=0.05):
    """Return the terrain's constants of another soil."""
    changes = {
        'soil.cohesion': cohesion,
        'soil.earthmoving.internal_friction_deg': friction,
        'soil.earthmoving.blade_friction_deg': 0.0,
        'soil.earthmoving.adhesion': 0.0,
        'soil.terrain.cell': cell,
    }
    machine = Excavator(excavator.with_values(changes), dig_scenario(depth='terrain'))
    return machine.constants.ground


def move_bucket(ground, state, way, z4):
    """Return the forces on the shell, x + j z [N], while the tooth goes its way slowly."""
    forces = []
    for before, after in itertools.pairwise(way):
        force = contact_of_shell(after, 1e-9 * (after - before), 0.0, z4, ground, state)
        forces.append(complex(*force[:2]))
        attitude = cmath.phase(z4)
        move_soil(after - ground.tooth * z4, before, after, z4, attitude, ground, state)
    return np.array(forces)


def hansen(cohesion, friction, tilt, above, width):
    """Return the bearing capacity [Pa] in soil of 17 kN/m^3; Hansen (1970)."""
    phi, weight = math.radians(friction), 17e3
    n_q = math.exp(math.pi * math.tan(phi)) * math.tan(math.radians(45.0 + 0.5 * friction)) ** 2
    n_gamma = 1.5 * (n_q - 1.0) * math.tan(phi) * math.exp(-2.7 * tilt * math.tan(phi))
    n_q *= math.exp(-2.0 * tilt * math.tan(phi))
    n_c = (n_q - 1.0) / math.tan(phi) if friction else math.pi + 2.0 - 2.0 * tilt
    return cohesion * n_c + weight * above * n_q + 0.5 * weight * width * n_gamma


@pytest.mark.parametrize('loose', [False, True])
@pytest.mark.parametrize('depth', [0.15, 0.3, 0.5])
@pytest.mark.parametrize(
    ('cohesion', 'friction'), [(0.0, 29.0), (17e3, 29.0), (17e3, 0.0), (60e3, 15.0), (1e6, 40.0)]
)
def test_bucket_that_stands_on_its_tooth_is_borne_by_hansens_pressure(
    excavator, cohesion, friction, depth, loose
):
    """The sum over the drawn contour below flat ground, DN upright."""
    ground = ground_of_soil(excavator, cohesion, friction)
    state = flat_ground(ground, -1.0 if not loose else -3.0)
    state[1 + ground.cells :] = 2.0 if loose else 0.0
    tooth = complex(6.0, -1.0 - depth)
    if loose:
        cohesion, friction = 0.0, 35.0
    corners = np.array([*SHELL, 1.0]) * ground.tooth - ground.tooth
    line = np.concatenate([np.linspace(a, b, 4000) for a, b in itertools.pairwise(corners)]) * -1j
    ways = np.diff(line)
    middle, length, normal = line[:-1] + 0.5 * ways, np.abs(ways), 1j * ways
    inside = (middle.imag < depth) & (length > 0.0)
    width = np.ptp(middle.real[inside])
    expected = sum(
        hansen(cohesion, friction, math.atan2(abs(n.real), -n.imag), depth - m.imag, width)
        * max(-n.imag, 0.0)
        * ground.width
        for m, n in zip(middle[inside], normal[inside], strict=True)
    )
    force = contact_of_shell(tooth, 0j, 0.0, -1j, ground, state)
    assert force[1] == pytest.approx(expected, rel=0.15)
    edge = hansen(cohesion, friction, 0.0, depth, ground.edge) * ground.edge * ground.width
    found = bearing_of_edge(tooth, -1j, ground, state)
    assert found == (0.0 if loose else pytest.approx(edge, rel=1e-12))


def test_imprint_of_the_tooth_stays(excavator):
    ground = ground_of_soil(excavator)
    state = flat_ground(ground, -1.0)
    whole = volume_of_ground(ground, state, -3.0)
    down = 6.0 - 1j * np.arange(0.99, 1.3, 5e-4)
    pressed = move_bucket(ground, state, down, -1j)
    imprint = state.copy()
    deepest = heights(imprint).min()
    assert deepest == pytest.approx(-1.3, abs=ground.rebound + 0.7 * ground.cell)
    # The soil has heaved beside the bucket, on the side of its back.
    heave = places(ground)[heights(imprint) > -0.99]
    assert heave.min() > 6.0
    assert volume_of_ground(ground, state, -3.0) == pytest.approx(whole, rel=1e-14)
    # Up, and again: nothing bears until it is where it was.
    move_bucket(ground, state, down[::-1], -1j)
    firm = slice(1, 1 + ground.cells)
    np.testing.assert_array_equal(state[firm], imprint[firm])
    again = move_bucket(ground, state, down, -1j)
    early = down[1:].imag > -1.2
    assert again[early].imag.max() < 0.05 * pressed[early].imag.max()
    assert again[-1].imag == pytest.approx(pressed[-1].imag, rel=0.05)


def test_hard_ground_carries_the_machine(excavator):
    """The boom presses the tooth down with 45 kN."""
    deep, commands = {}, (ValveCommand(0.0, (-0.2, 0.0, 0.0)),)
    pose = {'pose_deg': (20.0, -95.0, -15.0), 'depth': 'terrain', 'valve_commands': commands}
    for cohesion in (0.0, 17e3, 1e6):
        run = simulate(excavator, Scenario(duration=1.5, cohesion=cohesion, **pose))
        force = run.column('soil_z')
        assert run.energy_error() < 1e-5
        sunk = run.column('tip_z')[0] - run.column('tip_z')
        deep[cohesion] = sunk[np.argmax(force > 45e3)] if force.max() > 45e3 else math.inf
    assert 0.15 < deep[0.0] < 0.35
    assert 0.03 < deep[17e3] < 0.1
    assert 0.0 < deep[1e6] < 0.01


def test_heap_is_pushed_back_first(excavator):
    resistance = {}
    for cell in (0.02, 0.05, 0.1):
        ground = ground_of_soil(excavator, cell=cell)
        state, x = flat_ground(ground, -1.0), places(ground)
        state[1 + ground.cells :] = np.maximum(0.6 - 0.7 * np.abs(x - 6.0), 0.0)
        whole = volume_of_ground(ground, state, -3.0)
        heap = state[1 + ground.cells :].sum() * cell
        # As at 0.5 m/s in steps of 1 ms: heaps take time to slide.
        forces = move_bucket(ground, state, np.arange(4.5, 7.5, 5e-4) - 0.99j, -1j)
        assert volume_of_ground(ground, state, -3.0) == pytest.approx(whole, rel=1e-14)
        # Level behind the bucket, all else in front of it; firm ground is untouched.
        left, loose = x < 7.4, state[1 + ground.cells :]
        assert heights(state)[left].max() < -0.93
        assert loose[~left].sum() * cell > 0.75 * heap
        assert np.ptp(state[1 : 1 + ground.cells]) == 0.0
        # Between a prism at the angle of repose that slides in front of an upright face, and
        # level soil in front of one that leans by 45 deg (Hansen).
        high = heights(state).max() + 1.0
        least = 0.5 * 17e3 * high**2 * ground.width
        assert (
            0.8 * least < -forces[-1].real < hansen(0.0, 35.0, math.pi / 4, 1 / 17e3, 0.0) * least
        )
        assert forces.real.max() <= 0.0
        resistance[cell] = -forces[-2000:].real.mean()
    assert 0.85 < resistance[0.05] / resistance[0.02] < 1.0
    assert 0.7 < resistance[0.1] / resistance[0.02] < 1.0


def test_bucket_grades_a_heap_with_its_bottom(excavator):
    ground = ground_of_soil(excavator)
    state, x = flat_ground(ground, -1.0), places(ground)
    state[1 + ground.cells :] = np.maximum(0.4 - 0.7 * np.abs(x - 6.0), 0.0)
    whole = volume_of_ground(ground, state, -3.0)
    # DN level, mouth up; the bottom of the shell 0.2 m above the ground.
    low = 0.5 * ground.tooth
    way = np.arange(3.0, 6.6, 2e-3) + 1j * (-0.8 + low)
    forces = move_bucket(ground, state, way, -1.0 + 0.0j)
    under = x < way[-1].real
    assert heights(state)[under].max() == pytest.approx(-0.8, abs=0.03)
    assert volume_of_ground(ground, state, -3.0) == pytest.approx(whole, rel=1e-14)
    assert -forces.real.min() > 1e3
    # Only the rebound behind the bucket pushes it forward.
    assert forces.real.max() < -0.2 * forces.real.min()


def test_dig_does_not_depend_on_the_cells(excavator):
    swept = []
    for cell in (0.02, 0.05, 0.1):
        scenario = dig_scenario(cohesion=25e3, depth='terrain', duration=3.0)
        run = simulate(excavator.with_value('soil.terrain.cell', cell), scenario)
        swept.append(math.degrees(run.column('swept')[-1]))
    assert np.ptp(swept) < 0.5
    assert run.column('soil_force').max() > 90e3


def test_ground_presses_on_the_back_and_never_pulls(constants):
    ground = constants.ground
    state = flat_ground(ground, -1.0)
    # DN level, mouth up: the shell's bottom is 0.79 m below the line DN.
    z4, low = -1.0 + 0.0j, complex(5.0, -1.0 + 0.78)
    fx, fz, _, power, stiffness, _ = contact_of_shell(low, 0j, 0.0, z4, ground, state)
    assert fz > 0.0
    assert abs(fx) < fz
    assert power == 0.0
    assert stiffness > 0.0
    deeper = contact_of_shell(low - 0.01j, 0j, 0.0, z4, ground, state)
    assert deeper[1] > fz
    down = contact_of_shell(low, -0.1j, 0.0, z4, ground, state)
    assert down[1] > fz
    assert down[3] > 0.0
    # On the way out it lets go.
    assert contact_of_shell(low, 1.0j, 0.0, z4, ground, state)[:2] == (0.0, 0.0)
    assert contact_of_shell(low + 1.0j, 0j, 0.0, z4, ground, state)[1] == 0.0
