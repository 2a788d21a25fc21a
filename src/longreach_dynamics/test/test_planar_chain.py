"""Planar chains against Lagrange's equations, Pinocchio, free bodies, and energy."""

import dataclasses
import math
import pickle
import sys
from typing import Any

import casadi
import numpy as np
import pytest
from numba import njit
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from longreach_dynamics import _array_calls, planar_chain
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.planar_chain import (
    PlanarChain,
    Wrench,
    accelerations,
    add_wrench,
    newton_euler,
    place_links,
)

SIZES = [1, 2, 3, 4, 5, 6]
# Three links of an excavator of 20 t, and its centres of gravity off the line.
EXCAVATOR = PlanarChain(
    (5.16, 2.59, 1.33), (1566.0, 735.0, 432.0), ((2.8, 0.21), (0.8, 0.28), (0.78, 0.52)),
    (3920.0, 730.0, 107.0),
)  # fmt: skip


def random_chain(random, size):
    """Return a chain with centres of gravity anywhere."""
    return PlanarChain(
        random.uniform(0.3, 3.0, size),
        random.uniform(0.5, 20.0, size),
        np.stack([random.uniform(0.0, 2.0, size), random.uniform(-4.0, 4.0, size)], axis=1),
        random.uniform(0.1, 10.0, size),
        gravity=random.uniform(-12.0, 12.0),
    )


def random_wrenches(random, size, count):
    """Return wrenches on places anywhere; links may get several or none."""
    return [
        Wrench(int(random.integers(size)), *random.normal(0.0, [2.0, 3.0, 50.0, 50.0, 50.0]))
        for _ in range(count)
    ]


@dataclasses.dataclass(frozen=True)
class Lagrange:
    """A chain's equations from its energies, and the kinematics that they come from."""

    mass_matrix: Any
    bias: Any
    energy: Any
    virtual_work: Any  # of the wrenches
    centers: Any  # places, velocities and accelerations of the centres of gravity, (2, n) each
    joints: Any  # places (2, n)
    places: Any  # of the wrenches (2, m)


def lagrange(chain, wrenches=()):
    """Derive the equations of motion of a chain anew."""
    n = chain.size
    q, v, a = (casadi.SX.sym(name, n) for name in 'qva')
    theta = casadi.cumsum(q)

    def place(origin, link, distance, angle):
        direction = theta[link] + angle
        return origin + distance * casadi.vertcat(casadi.cos(direction), casadi.sin(direction))

    joints, centers = [casadi.SX.zeros(2)], []
    for i, (distance, angle) in enumerate(chain.centers):
        centers.append(place(joints[i], i, distance, angle))
        joints.append(place(joints[i], i, chain.lengths[i], 0.0))
    places = [place(joints[w.link], w.link, w.distance, w.angle) for w in wrenches]
    velocities = [casadi.jtimes(center, q, v) for center in centers]
    kinetic, potential = casadi.SX(0), casadi.SX(0)
    rates = casadi.cumsum(v)
    for i in range(n):
        kinetic += chain.masses[i] * casadi.sumsqr(velocities[i]) / 2
        kinetic += chain.inertias[i] * rates[i] ** 2 / 2
        potential += chain.masses[i] * chain.gravity * centers[i][1]
    by_rate = casadi.gradient(kinetic, v)
    bias = casadi.jtimes(by_rate, q, v) - casadi.gradient(kinetic - potential, q)
    work = casadi.SX.zeros(n)
    for wrench, point in zip(wrenches, places, strict=True):
        work += casadi.jacobian(point, q).T @ casadi.vertcat(wrench.fx, wrench.fz)
        work += casadi.gradient(theta[wrench.link], q) * wrench.moment
    r, s = casadi.horzcat(*centers), casadi.horzcat(*velocities)
    acceleration = casadi.jtimes(s, q, v) + casadi.jtimes(s, v, a)
    return Lagrange(
        casadi.Function('f', [q], [casadi.jacobian(by_rate, v)]),
        casadi.Function('f', [q, v], [bias]),
        casadi.Function('f', [q, v], [kinetic + potential]),
        casadi.Function('f', [q], [work]),
        casadi.Function('f', [q, v, a], [r, s, acceleration]),
        casadi.Function('f', [q], [casadi.horzcat(*joints[:-1])]),
        casadi.Function('f', [q], [casadi.horzcat(*places)]),
    )


