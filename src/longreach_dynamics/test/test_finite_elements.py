"""Chains of beams against textbook frequencies and derivations that share nothing with them."""

import itertools
import math

import numpy as np
import pytest
from scipy import linalg
from scipy.integrate import solve_bvp
from scipy.optimize import brentq, minimize

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.finite_elements import ChainBase, ChainBeam, _Chain, chain_modes

LENGTH, SIGMA, EI = 9.0, 120.0, 4.0e7
UP, DOWN = math.pi / 2.0, -math.pi / 2.0


def constant(value):
    return lambda x: np.full(np.shape(x), value)


def uniform(length=LENGTH, angle=0.0, **others):
    beam = ChainBeam(length, constant(SIGMA), constant(EI), angle)
    return beam._replace(**others)


def tapered(length=LENGTH, angle=0.0, **others):
    def sigma(x):
        return SIGMA * (1.0 - 0.5 * x / length)

    def stiffness(x):
        return EI * (1.0 - 0.5 * x / length) ** 3

    return ChainBeam(length, sigma, stiffness, angle)._replace(**others)


def chain_equilibrium(beams, elements, gravity, foreshortening=True):
    """Return the element boundaries (points, 2) of a chain at rest with locked joints."""
    chain = _Chain(beams, elements, np.zeros(0), gravity, foreshortening)
    places = chain.inertia(chain.equilibrium())[1]
    return np.column_stack([places.real, places.imag])


def hertz(beta_length, length=LENGTH):
    """Frequency of the wave number beta of the uniform beam."""
    return np.asarray(
        (np.asarray(beta_length) / length) ** 2 * math.sqrt(EI / SIGMA) / (2.0 * math.pi)
    )


def roots(function, low, high, count):
    """Return the first sign changes of a function on a grid, refined."""
    grid = np.linspace(low, high, 2000)
    values = [function(x) for x in grid]
    found = []
    for i in range(grid.size - 1):
        if values[i] * values[i + 1] < 0.0:
            found.append(brentq(function, grid[i], grid[i + 1], xtol=1e-13, rtol=1e-14))
    assert len(found) >= count
    return found[:count]


def wave(beta, length):
    """Take (w, w', w'', w''') over a length of uniform beam at the wave number beta."""
    c, s = math.cosh(beta * length), math.sinh(beta * length)
    d, t = math.cos(beta * length), math.sin(beta * length)
    first = np.array([(c + d) / 2, (s + t) / 2 / beta, (c - d) / 2 / beta**2, 0.0])
    first[3] = (s - t) / 2 / beta**3
    rows = [first]
    for _ in range(3):
        # The derivative with respect to length of each row, by w'''' = beta^4 w.
        rows.append(np.array([beta**4 * rows[-1][3], *rows[-1][:3]]))
    return np.array(rows)


def with_mass(beta, mass):
    """Take (w, w', w'', w''') over a point mass: its inertia is a jump of the shear force."""
    jump = np.eye(4)
    jump[3, 0] = mass * beta**4 / SIGMA
    return jump


def test_cantilever_has_textbook_frequencies():
    betas = [1.8751040687119611, 4.6940911329741745, 7.8547574382376126, 10.995540734875467]
    # The error grows with the fourth power of the wave number: (beta h)^4 / 1440.
    np.testing.assert_allclose(chain_modes([uniform()], 60, 4), hertz(betas), rtol=1e-6)


def test_beam_on_hinge_is_pinned_and_free():
    betas = roots(lambda b: math.tan(b) - math.tanh(b), 3.5, 7.5, 2)
    betas = [beta for beta in betas if abs(math.cos(beta)) > 1e-3]
    assert betas[0] == pytest.approx(3.92660231, abs=1e-8)
    modes = chain_modes([uniform()], elements=60, count=2, joint_stiffness=[0.0])
    assert abs(modes[0]) < 1e-5 * modes[1]
    assert modes[1] == pytest.approx(float(hertz(betas[0])), rel=1e-7)


