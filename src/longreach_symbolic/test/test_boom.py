"""
The mechanics of the boom with uniform beams, without hydraulics, are those of generated equations.

A beam of the boom is clamped to its joint, a link lies on its chord: phi_i and h are joint angle
and deflections there, theta_i and f here. Both are the same motion to the first order of
deflections; of the second order are the length of the chord, which only links keep, and with it
forces of the squares of h and h'. At straight links all other terms have to agree.
"""

import dataclasses

import numpy as np
import pytest

from longreach_boom.model import Load, boom_bases, constants_of
from longreach_boom.motion import inertia
from longreach_boom.parameters import Distribution, load_boom
from longreach_symbolic.generated import evaluator
from longreach_symbolic.links import Link, Links

MODES = 3
YOUNG = 2.1e11


def uniform_boom(count, functions, random):
    """Return a boom of uniform beams, and the same as links."""
    boom = load_boom()
    beams, cylinders, loads, links = [], [], [], []
    for i in range(count):
        length, mass, area = random.uniform([4.0, 20.0, 1e-5], [9.0, 200.0, 9e-5])
        load, place = random.uniform([10.0, 0.3], [900.0, 1.0])
        beams.append(
            boom.beams[i].replace(
                length=length,
                mass_per_length=Distribution(root=mass, tip=mass),
                second_moment=Distribution(root=area, tip=area),
                joint_damping=0.0,
                support=0.0,
                strain_gauge=boom.beams[i].strain_gauge.replace(position=0.5 * length),
            )
        )
        cylinders.append(boom.cylinders[i])
        loads.append(Load(load, i, place * length))
        links.append(Link(length, mass * length, YOUNG * area, load, place - 1.0))
    boom = boom.replace(
        youngs_modulus=YOUNG,
        ritz=boom.ritz.replace(functions=functions, basis='moment', rotation='exact'),
        beams=tuple(beams),
        cylinders=tuple(cylinders),
        poses=(),
        markers=(),
        truck=None,
    )
    return boom, tuple(loads), Links(boom.gravity, True, 'cubic', tuple(links), MODES)


def to_links(boom, links):
    """Return the matrix from (phi, h) to (theta, f)."""
    count, functions = boom.size, boom.ritz.functions
    found = np.zeros((links.size, count * (1 + functions)))
    found[:count, :count] = np.eye(count)
    for i, basis in enumerate(boom_bases(boom)):
        length = basis.beam.length
        x = np.linspace(0.0, length, 30)
        xi = x / length - 1.0
        chords = np.stack([xi ** (k + 1) - (-1) ** k * xi for k in range(1, MODES + 1)], axis=1)
        for e in range(functions):
            column = count * (1 + e) + i
            eta, tip, slope = basis.at(x)[e], basis.at(length)[e], basis.at(length, 1)[e]
            # The chord turns by w(L) / L, and the next beam is clamped to the tip.
            found[i, column] += tip / length
            if i + 1 < count:
                found[i + 1, column] += slope - tip / length
            above = eta - tip * x / length
            f, *_ = np.linalg.lstsq(chords, above, rcond=None)
            np.testing.assert_allclose(chords @ f, above, rtol=0.0, atol=1e-9)
            rows = count + i * MODES
            found[rows : rows + MODES, column] = f
    return found


def assert_near(found, wanted, scale):
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-9 * scale)


@pytest.mark.parametrize('functions', [1, 2])
@pytest.mark.parametrize('count', [1, 2, 4])
def test_boom_is_that_of_generated_equations(count, functions):
    random = np.random.default_rng(10 * count + functions)
    boom, loads, links = uniform_boom(count, functions, random)
    change = to_links(boom, links)
    constants = constants_of(boom, loads)
    terms = evaluator(links)
    size = count * (1 + functions)
    phi = random.uniform(-1.0, 1.0, count)
    pose = np.concatenate((phi, np.zeros(links.size - count)))
    turning, bending = np.zeros((2, size))
    turning[:count] = random.uniform(-1.0, 1.0, count)
    bending[count:] = random.uniform(-0.2, 0.2, size - count)

    def of_boom(h, rates):
        mass, forces = np.empty((size, size)), np.empty(size)
        inertia(np.concatenate((phi, h, rates)), constants, mass, forces)
        return np.tril(mass) + np.tril(mass, -1).T, forces

    straight, rest = np.zeros(size - count), np.zeros(size)
    mass, weight = of_boom(straight, rest)
    found = terms(pose, np.zeros(links.size))
    assert_near(change.T @ found.mass_matrix @ change, mass, np.abs(mass).max())
    heaviest = np.abs(weight).max()
    assert_near(change.T @ found.gravity_and_stiffness, weight, heaviest)

    def velocity_terms(rates):
        return change.T @ terms(pose, change @ rates).velocity_terms

    # Centrifugal terms of joint rates, and Coriolis terms of both kinds of rates.
    wanted = of_boom(straight, turning)[1] - weight
    assert_near(velocity_terms(turning), wanted, heaviest)
    both, alone = (of_boom(straight, rates)[1] - weight for rates in (turning + bending, bending))
    wanted = both - alone - wanted
    coriolis = velocity_terms(turning + bending) - velocity_terms(bending)
    coriolis -= velocity_terms(turning)
    # At a straight single link there are none.
    assert count == 1 or np.abs(wanted).max() > 1e-3 * heaviest
    assert_near(coriolis, wanted, heaviest)

    # Stiffness, without weight.
    weightless = constants_of(boom.replace(gravity=0.0), loads)
    forces = np.empty(size)
    deflected = np.concatenate((phi, bending[count:], rest))
    inertia(deflected, weightless, np.empty((size, size)), forces)
    elastic = evaluator(dataclasses.replace(links, gravity=0.0))
    found = elastic(pose + change @ bending, np.zeros(links.size)).gravity_and_stiffness
    assert_near(change.T @ found, forces, np.abs(forces).max())
    assert np.abs(forces).max() > 0.0
