"""The equations of motion against textbooks and Lagrange, of particles at Henikl's (1) to (7)."""

import functools
import math
from typing import Any, NamedTuple

import casadi
import numpy as np
import pytest
from scipy import linalg
from scipy.optimize import brentq

from longreach_boom.kinematics import point_motion
from longreach_boom.model import Load, boom_bases, constants_of
from longreach_boom.motion import evaluate
from longreach_boom.parameters import Distribution
from longreach_boom.statics import potential_forces, tangent_stiffness

GAUSS = np.polynomial.legendre.leggauss(10)


class Lagrange(NamedTuple):
    """What the second derivation gives: CasADi functions of q and v."""

    mass: Any  # (n, n)
    bias: Any  # (n, 1) c + g
    kinetic: Any
    potential: Any
    weight: Any  # (n, 1) dV/dq
    stiffness: Any  # (n, n) d^2 V / dq^2
    joints: Any  # (2, N + 1) places of all joints, then of the tip


def rotation(cosine, sine):
    return casadi.vertcat(casadi.horzcat(cosine, -sine), casadi.horzcat(sine, cosine))


def quadrature(edges):
    """Return places and weights of a quadrature that is exact for degree 19 between edges."""
    nodes, weights = GAUSS
    halves = np.diff(edges)[:, None] / 2.0
    return (edges[:-1, None] + halves * (nodes + 1.0)).ravel(), (halves * weights).ravel()


@functools.lru_cache(maxsize=8)
def lagrange(boom, loads=()):
    """Derive the equations of motion of a boom anew."""
    N, F = boom.size, boom.ritz.functions
    q, v = casadi.SX.sym('q', N * (1 + F)), casadi.SX.sym('v', N * (1 + F))
    turned, origin = casadi.SX.eye(2), casadi.SX.zeros(2, 1)
    kinetic, potential = casadi.SX(0), casadi.SX(0)
    joints = [origin]
    for i, (parameters, basis) in enumerate(zip(boom.beams, boom_bases(boom), strict=True)):
        x, weights = quadrature(basis.beam.grid)
        h = casadi.vertcat(*(q[N * (1 + e) + i] for e in range(F)))
        masses = parameters.mass_per_length.at(x, parameters.length) * weights
        own = [load for load in loads if load.beam == i]
        places = np.append(x, [load.position for load in own])
        masses = np.append(masses, [load.mass for load in own])
        turned = turned @ rotation(casadi.cos(q[i]), casadi.sin(q[i]))
        bent = casadi.DM(basis.at(places)).T @ h
        r = turned @ casadi.horzcat(casadi.DM(places), bent).T + casadi.repmat(
            origin, 1, places.size
        )
        velocity = casadi.reshape(casadi.jtimes(casadi.vec(r), q, v), 2, places.size)
        kinetic += casadi.dot(casadi.sum1(velocity**2).T, casadi.DM(masses)) / 2
        potential += boom.gravity * casadi.dot(r[1, :].T, casadi.DM(masses))
        stiffness = boom.youngs_modulus * parameters.second_moment.at(x, parameters.length)
        curvature = casadi.DM(basis.at(x, 2)).T @ h
        potential += casadi.dot(curvature**2, casadi.DM(stiffness * weights)) / 2
        end = parameters.length
        deflection, slope = (casadi.dot(casadi.DM(basis.at(end, k)), h) for k in (0, 1))
        origin = origin + turned @ casadi.vertcat(end, deflection)
        joints.append(origin)
        if boom.ritz.rotation == 'printed':
            turned = turned @ rotation(1, slope)
        else:
            turned = turned @ rotation(casadi.cos(slope), casadi.sin(slope))
    by_rate = casadi.gradient(kinetic, v)
    weight = casadi.gradient(potential, q)
    bias = casadi.jtimes(by_rate, q, v) - casadi.gradient(kinetic, q) + weight
    outputs = (
        casadi.jacobian(by_rate, v),
        bias,
        kinetic,
        potential,
        weight,
        casadi.jacobian(weight, q),
        casadi.horzcat(*joints),
    )
    return Lagrange(*(casadi.Function('f', [q, v], [output]) for output in outputs))