def test_joint_stiffness_interpolates_between_hinge_and_clamp():
    # EI w''(0) = k w'(0), from the general solution.
    stiffness = 2.0 * EI / LENGTH

    def condition(beta_length):
        beta = beta_length / LENGTH
        across = wave(beta, LENGTH) @ np.array([[0, 0], [1.0, 0], [stiffness / EI, 0], [0, 1.0]])
        return float(linalg.det(across[2:]))

    expected = hertz(roots(condition, 0.5, 9.0, 3))
    np.testing.assert_allclose(chain_modes([uniform()], 60, 3, [stiffness]), expected, rtol=4e-7)
    hard = chain_modes([uniform()], count=3, joint_stiffness=[1e9 * EI / LENGTH])
    np.testing.assert_allclose(hard, chain_modes([uniform()], count=3), rtol=1e-6)


@pytest.mark.parametrize('support', [0.3, 2.4, 6.0, 8.99])
def test_overhang_on_support(support):
    # Pinned at the root; the support's reaction, of unknown size, is a jump of w'''.
    def condition(beta_length):
        beta = beta_length / LENGTH
        start = np.array([[0, 0], [1.0, 0], [0, 0], [0, 1.0]])
        at = wave(beta, support) @ start
        null = np.array([at[0, 1], -at[0, 0]])
        null /= np.abs(null).max()
        beyond = wave(beta, LENGTH - support) @ np.column_stack([at @ null, np.eye(4)[3]])
        return float(linalg.det(beyond[2:]))

    expected = hertz(roots(condition, 0.5, 9.0, 2))
    np.testing.assert_allclose(chain_modes([uniform(support=support)], 60, 2), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ('place', 'mass'),
    [(1.234, 700.0), (8.0, 700.0), (LENGTH, 10.0), (LENGTH, 700.0), (LENGTH, 1e3), (LENGTH, 1e5)],
)
def test_mass_along_the_beam(place, mass):
    def condition(beta_length):
        beta = beta_length / LENGTH
        across = wave(beta, LENGTH - place) @ with_mass(beta, mass) @ wave(beta, place)
        return float(linalg.det(across[2:, 2:]))

    expected = hertz(roots(condition, 0.05, 9.0, 3))
    beam = uniform(masses=((place, mass),))
    np.testing.assert_allclose(chain_modes([beam], 60, 3), expected, rtol=4e-7)


