"""Steps of the boom: energy, oil, stick and slip, end stops, valves."""

import math

import numpy as np
import pytest
from boom_reference import Phase
from scipy.integrate import simpson

from longreach_boom import motion
from longreach_boom.kinematics import point_motion
from longreach_boom.machine import Boom
from longreach_boom.model import FUNCTIONS, MASS, Load, boom_bases, constants_of, workspace
from longreach_boom.motion import DONE, INDEFINITE, RUNAWAY, UNSETTLED, advance_motion, evaluate
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_boom.state import BoomState, StateParts, flows_of, piston_positions
from longreach_dynamics.hydraulics import Actuators
from longreach_dynamics.hydraulics.actuators import BULK_MODULUS, STATIC
from longreach_dynamics.hydraulics.friction import (
    AT_HEAD_END,
    AT_ROD_END,
    INWARDS,
    OUTWARDS,
    STUCK,
)
from longreach_dynamics.kernels import read_only
from longreach_dynamics.linkages import pistons_and_arms

STEP = 1e-3
TIP = HangingLoad(90.0)


@pytest.fixture(scope='session')
def boom(paper_boom):
    """The boom whose chambers directional valves alone close, as the balances here assume."""
    return paper_boom


def of_all(boom, **friction):
    """Return a boom with other friction at all its pistons."""
    return boom.replace(
        cylinders=tuple(c.replace(friction=c.friction.replace(**friction)) for c in boom.cylinders)
    )


def with_damping(boom, factor):
    """Return a boom whose beams and joints are damped so much more."""
    return boom.replace(
        beams=tuple(
            b.replace(joint_damping=b.joint_damping * factor, beam_damping=b.beam_damping * factor)
            for b in boom.beams
        )
    )


def run(constants, start, duration, spools=None, step=STEP):
    """Return the states and the modes after 0, 1, 2.. steps."""
    N, steps = start.modes.size, round(duration / step)
    y, modes = start.y.copy(), start.modes.copy()
    table = np.empty((steps, y.size))
    mode_table = np.empty((steps, N), dtype=np.int64)
    commands = np.zeros(N) if spools is None else np.array(spools)
    ended = advance_motion(y, modes, commands, constants, step, 0, steps, 1, table, mode_table)
    assert ended == (steps, DONE)
    return np.vstack([start.y, table]), np.vstack([start.modes, mode_table])


def at_rest(boom, *loads, pose='site', friction=True):
    """Return the constants of a boom without loads, and its state at rest with them."""
    scenario = Scenario(duration=1.0, pose=pose, loads=loads, friction=friction)
    machine = Boom(boom, scenario)
    return machine.constants(()), machine.initial_state()


def flows(p, states):
    """Return the flows through directional valves, which test_pressures.py tests."""
    N, vapour = p.length.size, p.actuators.vapour
    head, rod, spools = np.split(states[:, -3 * N :], 3, axis=1)
    head, rod = np.maximum(head, vapour), np.maximum(rod, vapour)
    return flows_of(StateParts(states[:, :N], states, head, rod, spools), p)


def oil(p, states):
    """Return volumes and oil, as a volume at pressure 0, of head and rod sides (rows, 2 N)."""
    a = p.actuators
    N = p.length.size
    positions, _ = pistons_and_arms(p.linkage, states[:, :N])
    volumes = np.hstack(
        [a.head_volume + a.head_area * positions, a.rod_volume - a.rod_area * positions]
    )
    return volumes, volumes * np.exp(states[:, -3 * N : -N] / a.bulk_modulus)


def masses(boom):
    """Return beam, place [m] and mass [kg] of particles that stand for the beams."""
    found = []
    for i, basis in enumerate(boom_bases(boom)):
        x, weights = basis.beam.gauss()
        found += [
            (i, *pair) for pair in zip(x, basis.beam.mass_per_length(x) * weights, strict=True)
        ]
    return found