def mass_and_bias(boom, q, v, loads=()):
    """Return M(q) and c + D q' + g of the model."""
    N, n = boom.size, q.size
    y = np.concatenate([q, v, np.zeros(3 * N)])
    M, f, dy = np.full((n, n), math.nan), np.full(n, math.nan), np.empty(y.size)
    evaluate(y, np.ones(N, dtype=np.int64), np.zeros(N), constants_of(boom, loads), M, f, dy)
    return M, f


def damping(boom):
    """Return D of (8), or of Kelvin and Voigt, shape (n, n)."""
    N, F = boom.size, boom.ritz.functions
    D = np.zeros((N * (1 + F), N * (1 + F)))
    for i, (parameters, basis) in enumerate(zip(boom.beams, boom_bases(boom), strict=True)):
        D[i, i] = parameters.joint_damping
        x, weights = quadrature(basis.beam.grid)
        rows = N * (1 + np.arange(F)) + i
        if boom.ritz.damping == 'distributed':
            eta = basis.at(x)
            D[np.ix_(rows, rows)] = parameters.beam_damping * (eta * weights) @ eta.T
        else:
            curvature = basis.at(x, 2)
            EI = boom.youngs_modulus * parameters.second_moment.at(x, parameters.length)
            D[np.ix_(rows, rows)] = parameters.loss_time * (curvature * weights * EI) @ curvature.T
    return D


def random_state(random, boom):
    """Return coordinates with large angles and deflections, and rates."""
    N = boom.size
    n = N * (1 + boom.ritz.functions)
    q = np.append(random.uniform(-math.pi, math.pi, N), random.normal(0.0, 0.3, n - N))
    return q, random.normal(size=n)


def assert_equations_agree(boom, loads, random, states=4):
    expected = lagrange(boom, loads)
    D = damping(boom)
    for _ in range(states):
        q, v = random_state(random, boom)
        M, f = mass_and_bias(boom, q, v, loads)
        M_expected = expected.mass(q, v).full()
        # Each entry beside the size that positive definiteness allows it.
        sizes = np.sqrt(np.diag(M_expected))
        assert np.abs((M - M_expected) / np.outer(sizes, sizes)).max() < 1e-9
        f_expected = expected.bias(q, v).full().ravel() + D @ v
        assert np.abs(f - f_expected).max() < 1e-9 * np.abs(f_expected).max()


@pytest.mark.slow_after(2)
@pytest.mark.parametrize('rotation', ['exact', 'printed'])
@pytest.mark.parametrize('count', [1, 2, 3, 4, 5])
def test_equations_are_lagranges(count, rotation, random_boom, resized):
    random = np.random.default_rng(10 * count + len(rotation))
    for functions in (1, 2, 3) if count < 4 else (count - 2,):
        basis = str(random.choice(['printed', 'moment']))
        boom = random_boom(random, count, functions=functions, rotation=rotation, basis=basis)
        loads = tuple(
            Load(random.uniform(1.0, 500.0), beam, random.uniform(0.0, boom.beams[beam].length))
            for beam in random.integers(0, count, 3).tolist()
        )
        assert_equations_agree(boom, loads, random)
    assert_equations_agree(resized(count, rotation=rotation), (), random)


@pytest.mark.parametrize('rotation', ['exact', 'printed'])
@pytest.mark.parametrize('basis', ['moment', 'printed'])
def test_installed_boom_is_lagranges(basis, rotation, boom):
    random = np.random.default_rng(4)
    changed = boom.replace(ritz=boom.ritz.replace(basis=basis, rotation=rotation))
    assert_equations_agree(changed, (Load(90.0, 3, 9.0), Load(200.0, 1, 3.0)), random)


def test_kelvin_voigt_damping_is_stiffness_times_loss_time(random_boom):
    random = np.random.default_rng(5)
    boom = random_boom(random, 3, functions=3, damping='kelvin_voigt')
    assert_equations_agree(boom, (), random)