def test_mass_at_a_joint_belongs_to_either_beam():
    pose = [tapered(5.0, 0.9), tapered(4.0, -0.3), tapered(6.0, -1.2)]
    at_tip = [pose[0]._replace(masses=((5.0, 300.0),)), *pose[1:]]
    at_root = [pose[0], pose[1]._replace(masses=((0.0, 100.0), (0.0, 200.0))), pose[2]]
    for gravity in (0.0, 9.81):
        first, second = (
            chain_modes(beams, 10, joint_stiffness=[1e7, 1e6, 1e6], gravity=gravity)
            for beams in (at_tip, at_root)
        )
        np.testing.assert_allclose(first, second, rtol=1e-9)
    without = chain_modes(pose, 10)
    assert np.all(chain_modes(at_tip, 10) < without)
    at_the_clamp = [pose[0]._replace(masses=((0.0, 1e4),)), *pose[1:]]
    np.testing.assert_allclose(chain_modes(at_the_clamp, 10), without, rtol=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('gravity', [9.81, 0.0])
@pytest.mark.parametrize('angle', [0.7, 0.0, UP])
def test_beams_in_line_are_one_beam(angle, gravity):
    whole = chain_modes([uniform(12.0, angle)], elements=100, count=4, gravity=gravity)
    parts = [uniform(length, angle) for length in (3.0, 1.5, 4.5, 3.0)]
    chain = chain_modes(parts, elements=30, count=4, gravity=gravity)
    np.testing.assert_allclose(chain, whole, rtol=5e-7)


def test_stepped_beam_is_two_beams_in_line():
    step = 3.71
    stepped = ChainBeam(
        LENGTH,
        lambda x: np.where(x < step, SIGMA, SIGMA / 3.0),
        lambda x: np.where(x < step, EI, EI / 5.0),
        UP,
        breaks=(step,),
    )
    outer = ChainBeam(LENGTH - step, constant(SIGMA / 3.0), constant(EI / 5.0), UP)
    for gravity in (0.0, 9.81):
        one = chain_modes([stepped], elements=100, gravity=gravity)
        two = chain_modes([uniform(step, UP), outer], elements=50, gravity=gravity)
        np.testing.assert_allclose(one, two, rtol=2e-6)
    without = chain_modes([stepped._replace(breaks=())], elements=100)
    assert np.abs(without / one - 1.0).max() > 1e-4


def frame_frequencies(beams, elements, count):
    """Return frequencies by frame elements in Cartesian coordinates, stiff along their axes."""
    nodes = elements * len(beams) + 1
    M, K = np.zeros((2, 3 * nodes, 3 * nodes))
    for i, beam in enumerate(beams):
        h = beam.length / elements
        c, s = math.cos(beam.angle), math.sin(beam.angle)
        sigma, ei = (section(0.0) for section in (beam.mass_per_length, beam.bending_stiffness))
        ea = 1e7 * ei / beam.length**2
        k, m = np.zeros((2, 6, 6))
        bend, axial = np.ix_([1, 2, 4, 5], [1, 2, 4, 5]), np.ix_([0, 3], [0, 3])
        k[axial] = ea / h * np.array([[1, -1], [-1, 1]])
        m[axial] = sigma * h / 6.0 * np.array([[2, 1], [1, 2]])
        # Of displacements and turns in units of 1 / h, at both ends.
        bending = [[12, 6, -12, 6], [6, 4, -6, 2], [-12, -6, 12, -6], [6, 2, -6, 4]]
        moving = [[156, 22, 54, -13], [22, 4, 13, -3], [54, 13, 156, -22], [-13, -3, -22, 4]]
        units = np.outer([1, h, 1, h], [1, h, 1, h])
        k[bend] = ei / h**3 * units * bending
        m[bend] = sigma * h / 420.0 * units * moving
        turn = linalg.block_diag(*2 * [np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]])])
        for e in range(elements):
            at = slice(3 * (i * elements + e), 3 * (i * elements + e) + 6)
            K[at, at] += turn.T @ k @ turn
            M[at, at] += turn.T @ m @ turn
    values = linalg.eigh(K[3:, 3:], M[3:, 3:], eigvals_only=True, subset_by_index=[0, count - 1])
    return np.asarray(np.sqrt(values) / (2.0 * math.pi))


@pytest.mark.parametrize('angles', [(UP, 0.0), (1.2, -0.9, -1.4), (0.4, 2.9, -2.0, 0.1)])
def test_bent_chain_is_a_frame(angles):
    beams = []
    for i, angle in enumerate(angles):
        scale = 0.5**i
        beams.append(ChainBeam(8.0 - i, constant(SIGMA * scale), constant(EI * scale**2), angle))
    expected = frame_frequencies(beams, 20, 5)
    np.testing.assert_allclose(chain_modes(beams, count=5), expected, rtol=1e-5)


def test_fourth_order_convergence_from_above():
    pose = [tapered(8.0, 1.0, support=2.0), tapered(6.0, -0.4, masses=((3.0, 50.0),))]
    exact = chain_modes(pose, elements=64, count=4, gravity=9.81)
    errors = [chain_modes(pose, n, 4, gravity=9.81) / exact - 1.0 for n in (8, 16, 32)]
    assert np.all(errors[2] > 0.0)
    for coarse, fine in itertools.pairwise(errors):
        np.testing.assert_allclose(np.log2(coarse / fine), 4.0, atol=0.2)