def vector(value):
    """Return a column of CasADi as (n,)."""
    return np.asarray(value, dtype=float).ravel()


def assert_close(got, expected, share=1e-10):
    """Compare numbers of one size, so that small ones need not be better than large ones."""
    expected = np.asarray(expected, dtype=float)
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= share * np.abs(expected).max()


@pytest.mark.slow
@pytest.mark.parametrize('size', SIZES)
def test_equations_are_lagranges(size):
    random = np.random.default_rng(size)
    for _ in range(3):
        chain = random_chain(random, size)
        exact = lagrange(chain)
        for _ in range(4):
            q, v, a = random.normal(0.0, [[2.0], [3.0], [10.0]], (3, size))
            M, bias = np.array(exact.mass_matrix(q)), vector(exact.bias(q, v))
            assert_close(chain.mass_matrix(q), M)
            assert_close(chain.bias(q, v), bias)
            assert_close(chain.inverse_dynamics(q, v, a), M @ a + bias)
            torque = random.normal(0.0, 100.0, size)
            assert_close(chain.forward_dynamics(q, v, torque), np.linalg.solve(M, torque - bias))


@pytest.mark.parametrize('size', SIZES)
def test_wrenches_do_the_virtual_work_of_their_places(size):
    random = np.random.default_rng(10 + size)
    for count in (1, 2, 7):
        chain, wrenches = random_chain(random, size), random_wrenches(random, size, count)
        exact = lagrange(chain, wrenches)
        q, v, a = random.normal(size=(3, size))
        work, without = vector(exact.virtual_work(q)), chain.inverse_dynamics(q, v, a)
        assert_close(chain.inverse_dynamics(q, v, a, wrenches), without - work)
        M = chain.mass_matrix(q)
        expected = np.linalg.solve(M, work - vector(exact.bias(q, v)))
        assert_close(chain.forward_dynamics(q, v, np.zeros(size), wrenches), expected)


def pinocchio_model(pinocchio, chain):
    """Return a chain as Pinocchio's model, in the x-z plane of its world."""
    model = pinocchio.Model()
    model.gravity.linear = np.array([0.0, 0.0, -chain.gravity])
    parent, length = 0, 0.0
    for i in range(chain.size):
        # Turning x towards z is a rotation about -y.
        joint = pinocchio.JointModelRevoluteUnaligned(np.array([0.0, -1.0, 0.0]))
        at = pinocchio.SE3(np.eye(3), np.array([length, 0.0, 0.0]))
        parent = model.addJoint(parent, joint, at, f'joint_{i}')
        distance, angle = chain.centers[i]
        center = distance * np.array([math.cos(angle), 0.0, math.sin(angle)])
        inertia = pinocchio.Inertia(chain.masses[i], center, chain.inertias[i] * np.eye(3))
        model.appendBodyToJoint(parent, inertia, pinocchio.SE3.Identity())
        length = chain.lengths[i]
    return model


def pinocchio_forces(pinocchio, data, wrenches):
    """Return wrenches as spatial forces in the links' frames; ``data`` knows the pose."""
    forces = pinocchio.StdVec_Force()
    forces.extend([pinocchio.Force.Zero() for _ in data.oMi])
    for wrench in wrenches:
        turn = data.oMi[wrench.link + 1].rotation
        force = turn.T @ np.array([wrench.fx, 0.0, wrench.fz])
        place = wrench.distance * np.array([math.cos(wrench.angle), 0.0, math.sin(wrench.angle)])
        moment = np.cross(place, force) - np.array([0.0, wrench.moment, 0.0])
        forces[wrench.link + 1] += pinocchio.Force(force, moment)
    return forces


@pytest.mark.parametrize('size', SIZES)
def test_equations_are_pinocchios(size):
    pinocchio = pytest.importorskip('pinocchio')
    random = np.random.default_rng(20 + size)
    chain = random_chain(random, size)
    model = pinocchio_model(pinocchio, chain)
    data = model.createData()
    for count in (0, 1, 3, 7):
        wrenches = random_wrenches(random, size, count)
        q, v, a = random.normal(0.0, [[2.0], [3.0], [10.0]], (3, size))
        assert_close(chain.bias(q, v), pinocchio.nonLinearEffects(model, data, q, v))
        M = np.triu(pinocchio.crba(model, data, q))
        assert_close(np.triu(chain.mass_matrix(q)), M)
        pinocchio.forwardKinematics(model, data, q)
        loads = pinocchio_forces(pinocchio, data, wrenches)
        torque = pinocchio.rnea(model, data, q, v, a, loads)
        assert_close(chain.inverse_dynamics(q, v, a, wrenches), torque)
        # Forces are in the links' axes.
        forces = [at.rotation @ f.linear for at, f in zip(data.oMi, data.f, strict=True)]
        assert_close(chain.reactions(q, v, a, wrenches)[:, :2], np.array(forces)[1:, [0, 2]])
        expected = pinocchio.aba(model, data, q, v, torque, loads)
        assert_close(chain.forward_dynamics(q, v, torque, wrenches), expected)