@pytest.mark.parametrize('rotation', ['exact', 'printed'])
def test_weight_and_stiffness_are_the_potentials_derivatives(rotation, random_boom):
    random = np.random.default_rng(8)
    boom = random_boom(random, 3, rotation=rotation)
    loads = (Load(70.0, 2, boom.beams[2].length),)
    expected, constants = lagrange(boom, loads), constants_of(boom, loads)
    for _ in range(5):
        q, v = random_state(random, boom)
        weight, stiffness = expected.weight(q, v).full().ravel(), expected.stiffness(q, v).full()
        g, K = potential_forces(q, constants), tangent_stiffness(q, constants)
        assert np.abs(g - weight).max() < 1e-10 * np.abs(weight).max()
        assert np.abs(K - stiffness).max() < 1e-7 * np.abs(stiffness).max()
        assert np.array_equal(K, K.T)


def uniform(resized, support, **ritz):
    boom = resized(1, **ritz)
    beam = boom.beams[0].replace(
        mass_per_length=Distribution(root=120.0, tip=120.0),
        second_moment=Distribution(root=2e-4, tip=2e-4),
        support=support,
    )
    return boom.replace(beams=(beam,), gravity=0.0)


def wave_numbers(boom, locked):
    """Return beta L of the natural frequencies of one beam, with its joint locked or free."""
    n = 1 + boom.ritz.functions
    M, _ = mass_and_bias(boom, np.zeros(n), np.zeros(n))
    K = tangent_stiffness(np.zeros(n), constants_of(boom))
    first = 1 if locked else 0
    squares = linalg.eigh(K[first:, first:], M[first:, first:], eigvals_only=True)
    L = boom.beams[0].length
    factor = 120.0 * L**4 / (boom.youngs_modulus * 2e-4)
    return np.asarray(np.abs(squares * factor) ** 0.25)


CANTILEVER = (1.8751040687119611, 4.6940911329741745, 7.8547574382376126)
PINNED = (3.9266023120479186, 7.0685827456287323)


# Shares by which Ritz's frequencies may lie above the exact ones: the first, the second.
CANTILEVER_SHARES = {1: (5e-3,), 2: (5e-3, 0.6), 3: (5e-4, 1e-2), 4: (2e-6, 6e-3), 5: (1e-7, 5e-5)}
PINNED_SHARES = {1: (0.5,), 2: (0.3, 0.4), 3: (1e-2, 0.4), 4: (2e-3, 3e-2), 5: (1e-5, 2e-2)}


@pytest.mark.parametrize('basis', ['moment', 'printed'])
@pytest.mark.parametrize(
    ('locked', 'exact', 'shares'),
    [(True, CANTILEVER, CANTILEVER_SHARES), (False, PINNED, PINNED_SHARES)],
)
def test_uniform_beam_has_textbook_frequencies(locked, exact, shares, basis, resized):
    before = [math.inf] * 2
    for count, allowed in shares.items():
        found = wave_numbers(uniform(resized, 0.0, basis=basis, functions=count), locked)
        if not locked:
            assert found[0] < 0.02
            found = found[1:]
        for k, share in enumerate(allowed):
            excess = (found[k] / exact[k]) ** 2 - 1.0
            # They come from above, and fall with each function.
            assert -1e-9 < excess < min(share, before[k])
            before[k] = excess


def overhang_wave_number(a, length):
    """Return the smallest beta L of a uniform beam on supports at 0 and a, free at L."""

    def determinant(beta_length):
        # Inner part A sin + B sinh from the pinned root, outer part the free wave seen from L.
        b = beta_length / length
        s, c = math.sin(b * a), math.cos(b * a)
        sh, ch = math.sinh(b * a), math.cosh(b * a)
        inner = np.array([[s, sh], [c, ch], [-s, sh]])
        x = b * (length - a)
        s, c, sh, ch = math.sin(x), math.cos(x), math.sinh(x), math.cosh(x)
        # w = C (cos + cosh) + D (sin + sinh) of b (L - x): no moment and no shear at L.
        outer = np.array([[c + ch, s + sh], [s - sh, -c - ch], [-c + ch, -s + sh]])
        zero = np.zeros(2)
        rows = [
            [*inner[0], *zero],
            [*zero, *outer[0]],
            [*inner[1], *-outer[1]],
            [*inner[2], *-outer[2]],
        ]
        return float(np.linalg.det(np.array(rows)))

    grid = np.linspace(0.3, 8.0, 400)
    values = [determinant(x) for x in grid]
    at = next(i for i in range(len(grid) - 1) if values[i] * values[i + 1] < 0.0)
    return float(brentq(determinant, grid[at], grid[at + 1], xtol=1e-13))