def test_quadrature_is_exact_for_polynomial_sections():
    # One element, sigma linear, EI cubic: the 2 x 2 eigenvalue problem by exact integration.
    P = np.polynomial.Polynomial
    x = P([0.0, 1.0])
    shapes = [x**2 / 2 - x**3 / 6, x**3 / 6]
    sigma, stiffness = P([3.0, -1.0]), P([2.0, -0.5]) ** 3
    M, K = np.empty((2, 2, 2))
    for i, j in itertools.product(range(2), repeat=2):
        M[i, j] = (sigma * shapes[i] * shapes[j]).integ()(1.0)
        K[i, j] = (stiffness * shapes[i].deriv(2) * shapes[j].deriv(2)).integ()(1.0)
    expected = np.sqrt(linalg.eigh(K, M, eigvals_only=True)) / (2.0 * math.pi)
    beam = ChainBeam(1.0, lambda x: 3.0 - x, lambda x: (2.0 - 0.5 * x) ** 3, 0.0)
    np.testing.assert_allclose(chain_modes([beam], elements=1, count=2), expected, rtol=1e-12)


def heavy_frequencies(load, count, hinged):
    """Return those of a vertical beam, L = sigma = EI = 1, by power series; load > 0: hanging."""
    terms = 120

    def condition(omega_squared):
        a = np.zeros((2, terms))
        a[0, 0], a[1, 1] = 1.0, 1.0
        for k in range(terms - 4):
            right = load * (k + 1) ** 2 * a[:, k + 1] + omega_squared * a[:, k]
            a[:, k + 4] = right / ((k + 4) * (k + 3) * (k + 2) * (k + 1))
        k = np.arange(terms)
        condition = a @ (k * (k - 1)) if hinged else a @ k
        return float(linalg.det(np.array([a.sum(axis=1), condition])))

    values = np.array(roots(condition, -60.0, 6000.0, count))
    return np.asarray(np.sign(values) * np.sqrt(np.abs(values)) / (2.0 * math.pi))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ('load', 'hinged'), [(-10.0, False), (20.0, True), (-7.0, False), (1.0, False), (30.0, False)]
)
def test_vertical_beam_under_its_weight(load, hinged):
    beam = ChainBeam(1.0, constant(1.0), constant(1.0), DOWN if load > 0.0 else UP)
    joints = [0.0] if hinged else None
    found = chain_modes([beam], 40, 3, joints, gravity=abs(load))
    np.testing.assert_allclose(found, heavy_frequencies(load, 3, hinged), rtol=2e-6)
    assert (found[0] < 0.0) == (load < -7.8373)
    # The sign of gravity is that of the direction.
    turned = beam._replace(angle=-beam.angle)
    again = chain_modes([turned], 40, 3, joints, gravity=-abs(load))
    np.testing.assert_allclose(again, found, rtol=1e-9)


def test_equilibrium_under_little_weight_is_the_textbook_bending_line():
    gravity = 1e-3
    load = SIGMA * gravity / EI
    x = np.linspace(0.0, LENGTH, 31)
    for foreshortening in (True, False):
        points = chain_equilibrium([uniform()], 30, gravity, foreshortening)
        line = -load * x**2 / 24.0 * (6.0 * LENGTH**2 - 4.0 * LENGTH * x + x**2)
        np.testing.assert_allclose(points, np.column_stack([x, line]), atol=1e-10)
    # Pinned at the root, supported in the middle: all weight is on the support.
    points = chain_equilibrium([uniform(support=LENGTH / 2.0)], 20, gravity)
    np.testing.assert_allclose(points[[0, 10]], [[0.0, 0.0], [LENGTH / 2.0, 0.0]], atol=1e-12)
    # The cantilever beyond it, turned by the inner half: its moment M by M a / (3 EI), less what
    # the weight between the supports turns back, q a^3 / (24 EI).
    half = LENGTH / 2.0
    tip = -load * half**4 * (1.0 / 8.0 + 0.5 / 3.0 - 1.0 / 24.0)
    assert points[-1, 1] == pytest.approx(tip, rel=1e-9)