def cross(r, f):
    """Return the moments of forces, shapes (2, ...); x towards z is positive."""
    return r[0] * f[1] - r[1] * f[0]


@pytest.mark.parametrize('size', SIZES)
def test_each_link_with_its_reactions_is_a_free_body(size):
    random = np.random.default_rng(30 + size)
    chain, wrenches = random_chain(random, size), random_wrenches(random, size, 4)
    exact = lagrange(chain, wrenches)
    q, v, a = random.normal(0.0, [[2.0], [3.0], [10.0]], (3, size))
    got = chain.reactions(q, v, a, wrenches)
    # The free end is carried by nothing.
    carried = np.vstack([got, np.zeros(3)])
    r, _, acceleration = (np.array(value) for value in exact.centers(q, v, a))
    joints, places = np.array(exact.joints(q)), np.array(exact.places(q))
    tip = joints[:, -1] + chain.lengths[-1] * np.array([np.cos(q.sum()), np.sin(q.sum())])
    joints = np.column_stack([joints, tip])
    size_of_forces = np.abs(carried[:, :2]).max()
    for i, mass in enumerate(chain.masses):
        here, on_next = carried[i, :2], carried[i + 1, :2]
        force = here - on_next + np.array([0.0, -mass * chain.gravity])
        moment = carried[i, 2] - carried[i + 1, 2]
        moment += cross(joints[:, i] - r[:, i], here) - cross(joints[:, i + 1] - r[:, i], on_next)
        for wrench, place in zip(wrenches, places.T, strict=True):
            if wrench.link == i:
                push = np.array([wrench.fx, wrench.fz])
                force = force + push
                moment += cross(place - r[:, i], push) + wrench.moment
        assert np.abs(force - mass * acceleration[:, i]).max() < 1e-12 * size_of_forces
        assert abs(moment - chain.inertias[i] * a[: i + 1].sum()) < 1e-11 * size_of_forces


def swing(chain, start, times):
    """Return states (times, 2 n) of a chain without torques."""
    n = chain.size

    def derivative(_, x):
        return np.concatenate([x[n:], chain.forward_dynamics(x[:n], x[n:], np.zeros(n))])

    span = times[0], times[-1]
    return solve_ivp(derivative, span, start.ravel(), 'DOP853', times, rtol=1e-12, atol=1e-12).y.T


@pytest.mark.slow
@pytest.mark.parametrize('size', [*SIZES, 'excavator'])
def test_free_swing_keeps_its_energy(size):
    chain, interval = EXCAVATOR, 0.05
    start = np.array([[-0.5, 0.4, -0.3], [0.2, 0.0, -0.5]])
    if isinstance(size, int):
        random = np.random.default_rng(100 + size)
        chain, interval = random_chain(random, size), 0.01
        start = random.normal(size=(2, size))
    energy, n = lagrange(chain).energy, chain.size
    states = swing(chain, start, interval * np.arange(101))
    values = np.array([float(energy(row[:n], row[n:])) for row in states])
    # Against what moves to and fro.
    kinetic = [row[n:] @ chain.mass_matrix(row[:n].copy()) @ row[n:] / 2.0 for row in states]
    assert np.ptp(kinetic) > (0.5 if isinstance(size, int) else 1e4)
    assert np.abs(values - values[0]).max() < 1e-10 * np.max(kinetic)