def energy(boom, p, loads, states):
    """Return kinetic energy, weight, bending and compression of the oil (rows,) [J]."""
    a = p.actuators
    N, F = p.length.size, p.functions
    n = N * (1 + F)
    q, v = states[:, :n], states[:, n : 2 * n]
    total = np.zeros(len(states))
    M, f, dy = np.empty((n, n)), np.empty(n), np.empty(states.shape[1])
    for row, y in enumerate(states):
        evaluate(y, np.ones(N, dtype=np.int64), np.zeros(N), p, M, f, dy)
        total[row] = 0.5 * v[row] @ M @ v[row]
    for i, stiffness in enumerate(p.stiffness):
        h = q[:, N + i :: N]
        total += 0.5 * np.einsum('ri,ij,rj->r', h, stiffness, h)
    hanging = [(load.beam, load.position, load.mass) for load in loads]
    for i, place, mass in (*hanging, *masses(boom)):
        total += mass * p.gravity * point_motion(boom, q, v, i, place).position[:, 1]
    # int p dV down to the volume that the oil has at pressure 0; none below the vapour's.
    volumes, amount = oil(p, states)
    pressures = np.maximum(states[:, -3 * N : -N], 0.0)
    assert a.vapour == 0.0
    there = volumes * np.exp(np.minimum(states[:, -3 * N : -N], 0.0) / a.bulk_modulus)
    total += np.sum(a.bulk_modulus * (amount - there) - pressures * there, axis=1)
    return total


def power(p, states, modes, through=None):
    """Return what flows ``through`` give, or directional valves, less damping and friction [W]."""
    a = p.actuators
    N, F = p.length.size, p.functions
    n = N * (1 + F)
    v = states[:, n : 2 * n]
    _, arms = pistons_and_arms(p.linkage, states[:, :N])
    velocity = arms * v[:, :N]
    moving = np.where(np.abs(modes) == 1, modes, 0)
    total = -np.sum(p.joint_damping * v[:, :N] ** 2 + a.viscous * velocity**2, axis=1)
    total -= np.sum(a.coulomb * moving * velocity, axis=1)
    for i in range(N):
        h = v[:, N + i :: N]
        total -= np.einsum('ri,ij,rj->r', h, p.damping[i], h)
    into, out = flows(p, states) if through is None else through
    specific = a.bulk_modulus * np.expm1(
        np.maximum(states[:, -3 * N : -N], a.vapour) / a.bulk_modulus
    )
    return np.asarray(total + np.sum(specific * np.hstack([into, -out]), axis=1))


def test_energy_is_kept_without_friction_and_damping(boom):
    ideal = with_damping(of_all(boom, viscous=0.0, coulomb=0.0, static=0.0), 0.0)
    p, start = at_rest(ideal, TIP)
    drifts = []
    for step in (1e-3, 5e-4):
        states, _ = run(p, start, 2.0, step=step)
        total = energy(ideal, p, (), states[:: round(1e-2 / step)])
        swing = np.ptp(0.5 * ideal.gravity * p.mass.sum() * states[:, 0]) + 1.0
        drifts.append(np.abs(total - total[0]).max() / swing)
    assert drifts[0] < 1e-3
    # Of fourth order in the states: dissipation by Runge-Kutta even shrinks with the fifth power.
    assert drifts[1] < drifts[0] / 12.0


@pytest.mark.parametrize('friction', [True, False])
@pytest.mark.parametrize(
    'spools', [(0.0, 0.0, 0.0, 0.0), (0.3, -0.4, 0.5, -1.0)], ids=['closed', 'open']
)
def test_energy_balance(boom, friction, spools):
    p, start = at_rest(boom, TIP, friction=friction)
    step = 2.5e-4
    states, modes = run(p, start, 2.0, spools, step)
    total = energy(boom, p, (), states)
    # Friction acts during a step in the direction of its beginning or, after breakaway, its end.
    turned = np.where(np.abs(modes[:-1]) == 1, modes[:-1], modes[1:])
    first, last = power(p, states[:-1], turned), power(p, states[1:], turned)
    supplied = np.cumsum(0.5 * step * (first + last))
    turnover = np.sum(0.5 * step * np.abs(first + last))
    assert turnover > 5.0
    assert total[1:] - total[0] == pytest.approx(supplied, abs=2e-3 * turnover)
    if not friction:
        smooth = simpson(power(p, states, modes), dx=step)
        assert total[-1] - total[0] == pytest.approx(smooth, abs=1e-6 * turnover)


@pytest.mark.parametrize('pose', ['sprawled', 'site', 'upright'])
def test_unforced_boom_is_passive(boom, pose):
    p, start = at_rest(boom, HangingLoad(200.0), pose=pose)
    states, modes = run(p, start, 4.0)
    total = energy(boom, p, (), states)
    assert np.any(modes[1:] != modes[:-1])
    assert total[-1] < total[0] - 1.0
    growth = np.diff(total)
    smooth = np.all(modes[1:] == modes[:-1], axis=1)
    assert np.all(growth[smooth] < 1e-9 * np.ptp(total))
    # Friction of the old direction lasts until the end of a step: it gains what it does meanwhile.
    assert growth.max() < 2e-6 * np.ptp(total)
    assert growth[growth > 0.0].sum() < 1e-5 * np.ptp(total)