@pytest.mark.parametrize('basis', ['moment', 'printed'])
def test_supported_beam_has_the_frequency_of_an_overhang(basis, resized):
    expected = overhang_wave_number(2.4, 9.6)
    # Near a clamp it is nearly a cantilever of the rest.
    assert overhang_wave_number(0.01, 9.6) == pytest.approx(CANTILEVER[0], rel=1e-2)
    limits = {'moment': (2.5e-3, 2e-3, 5e-4), 'printed': (3e-2, 2.5e-2, 5e-3)}[basis]
    for count, limit in zip((2, 3, 5), limits, strict=True):
        found = wave_numbers(uniform(resized, 2.4, basis=basis, functions=count), True)[0]
        assert -1e-9 < (found / expected) ** 2 - 1.0 < limit


@pytest.mark.parametrize('rotation', ['exact', 'printed'])
def test_places_are_those_of_the_second_derivation(rotation, random_boom):
    random = np.random.default_rng(15)
    boom = random_boom(random, 5, rotation=rotation)
    joints = lagrange(boom).joints
    for _ in range(5):
        q, v = random_state(random, boom)
        expected = joints(q, v).full()
        for beam in range(5):
            root = point_motion(boom, q, v, beam, 0.0).position
            tip = point_motion(boom, q, v, beam, boom.beams[beam].length).position
            np.testing.assert_allclose(root, expected[:, beam], atol=1e-12)
            np.testing.assert_allclose(tip, expected[:, beam + 1], atol=1e-12)


@pytest.mark.parametrize('rotation', ['exact', 'printed'])
@pytest.mark.parametrize('offset', [0.0, -0.4])
def test_velocity_is_the_positions_derivative(offset, rotation, random_boom):
    random = np.random.default_rng(16)
    boom = random_boom(random, 4, functions=3, rotation=rotation)
    step = 1e-6
    for beam in range(4):
        q, v = random_state(random, boom)
        x = random.uniform(0.0, boom.beams[beam].length)
        after, before = (
            point_motion(boom, q + sign * step * v, v, beam, x, offset).position
            for sign in (1.0, -1.0)
        )
        velocity = point_motion(boom, q, v, beam, x, offset).velocity
        expected = (after - before) / (2.0 * step)
        np.testing.assert_allclose(velocity, expected, atol=1e-8 * np.abs(velocity).max())


def test_inclination_is_the_direction_of_the_bent_beam(random_boom):
    # (39), where a slope stands for its angle.
    random = np.random.default_rng(17)
    boom = random_boom(random, 4, rotation='exact')
    q, v = random_state(random, boom)
    q[4:] *= 1e-3
    for beam in range(4):
        x = 0.5 * boom.beams[beam].length
        after, before = (point_motion(boom, q, v, beam, x + d).position for d in (1e-5, -1e-5))
        along = complex(*(after - before))
        angle = point_motion(boom, q, v, beam, x).inclination
        difference = complex(math.cos(angle), -math.sin(angle)) * along / abs(along)
        assert abs(difference - 1.0) < 1e-6
        slopes = [
            float(q[4 + i :: 4] @ basis.at(boom.beams[i].length, 1))
            for i, basis in enumerate(boom_bases(boom)[:beam])
        ]
        own = float(q[4 + beam :: 4] @ boom_bases(boom)[beam].at(x, 1))
        assert angle == pytest.approx(q[: beam + 1].sum() + sum(slopes) + own, abs=1e-12)


def test_offset_stands_on_the_bent_beam(random_boom):
    random = np.random.default_rng(18)
    boom = random_boom(random, 3)
    q, v = random_state(random, boom)
    for beam in range(3):
        x, step = 0.7 * boom.beams[beam].length, 1e-6
        on, off = (point_motion(boom, q, v, beam, x, d).position for d in (0.0, 0.3))
        after, before = (point_motion(boom, q, v, beam, x + d).position for d in (step, -step))
        tangent = (after - before) / (2.0 * step)
        # The normal is the tangent turned to the left.
        np.testing.assert_allclose(off - on, 0.3 * np.array([-tangent[1], tangent[0]]), atol=1e-7)