def test_one_link_has_the_period_of_a_pendulum():
    chain = PlanarChain([1.0], [3.0], [(0.7, 0.0)], [0.2])
    amplitude = 2.0
    rate = math.sqrt(3.0 * 9.81 * 0.7 / (0.2 + 3.0 * 0.7**2))
    period = 4.0 / rate * ellipk(math.sin(amplitude / 2.0) ** 2)
    start = -math.pi / 2.0 + amplitude
    states = swing(chain, np.array([start, 0.0]), period / 40 * np.arange(41))
    np.testing.assert_allclose(states[-1], [start, 0.0], atol=1e-9)
    np.testing.assert_allclose(states[20], [start - 2.0 * amplitude, 0.0], atol=1e-9)


@njit
def moved(q, v, a, table):
    """Return torques and accelerations as the compiled code of a machine gets them."""
    torque = a.copy()
    place_links(q, v, table)
    add_wrench(1, 0.5, -0.25, 3e3, 4e3, 50.0, table)
    newton_euler(torque, table)
    again = torque.copy()
    definite = accelerations(again, table)
    return torque, again, definite


def test_compiled_code_gets_the_same():
    q, v, a = np.random.default_rng(60).normal(size=(3, 3))
    torque, again, definite = moved(q, v, a, EXCAVATOR.table())
    wrench = Wrench(1, math.hypot(0.5, 0.25), math.atan2(-0.25, 0.5), 3e3, 4e3, 50.0)
    assert definite
    assert_close(torque, EXCAVATOR.inverse_dynamics(q, v, a, [wrench]), 1e-13)
    assert_close(again, a, 1e-11)


@pytest.mark.parametrize(
    'convert',
    [
        list,
        tuple,
        lambda x: x.astype(int),
        lambda x: x.astype(np.float32),
        lambda x: x.astype(complex).real,
        lambda x: x.astype('>f8'),
        lambda x: np.repeat(x, 2)[::2],
        lambda x: np.frombuffer(b'.' + x.tobytes(), np.uint8)[1:].view(float),
        np.ma.array,
        lambda x: pickle.loads(pickle.dumps(x)),
    ],
)
def test_vectors_of_any_kind_give_the_same(convert):
    q, v, a = np.array([1.0, -2.0, 3.0]), np.array([0.0, 2.0, -1.0]), np.array([5.0, 0.0, 1.0])
    wrenches = [Wrench(0, 1.0, 2.0, 3.0, 4.0)]
    for method in (
        EXCAVATOR.inverse_dynamics, EXCAVATOR.forward_dynamics, EXCAVATOR.reactions,
    ):  # fmt: skip
        for loads in (None, wrenches):
            expected = method(q, v, a, loads)
            np.testing.assert_array_equal(method(*map(convert, (q, v, a)), loads), expected)
            np.testing.assert_array_equal(
                method(q, v, convert(a), np.array(loads or ()).reshape(-1, 6)), expected
            )
    np.testing.assert_array_equal(EXCAVATOR.mass_matrix(convert(q)), EXCAVATOR.mass_matrix(q))


def test_calls_keep_no_argument():
    q, v, a = arrays = np.ones(3), np.ones(3), np.ones(3)
    rows = np.array([Wrench(0, 1.0, 2.0, 3.0, 4.0)])
    bad = np.full(3, math.nan)
    before = [sys.getrefcount(array) for array in (*arrays, rows, bad)]
    for _ in range(10):
        EXCAVATOR.inverse_dynamics(q, v, a)
        EXCAVATOR.forward_dynamics(q, v, a, rows)
        EXCAVATOR.reactions(q, v, a, rows)
        with pytest.raises(InputError):
            EXCAVATOR.inverse_dynamics(q, bad, a)
    assert [sys.getrefcount(array) for array in (*arrays, rows, bad)] == before


def test_arrays_are_taken_by_numba_where_headers_are_unknown(monkeypatch):
    assert _array_calls._headers_are_known()
    monkeypatch.setattr(_array_calls, '_FLAGS', _array_calls._DATA)
    assert not _array_calls._headers_are_known()
    q, v, torque = np.array([[0.4, -1.1, 0.7], [0.3, -0.8, 1.2], [1.0, 2.0, 3.0]])
    expected = EXCAVATOR.forward_dynamics(q, v, torque).tolist()
    kernel = planar_chain._forward._kernel
    monkeypatch.setattr(planar_chain, '_forward', _array_calls.ArrayCall(kernel))
    assert EXCAVATOR.forward_dynamics(q, v, torque).tolist() == expected
    assert planar_chain._forward.call == planar_chain._forward._by_numba
    # What has to be converted, and what cannot be.
    assert EXCAVATOR.forward_dynamics(list(q), v, torque.astype(int)).tolist() == expected
    assert EXCAVATOR.forward_dynamics(q, v, torque, np.zeros((2, 6))).tolist() == expected
    for bad in (np.zeros(2), np.zeros((3, 1)), np.full(3, math.nan)):
        with pytest.raises(InputError):
            EXCAVATOR.forward_dynamics(bad, v, torque)