def test_a_boom_out_of_oil_is_passive_too(boom):
    load = (Load(600.0, 3, 9.0),)
    p = constants_of(boom, load)
    states, _ = run(p, at_rest(boom)[1], 3.0)
    total = energy(boom, p, load, states)
    assert states[:, 28:32].min() < 0.0
    assert total[-1] < total[0] - 1.0
    assert np.diff(total).max() < 2e-6 * np.ptp(total)


def test_pistons_that_stand_are_held_by_friction(boom):
    # (26) and (27) with all other pistons as they are, at the beginning of every step.
    p, start = at_rest(boom, TIP)
    states, modes = run(p, start, 8.0)
    loose, closest = 0, 0.0
    table = p.actuators.table.copy()
    table[:, STATIC] *= 1e3
    unyielding = read_only(p._replace(actuators=Actuators(table)))
    no_rows = np.empty((0, states.shape[1])), np.empty((0, 4), dtype=np.int64)
    for y, then, now, after in zip(states[:-1], states[1:], modes[:-1], modes[1:], strict=True):
        # One that moved was let go, even if the impulse of another stopped it in the same step.
        way = np.sign(then[:4] - y[:4]).astype(np.int64)
        let_go = (now == STUCK) & ((after != STUCK) | (way != 0))
        during = np.where(let_go, np.where(after == STUCK, way, after), now)
        phase = Phase(p, during, np.zeros(4))
        share = np.abs(phase.net_forces(y)) / p.actuators.static
        assert np.all(share[during == STUCK] <= 1.0 + 1e-9)
        closest = max(closest, share[during == STUCK].max(initial=0.0))
        if np.any(let_go):
            loose += 1
            # Not one that would have held: the forces after a step in which none may come loose.
            held, kept = y.copy(), now.copy()
            advance_motion(held, kept, np.zeros(4), unyielding, STEP, 0, 1, 0, *no_rows)
            needed = np.abs(Phase(p, kept, np.zeros(4)).net_forces(held))
            assert np.any(needed[let_go] > p.actuators.static[let_go])
    assert loose > 30
    assert closest > 0.99


def test_all_that_stand_are_asked_at_once(boom):
    # Pressures off balance, all stuck: what comes loose lets go of others that would have held.
    p, start = at_rest(boom)
    random = np.random.default_rng(2)
    several, followers, different = 0, 0, 0
    for _ in range(300):
        y = start.y.copy()
        y[24:28] += random.normal(size=4) * 1.2 * p.actuators.static / p.actuators.head_area
        states, modes = run(p, start._replace(y=y), 1e-6, step=1e-6)
        after = modes[-1]
        assert np.all(states[-1, 12:16] * after >= 0.0)
        net = Phase(p, after, np.zeros(4)).net_forces(y)
        assert np.all(np.abs(net[after == STUCK]) <= p.actuators.static[after == STUCK])
        loosened = Phase(p, start.modes, np.zeros(4)).loosened(y).modes
        different += not np.array_equal(after, loosened)
        first = np.abs(Phase(p, start.modes, np.zeros(4)).net_forces(y)) > p.actuators.static
        several += np.count_nonzero(after) > 2
        followers += bool(np.any((after != STUCK) & ~first))
    assert several > 20
    assert followers > 5
    # One that comes loose may be stopped at once by another that follows.
    assert different < 30


@pytest.mark.parametrize('share', [0.9, 1.1])
def test_a_piston_turns_without_a_stop_where_friction_cannot_hold_it(resized, share):
    boom = resized(1)
    p, start = at_rest(boom)
    y = start.y.copy()
    y[6] -= share * p.actuators.static[0] / p.actuators.head_area[0]
    y[3] = 1e-6
    before = BoomState(y, np.array([OUTWARDS]))
    states, modes = run(p, before, 1e-3)
    if share < 1.0:
        assert (modes[1, 0], states[1, 3]) == (STUCK, 0.0)
    else:
        assert modes[1, 0] == INWARDS
        # It turns after less than a microsecond; friction acts outwards from then on.
        slope = Phase(p, np.array([INWARDS]), np.zeros(1)).derivative(0.0, y)[3]
        assert states[1, 3] == pytest.approx(1e-3 * slope, rel=0.05)
        assert states[1, 3] < -1e-5