def elastica_tip(load, angle):
    """Return the tip of a clamped inextensible beam with L = EI = 1 and the weight ``load``."""

    def slopes(s, y):
        # The moment psi' = -load times the lever of all that is outboard.
        return np.array([y[1], load * (1.0 - s) * np.cos(y[0]), np.cos(y[0]), np.sin(y[0])])

    def ends(a, b):
        return np.array([a[0] - angle, b[1], a[2], a[3]])

    s = np.linspace(0.0, 1.0, 201)
    start = np.array([np.full(201, angle), 0.0 * s, s * math.cos(angle), s * math.sin(angle)])
    found = solve_bvp(slopes, ends, s, start, tol=1e-10, max_nodes=20000)
    assert found.success
    return np.asarray(found.y[2:, -1])


@pytest.mark.slow_after(2)
@pytest.mark.parametrize('angle', [0.9, -2.0, 0.0])
def test_short_beams_in_line_are_the_elastica(angle):
    load, errors = 4.0, []
    expected = elastica_tip(load, angle)
    for count in (4, 8, 16):
        beams = [ChainBeam(1.0 / count, constant(1.0), constant(1.0), angle)] * count
        tips = [chain_equilibrium(beams, 4, load, shorter)[-1] for shorter in (True, False)]
        errors.append(np.abs(np.array(tips) - expected).max(axis=1))
    # The bending of one beam is in error by its third or second order, and there are more beams.
    orders = np.log2(np.array(errors)[:-1] / np.array(errors)[1:])
    assert np.all(orders > [2.7, 1.8])
    assert errors[-1][0] < 1e-4 < errors[-1][1] < 2e-3
    # What is left is no matter of how the beam is cut: the modes agree, too.
    with_it, without = (
        chain_modes(beams, 2, 3, None, load, True, foreshortening)
        for foreshortening in (True, False)
    )
    np.testing.assert_allclose(with_it, without, rtol=3e-3)