def test_arguments_stay_and_results_are_new():
    arrays = np.random.default_rng(80).normal(size=(3, 3))
    before = arrays.copy()
    for method in (EXCAVATOR.inverse_dynamics, EXCAVATOR.forward_dynamics, EXCAVATOR.reactions):
        first = method(*arrays)
        kept = first.copy()
        method(*(arrays + 1.0))
        np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(arrays, before)


GOOD = {
    'lengths': [1.0, 2.0], 'masses': [3.0, 4.0], 'centers': [(0.5, 0.0), (0.0, 1.0)],
    'inertias': [0.0, 0.3], 'gravity': 9.81,
}  # fmt: skip


@pytest.mark.parametrize(
    ('name', 'value', 'text'),
    [
        ('lengths', [], 'lengths is empty, allowed: one link or more'),
        ('lengths', [1.0, 0.0], r'lengths\[1\] = 0, allowed: \(0, inf\) m'),
        ('masses', [3.0], r'masses has shape \(1,\), allowed: \(2,\)'),
        ('masses', [3.0, -1.0], r'masses\[1\] = -1, allowed: \(0, inf\) kg'),
        ('masses', ['heavy', 1.0], r"masses = \['heavy', 1.0\], allowed: numbers of shape \(2,\)"),
        ('centers', [0.5, 0.2], r'centers has shape \(2,\), allowed: \(2, 2\)'),
        ('centers', [(-0.5, 0.0), (0.0, 1.0)], r'centers\[0\]\[0\] = -0.5, allowed: \[0, inf\) m'),
        ('inertias', [-1.0, 0.3], r'inertias\[0\] = -1, allowed: \[0, inf\) kg m\^2'),
        ('inertias', [0.0, 0.0], r'inertias\[1\] = 0, allowed: \(0, inf\).* centre at the joint'),
        ('gravity', math.inf, 'gravity = inf, allowed: finite numbers'),
    ],
)
def test_impossible_links_are_refused(name, value, text):
    PlanarChain(**GOOD)
    with pytest.raises(InputError, match=text):
        PlanarChain(**(GOOD | {name: value}))


@pytest.mark.parametrize(
    ('place', 'value', 'text'),
    [
        (0, np.zeros(2), r'q has shape \(2,\), allowed: \(3,\)'),
        (1, np.array([0.0, math.nan, 0.0]), r'v\[1\] = nan, allowed: finite numbers'),
        (2, None, r'(a|torque)( = None| has shape \(\)), allowed'),
        (2, 'abc', r"(a|torque) = 'abc', allowed: numbers of shape \(3,\)"),
        (3, [Wrench(3, 0.0, 0.0, 0.0, 0.0)], r'wrenches\[0\]\[0\] = 3, allowed: links 0 to 2'),
        (3, np.array([[0.5] * 6]), r'wrenches\[0\]\[0\] = 0.5, allowed: links 0 to 2'),
        (3, [Wrench(0, math.nan, 0.0, 0.0, 0.0)], r'wrenches\[0\]\[1\] = nan, allowed: finite'),
        (3, np.zeros((2, 5)), r'wrenches has shape \(2, 5\), allowed: \(2, 6\)'),
    ],
)
@pytest.mark.parametrize('method', ['inverse_dynamics', 'forward_dynamics', 'reactions'])
def test_impossible_arguments_are_refused(method, place, value, text):
    arguments = [np.zeros(3), np.zeros(3), np.zeros(3), None]
    arguments[place] = value
    with pytest.raises(InputError, match=text):
        getattr(EXCAVATOR, method)(*arguments)
    with pytest.raises(InputError, match=r'q has shape \(4,\), allowed: \(3,\)'):
        EXCAVATOR.mass_matrix(np.zeros(4))


def test_inertias_beyond_floating_point_are_told():
    chain = PlanarChain([1.0, 1.0], [1e-20, 1.0], [(1.0, 0.0)] * 2, [0.0, 0.0])
    with pytest.raises(LongreachError, match='not positive definite in floating point'):
        chain.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))