@pytest.mark.slow
@pytest.mark.parametrize('moved', [False, True])
def test_held_boom_does_not_creep_in_ten_minutes(boom, moved):
    machine = Boom(boom, Scenario(duration=1.0, pose='site', loads=(TIP,)))
    state, loads = machine.initial_state(), machine.initial_state().loads
    if moved:
        # Let go of the load, and calm down with more damping: pistons then stick off balance.
        damped = constants_of(with_damping(boom, 20.0))
        states, modes = run(damped, state, 60.0, step=2.5e-4)
        assert np.all(modes[-1] == STUCK)
        travel = np.ptp(pistons_and_arms(damped.linkage, states[:, :4])[0], axis=0)
        assert travel.min() > 1e-5
        state, loads = BoomState(states[-1], modes[-1]), ()
        forces = Phase(damped, modes[-1], np.zeros(4)).net_forces(state.y)
        assert np.abs(forces).max() > 100.0
    y, modes = state.y.copy(), state.modes.copy()
    p, closed = machine.constants(loads), np.zeros(4)
    table, mode_table = np.empty((1200, y.size)), np.empty((1200, 4), dtype=np.int64)
    ended = advance_motion(y, modes, closed, p, STEP, 0, 600_000, 500, table, mode_table)
    assert ended == (600_000, DONE)
    tip = point_motion(boom, table[:, :12], table[:, 12:24], 3, 9.0).position
    assert np.ptp(tip, axis=0).max() < 1e-6


@pytest.mark.parametrize('mass', [0.0, 600.0])
def test_oil_changes_by_flows_alone(boom, mass):
    # With the large mass, which sinks, chambers run out of oil and are filled again.
    p = constants_of(boom, (Load(mass, 3, 9.0),) if mass else ())
    spools = (-0.4, -0.3, -0.5, -1.0) if mass else (0.4, -0.3, -0.5, 1.0)
    _, start = at_rest(boom)
    if mass:
        states, modes = run(p, start, 0.8)
        start = BoomState(states[-1], modes[-1])
        assert start.y[28:32].max() < -1e6
    states, _ = run(p, start, 2.0, spools)
    _, amount = oil(p, states)
    into, out = flows(p, states)
    density = np.exp(np.maximum(states[:, 24:32], p.actuators.vapour) / p.actuators.bulk_modulus)
    gained = simpson(np.hstack([into, -out]) * density, dx=STEP, axis=0)
    assert amount[-1] - amount[0] == pytest.approx(gained, rel=1e-3)
    assert np.abs(gained).min() > 1e-5


def test_cavitation_clamps_and_recovers(boom):
    scenario = Scenario(
        duration=30.0, pose='site', attach=(Attachment(250.0, time=0.0),), release=(6.0,)
    )
    result = simulate(boom, scenario)
    p = constants_of(boom)
    states = result.states
    assert states[:, 28].min() < -1e6  # oil that is missing, as a pressure
    low = states[:, 28] < 0.0
    assert np.all(result.column('p_rod_1')[low] == 0.0)
    assert result.column('p_rod_1').min() == 0.0
    assert result.column('force_1')[low] == pytest.approx(
        result.column('p_head_1')[low] * p.actuators.head_area[0]
    )
    assert 'cylinder_1' in result.cavitated