@pytest.mark.parametrize('sagged', [True, False])
@pytest.mark.parametrize('foreshortening', [True, False])
@pytest.mark.parametrize('joints', [None, (2e7, 8e6)])
def test_modes_follow_from_the_potential_at_finite_rotations(sagged, foreshortening, joints):
    # With one element between any two places that ask for a node, w is a cubic in each; so two
    # polynomials span what the elements span, and two more beyond a support.
    gravity, load, support = 9.81, 400.0, 3.0
    lengths, angles = (9.0, 7.0), (0.8, -0.5)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    beams = [
        tapered(lengths[0], angles[0], support=support),
        tapered(lengths[1], angles[1], masses=((lengths[1], load),)),
    ]

    def quadrature(low, high):
        return low + (high - low) * (nodes + 1.0) / 2.0, weights * (high - low) / 2.0

    def functions(beam, x, derivative):
        """Return w, w' or w'' of each function at x, shape (functions, x.size)."""
        P = np.polynomial.Polynomial
        if beam == 1:
            return np.array([P(c).deriv(derivative)(x) for c in ([0, 0, 0.02], [0, 0, 0, 0.003])])
        inner = [P([0, -support, 1.0]) / 50.0, P([0, -(support**2), 0, 1.0]) / 700.0]
        outer = [P([0, 0, 1.0]) / 40.0, P([0, 0, 0, 1.0]) / 200.0]
        rows = [function.deriv(derivative)(x) for function in inner]
        beyond = np.maximum(x - support, 0.0)
        rows += [function.deriv(derivative)(beyond) * (x > support) for function in outer]
        return np.array(rows)

    own = (slice(2, 6), slice(6, 8))
    places = []
    for parts in (((0.0, support), (support, lengths[0])), ((0.0, lengths[1]),)):
        halves = [quadrature(*part) for part in parts]
        places.append([np.concatenate(both) for both in zip(*halves, strict=True)])
    bending = [functions(beam, places[beam][0], 2) for beam in range(2)]
    # Up to every place, w' squared is summed by a quadrature of its own.
    ends = [np.append(places[beam][0], lengths[beam]) for beam in range(2)]
    lines, squares = [], []
    for beam in range(2):
        lines.append(functions(beam, ends[beam], 0))
        rows = []
        for x in ends[beam]:
            total = 0.0
            for low, high in ((0.0, min(x, support)), (min(x, support), x)):
                s, w = quadrature(low, high)
                slope = functions(beam, s, 1)
                total = total + (slope * w) @ slope.T
            rows.append(total)
        squares.append(np.array(rows))
    turn = functions(0, np.array([lengths[0]]), 1)[:, 0]

    def points(q):
        """Return places as complex numbers, with their masses."""
        root, rotation = 0j, 0.0
        found, masses = [], []
        for beam in range(2):
            c = q[own[beam]]
            rotation += q[beam]
            u = ends[beam] + 1j * (c @ lines[beam])
            if foreshortening:
                u = u - 0.5 * np.einsum('a,xab,b->x', c, squares[beam], c)
            r = root + np.exp(1j * (angles[beam] + rotation)) * u
            found.append(r)
            x, w = places[beam]
            masses.append(np.append(w * beams[beam].mass_per_length(x), load if beam else 0.0))
            root = r[-1]
            rotation += turn @ c if beam == 0 else 0.0
        return np.concatenate(found), np.concatenate(masses)

    K = np.zeros((8, 8))
    for beam in range(2):
        x, w = places[beam]
        EI_x = w * beams[beam].bending_stiffness(x)
        K[own[beam], own[beam]] = (bending[beam] * EI_x) @ bending[beam].T

    def potential(q):
        where, masses = points(q)
        return float(gravity * masses @ where.imag + 0.5 * q @ K @ q)

    h = 2e-3
    steps = h * np.eye(8)
    rest = np.zeros(8)
    if sagged:
        scale = 1.0 / np.sqrt(np.diag(K)[2:])
        found = minimize(
            lambda y: potential(np.append([0.0, 0.0], scale * y)), np.zeros(6), tol=1e-9
        )
        rest[2:] = scale * found.x
    jacobian = np.array([(points(rest + d)[0] - points(rest - d)[0]) / (2.0 * h) for d in steps])
    M = np.real((jacobian.conj() * points(rest)[1]) @ jacobian.T)
    hessian = np.zeros((8, 8))
    for i, j in itertools.product(range(8), repeat=2):
        a, b = steps[i], steps[j]
        signed = potential(rest + a + b) + potential(rest - a - b)
        signed -= potential(rest + a - b) + potential(rest - a + b)
        hessian[i, j] = signed / (4.0 * h * h)
    free = slice(0 if joints else 2, 8)
    if joints:
        hessian[:2, :2] += np.diag(joints)
    values = linalg.eigh(hessian[free, free], M[free, free], eigvals_only=True)[:4]
    expected = np.sqrt(values) / (2.0 * math.pi)

    modes = chain_modes(beams, 1, 4, joints, gravity, sagged, foreshortening)
    np.testing.assert_allclose(modes, expected, rtol=2e-5)
    if sagged:
        tip, found = points(rest)[0][-1], chain_equilibrium(beams, 1, gravity, foreshortening)
        np.testing.assert_allclose(found[-1], [tip.real, tip.imag], atol=1e-5)


