"""
A second derivation: Lagrange's equations by CasADi's automatic differentiation of T and V.

Both are integrated by Gauss-Legendre quadrature along the links; nothing is taken from the package
but its files. Positions of points are written as rotations of frames, y is up.
"""

import casadi
import numpy as np

from longreach_symbolic.links import Link, Links, State

POINTS = 24


def deflection(basis, xi, amplitudes, derivative=0):
    """Return the sum of the functions times amplitudes, or a derivative of it, at a place xi."""
    x, found = casadi.SX.sym('x'), 0.0
    for k, amplitude in enumerate(amplitudes, 1):
        cubic = x ** (k + 1) - (-1) ** k * x
        found += amplitude * (casadi.sin(k * np.pi * x) if basis == 'sine' else cubic)
    for _ in range(derivative):
        found = casadi.gradient(found, x)
    return casadi.substitute(found, x, xi)


def lagrange(links):
    """Return a Function of q and rates: M, velocity terms, gravity and stiffness, force map."""
    n, s = len(links.links), links.modes
    q, rates = casadi.SX.sym('q', n * (1 + s)), casadi.SX.sym('rates', n * (1 + s))
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    kinetic = potential = 0.0
    start, angle = casadi.DM.zeros(2), 0.0
    motors, bend_before = [], 0.0
    for i, link in enumerate(links.links):
        f = [q[n + i * s + k] for k in range(s)]
        angle = angle + q[i]
        direction = casadi.vertcat(casadi.cos(angle), casadi.sin(angle))
        left = casadi.vertcat(-direction[1], direction[0])
        end = start + link.length * direction
        points = [((node - 1.0) / 2.0, link.mass * weight / 2.0, False)
                  for node, weight in zip(nodes, weights, strict=True)]  # fmt: skip
        points.append((link.lumped_place, link.lumped_mass, True))
        for xi, mass, lumped in points:
            y = deflection(links.basis, xi, f)
            place = end + xi * link.length * direction + y * left
            velocity = casadi.jtimes(place, q, rates)
            kinetic += mass * casadi.sumsqr(velocity) / 2.0
            straight = end + xi * link.length * direction
            weighs = place if lumped or links.gravity_on_deflection else straight
            potential += mass * links.gravity * weighs[1]
        for node, weight in zip(nodes, weights, strict=True):
            bend = deflection(links.basis, (node - 1.0) / 2.0, f, 2) / link.length**2
            potential += link.bending_stiffness * bend**2 * weight * link.length / 4.0
        inner = deflection(links.basis, -1.0, f, 1) / link.length
        motors.append(q[i] + inner - bend_before)
        bend_before = deflection(links.basis, 0.0, f, 1) / link.length
        start = end
    momentum = casadi.gradient(kinetic, rates)
    mass_matrix = casadi.jacobian(momentum, rates)
    velocity_terms = casadi.jtimes(momentum, q, rates) - casadi.gradient(kinetic, q)
    static = casadi.gradient(potential, q)
    force_map = casadi.jacobian(casadi.vertcat(*motors), q).T
    return casadi.Function(
        'lagrange', [q, rates], [mass_matrix, velocity_terms, static, force_map, potential]
    )


def reference(links, state):
    """Return the terms of the equations of motion, and the potential energy, at a state."""
    q = np.array([*state.theta, *state.f])
    rates = np.array([*state.theta_rate, *state.f_rate])
    matrix, velocity, static, force_map, potential = lagrange(links)(q, rates)
    return (
        matrix.full(),
        velocity.full().ravel(),
        static.full().ravel(),
        force_map.full(),
        float(potential),
    )


def random_links(count, modes=2, basis='sine', weighing=False, seed=0):
    """Return links with random numbers, lumped masses at random places."""
    rng = np.random.default_rng([seed, count, modes])
    one = [
        Link(
            length=rng.uniform(0.4, 2.0),
            mass=rng.uniform(0.3, 3.0),
            bending_stiffness=rng.uniform(10.0, 50.0),
            lumped_mass=rng.uniform(0.2, 3.0),
            lumped_place=rng.uniform(-1.0, 0.0),
        )
        for _ in range(count)
    ]
    return Links(
        gravity=9.81, gravity_on_deflection=weighing, basis=basis, links=tuple(one), modes=modes
    )


def random_state(links, seed=0):
    """Return a state with large angles and rates, deflections of some centimetres."""
    rng = np.random.default_rng([seed, len(links.links), links.modes])
    n, m = len(links.links), len(links.links) * links.modes
    return State(
        theta=tuple(rng.uniform(-3.0, 3.0, n)),
        theta_rate=tuple(rng.uniform(-3.0, 3.0, n)),
        f=tuple(rng.uniform(-0.1, 0.1, m)),
        f_rate=tuple(rng.uniform(-1.0, 1.0, m)),
    )


def arrays(state):
    """Return q and rates of a state."""
    return np.array([*state.theta, *state.f]), np.array([*state.theta_rate, *state.f_rate])


def assert_equal(found, wanted, tolerance=1e-12):
    for one, other in zip(found, wanted, strict=True):
        scale = max(1.0, np.abs(other).max())
        np.testing.assert_allclose(one, other, rtol=0.0, atol=tolerance * scale)