@pytest.mark.parametrize('friction', [True, False])
@pytest.mark.parametrize(('spool', 'end'), [(1.0, AT_ROD_END), (-1.0, AT_HEAD_END)])
def test_piston_stops_at_the_end_of_its_stroke_and_leaves_again(boom, friction, spool, end):
    cylinder = boom.cylinders[3]
    near = cylinder.linkage.angle(cylinder.stroke - 0.03 if spool > 0.0 else 0.03)
    # Folded back, the last beam hangs down: its valve would not hold it up otherwise.
    others = (60.0, -30.0, -20.0) if spool > 0.0 else (80.0, 5.0, 5.0)
    pose = (*others, math.degrees(near))
    scenario = Scenario(duration=1.0, pose_deg=pose, friction=friction)
    machine = Boom(boom, scenario)
    p = machine.constants(())
    states, modes = run(p, machine.initial_state(), 6.0, (0.0, 0.0, 0.0, spool))
    positions = piston_positions(states[:, :4], p)[:, 3]
    speeds = np.abs(np.gradient(positions, STEP))
    beyond = np.maximum(positions - cylinder.stroke, -positions).max()
    assert -1e-12 <= beyond <= 1.01 * speeds.max() * STEP
    hit = int(np.argmax(modes[:, 3] == end))
    assert hit > 100
    # It bounces off a few times, and stays as long as the valve pushes.
    settled = modes[-500:, 3]
    assert np.all(settled == end)
    assert np.all(states[-500:, 15] == 0.0)
    pushing = states[-1, 27 if spool > 0.0 else 31]
    relieved = states[-1, 31 if spool > 0.0 else 27]
    assert pushing == pytest.approx(p.actuators.supply, rel=1e-3)
    assert relieved == pytest.approx(p.actuators.tank, rel=1e-2)
    # The stop costs energy: it does no work.
    total = energy(boom, p, (), states[hit - 1 : hit + 1])
    fed = power(p, states[hit - 1 : hit], modes[hit - 1 : hit])[0] * STEP
    assert total[1] < total[0] + max(fed, 0.0) + 1e-3
    back = BoomState(states[-1], modes[-1])
    states, modes = run(p, back, 2.0, (0.0, 0.0, 0.0, -spool))
    assert spool * (positions[-1] - piston_positions(states[-1:, :4], p)[0, 3]) > 0.02


def test_steps_end_with_the_last_finite_state(boom):
    p, start = at_rest(boom)
    # Oil some thousand times as stiff: unstable at this step.
    table = p.actuators.table.copy()
    table[:, BULK_MODULUS] *= 3e3
    p = read_only(p._replace(actuators=Actuators(table)))
    y, modes = start.y.copy(), start.modes.copy()
    y[12:16] = 1e-3
    modes[:] = OUTWARDS
    table, mode_table = np.empty((5000, y.size)), np.empty((5000, 4), dtype=np.int64)
    taken, status = advance_motion(y, modes, np.zeros(4), p, STEP, 0, 5000, 1, table, mode_table)
    assert 0 < taken < 5000
    assert status == RUNAWAY
    assert np.all(np.isfinite(y))
    assert np.array_equal(y, table[taken - 1])
    assert np.array_equal(modes, mode_table[taken - 1])


def heavy_and_light(boom):
    """Return constants whose mass matrix is not positive definite."""
    p = constants_of(boom)
    beams, F = p.beams.copy(), p.functions
    beams[:, MASS] *= -1.0
    beams[:, FUNCTIONS + 4 * F : FUNCTIONS + 4 * F + F * F] *= -1.0
    return read_only(p._replace(beams=beams))


def test_steps_end_where_the_mass_matrix_is_not_positive_definite(boom):
    start = Boom(boom, Scenario(duration=1.0, pose='site')).initial_state()
    y, modes = start.y.copy(), np.full(4, OUTWARDS)
    tables = np.empty((0, y.size)), np.empty((0, 4), dtype=np.int64)
    p = heavy_and_light(boom)
    assert advance_motion(y, modes, np.zeros(4), p, STEP, 0, 5, 0, *tables) == (0, INDEFINITE)
    assert np.array_equal(y, start.y)


def test_modes_that_change_without_end_are_told(boom, monkeypatch):
    start = Boom(boom, Scenario(duration=1.0, pose='site')).initial_state()
    for name in ('_has_passed', '_stop', '_derivative'):
        monkeypatch.setattr(motion, name, lambda *_: True)
    M, work, dy = np.empty((12, 12)), workspace(4, 12), np.empty(start.y.size)
    status = motion._change_modes.py_func(
        start.y, start.modes, np.zeros(4), constants_of(boom), M, work, dy
    )
    assert status == UNSETTLED


def test_given_values_never_compile_anew(resized):
    """Kernels of the first boom serve all; tests before this one may have compiled others."""
    compiled = []
    for count in (1, 2, 5):
        for functions in (1, 2, 3):
            boom = resized(count, functions=functions)
            machine = Boom(boom, Scenario(duration=1.0, pose='site'))
            command = (0.1,) * count
            machine.advance(machine.initial_state(), command, 0.0, 0.01)
            compiled.append((len(advance_motion.signatures), len(evaluate.signatures)))
    assert set(compiled) == {compiled[0]}