@pytest.mark.parametrize(
    ('beams', 'arguments', 'text'),
    [
        ([], {}, 'beams is empty'),
        ([uniform()], {'elements': 0}, 'elements = 0, allowed'),
        ([uniform()], {'elements': 2.5}, 'elements = 2.5, allowed'),
        ([uniform()], {'elements': 2, 'count': 5}, r'\[1, 4\]; take more elements'),
        ([uniform()], {'gravity': math.inf}, 'gravity = inf'),
        ([uniform()], {'joint_stiffness': [1.0, 1.0]}, '2 values, allowed: 1, or None'),
        ([uniform()], {'joint_stiffness': [-1.0]}, r'joint_stiffness\[0\] = -1 N'),
        ([uniform(), uniform(0.0)], {}, r'beams\[1\].length = 0 m'),
        ([uniform(angle=math.nan)], {}, r'beams\[0\].angle = nan'),
        ([uniform(support=LENGTH)], {}, r'beams\[0\].support = 9 m, allowed: \[0, 9.0\) m'),
        ([uniform(breaks=(1.0, 9.5))], {}, r'beams\[0\].breaks: x = 9.5 m, allowed: \[0, 9.0\] m'),
        ([uniform(masses=((1.0, -1.0),))], {}, r'masses: m = -1 kg, allowed: \[0, inf\) kg'),
        (
            [uniform(mass_per_length=lambda x: 5.0 - x)],
            {},
            r'beams\[0\].mass_per_length = -0.\d+ at x = 5.0\d+ m, allowed: \(0, inf\) kg/m',
        ),
        (
            [uniform(), uniform(bending_stiffness=constant(math.nan))],
            {},
            r'beams\[1\].bending_stiffness = nan at x = .* m, allowed: \(0, inf\) N m\^2',
        ),
        (
            [uniform(bending_stiffness=lambda x: x[:-1])],
            {},
            r'beams\[0\].bending_stiffness returned shape \(119,\) for x of shape \(120,\)',
        ),
    ],
)
def test_bad_input_is_refused(beams, arguments, text):
    with pytest.raises(InputError, match=text):
        chain_modes(beams, **arguments)


@pytest.mark.parametrize('gravity', [1e3, 1e30, 1e200])
def test_what_falls_over_has_no_equilibrium(gravity):
    with pytest.raises(LongreachError, match=r'no static equilibrium .* too slender'):
        chain_modes([uniform(30.0, 0.3)], gravity=gravity, sagged=True)


def test_what_cannot_be_resolved_is_no_result():
    stiff = uniform(bending_stiffness=constant(1e16 * EI))
    with pytest.raises(LongreachError, match=r'8 modes cannot be distinguished .* fewer modes'):
        chain_modes([stiff, uniform()], elements=2, count=8)
    with pytest.raises(LongreachError, match='beyond comparison with the stiffness'):
        chain_modes([uniform(angle=UP)], gravity=1e200)


def test_a_base_on_springs_carries_a_rigid_beam():
    length, density = 6.0, 50.0
    base = ChainBase(-1.5, -0.8, 900.0, 2000.0, 4e5, 3e6)
    beam = ChainBeam(length, lambda _: np.array(density), lambda _: np.array(1e13), 0.0)
    mass, arm = density * length, length / 2.0 - base.x
    about = mass * (length**2 / 12.0 + arm**2 + base.z**2)
    M = np.array([[base.mass + mass, mass * arm], [mass * arm, base.inertia + about]])
    K = np.diag([base.heave_stiffness, base.pitch_stiffness])
    expected = np.sqrt(linalg.eigh(K, M, eigvals_only=True)) / (2.0 * math.pi)
    np.testing.assert_allclose(chain_modes([beam], count=2, base=base), expected, rtol=1e-6)
    # Weight: the beam's centre is above the base's, which makes it softer; at rest it tilts.
    heavy = K - np.diag([0.0, mass * 9.81 * -base.z])
    expected = np.sqrt(linalg.eigh(heavy, M, eigvals_only=True)) / (2.0 * math.pi)
    found = chain_modes([beam], count=2, base=base, gravity=9.81)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
