"""Where the paper is wrong, by how much, and that the corrected equations are right."""

import numpy as np
import pytest
import sympy
from links_reference import arrays, random_links, random_state, reference
from scipy.integrate import solve_ivp

from longreach_symbolic import code
from longreach_symbolic.generated import derive, evaluate
from longreach_symbolic.links import load_links, model_of, symbolic_model
from longreach_symbolic.motion import force_matrix


def module_of(links, **options):
    namespace = {}
    exec(code.as_python(derive(model_of(links, 'none'), **options)), namespace)
    return namespace


def swing(links, q, rates, **options):
    """Return states (K, 12) and energies over a second without torques."""
    module = module_of(links, **options)

    def derivative(_, x):
        return np.append(x[6:], module['accelerations'](x[:6], x[6:], np.zeros(2)))

    times, start = np.linspace(0.0, 1.0, 1001), np.append(q, rates)
    rows = solve_ivp(derivative, (0.0, 1.0), start, 'DOP853', times, rtol=1e-9, atol=1e-12).y.T
    return rows, np.array([sum(module['energy'](row[:6], row[6:])) for row in rows])


@pytest.mark.slow
def test_printed_coriolis_terms_move_the_joints_by_0_03_rad_without_a_trace_in_the_energy():
    """The paper's links turn without gravity, 5 and 10 mm bent: 0.03 rad within a second."""
    links = load_links().replace(gravity=0.0)
    q = np.array([np.pi / 4.0, -np.pi / 4.0, 0.005, 0.0, 0.01, 0.0])
    rates = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    right, energy = swing(links, q, rates)
    wrong, energy_wrong = swing(links, q, rates, as_printed=True)
    assert np.ptp(energy) < 1e-6 * energy[0]
    assert np.ptp(energy_wrong) < 1e-6 * energy[0]
    difference = np.abs(wrong - right)[:, :2].max(axis=0)
    np.testing.assert_allclose(difference, [0.025, 0.034], atol=0.002)


@pytest.mark.parametrize('count', [2, 3])
def test_energy_balance(count):
    """The power of the velocity terms is that of the changing mass matrix."""
    links = random_links(count, weighing=True)
    module = module_of(links)
    q, rates = arrays(random_state(links))
    velocity = module['equations'](q, rates)[1]
    step = 1e-6
    change = (
        module['equations'](q + step * rates, rates)[0]
        - module['equations'](q - step * rates, rates)[0]
    ) / (2.0 * step)
    power = rates @ change @ rates / 2.0
    assert rates @ velocity == pytest.approx(power, rel=1e-7)


@pytest.mark.parametrize('count', [1, 2, 4])
def test_printed_equations_differ_in_two_places_only(count):
    links = random_links(count)
    state = random_state(links)
    right, printed = evaluate(links, state, 'trace'), evaluate(links, state, as_printed=True)
    np.testing.assert_array_equal(right.gravity_and_stiffness, printed.gravity_and_stiffness)
    np.testing.assert_array_equal(right.force_map, printed.force_map)
    # (37): M_ff lacks the lumped masses, off the diagonal, too.
    difference = right.mass_matrix - printed.mass_matrix
    for i, link in enumerate(links.links):
        place = np.sin(np.pi * np.array([1, 2]) * link.lumped_place)
        rows = slice(count + 2 * i, count + 2 * i + 2)
        np.testing.assert_allclose(
            difference[rows, rows], link.lumped_mass * np.outer(place, place), atol=1e-14
        )
        difference[rows, rows] = 0.0
    assert not difference.any()
    # (24), (39): the joints' Coriolis terms; without work, so of one link nothing.
    error = printed.velocity_terms - right.velocity_terms
    assert not error[count:].any()
    rates = np.array(state.theta_rate)
    assert abs(rates @ error[:count]) < 1e-12
    assert np.abs(error[:count]).max() < 1e-12 if count == 1 else np.abs(error).max() > 0.1


def test_printed_coriolis_terms_are_those_of_the_paper():
    """(39) to the letter: U and J_u,lam differentiated, not from the package."""
    links = random_links(2)
    state = random_state(links)
    theta, f = sympy.symbols('t1:3'), sympy.symbols('f1:5')
    values = dict(zip([*theta, *f], [*state.theta, *state.f], strict=True))
    to_base, total = sympy.eye(3), [0.0, 0.0]
    for j, link in enumerate(links.links):
        angle = theta[j]
        c, s = sympy.cos(angle), sympy.sin(angle)
        to_base = to_base * sympy.Matrix(
            [[c, -s, link.length * c], [s, c, link.length * s], [0, 0, 1]]
        )
        xi = sympy.Symbol('xi')
        y = sum(sympy.sin((k + 1) * sympy.pi * xi) * f[2 * j + k] for k in range(2))
        point = sympy.Matrix([link.length * xi, y, 1])
        inertia = sympy.integrate((point * point.T * link.mass).expand(), (xi, -1, 0))
        lump = point.subs(xi, link.lumped_place)
        inertia += lump * lump.T * link.lumped_mass
        for i in range(j + 1):
            for k in range(j + 1):
                for mode in range(2):
                    term = (
                        to_base.diff(theta[k])
                        * inertia.diff(f[2 * j + mode])
                        * to_base.diff(theta[i]).T
                    ).trace()
                    rate = state.theta_rate[k] * state.f_rate[2 * j + mode]
                    total[i] += float(term.subs(values)) * rate
    # What else is in the velocity terms does not depend on the rates of f.
    at_rest = state.replace(f_rate=(0.0,) * 4)
    found = (
        evaluate(links, state, as_printed=True).velocity_terms
        - evaluate(links, at_rest, as_printed=True).velocity_terms
    )
    np.testing.assert_allclose(found[:2], total, rtol=1e-11)


def test_m_ff_without_the_lumped_mass_is_four_times_too_fast():
    """The paper's first link, pinned at both ends, with the mass of its motor in the middle."""
    links = load_links()
    middle = links.links[0].replace(lumped_place=-0.5)
    links = links.replace(links=(middle,))
    frequencies = []
    for printed in (False, True):
        module = module_of(links, as_printed=printed)
        q = np.zeros(3)
        mass, _, at_zero, _ = module['equations'](q, q)
        q[1] = 1.0
        stiffness = (module['equations'](q, q * 0.0)[2] - at_zero)[1]
        frequencies.append(np.sqrt(stiffness / mass[1, 1]))
    assert frequencies[1] / frequencies[0] == pytest.approx(4.09, abs=0.01)


def test_force_map_of_two_links():
    """F = [t1, t2, -pi (t1 + t2)/L1, 2 pi (t1 - t2)/L1, -pi t2/L2, 2 pi t2/L2]."""
    equations = derive(symbolic_model(2))
    t = sympy.Matrix(sympy.symbols('t1 t2'))
    names = {name: sympy.Symbol(name, real=True) for name in ('L_1', 'L_2')}
    (a, b), first, second = t, names['L_1'], names['L_2']
    wanted = sympy.Matrix([
        a, b, -sympy.pi * (a + b) / first, 2 * sympy.pi * (a - b) / first,
        -sympy.pi * b / second, 2 * sympy.pi * b / second,
    ])  # fmt: skip
    assert (equations.force_map * t - wanted).applyfunc(sympy.simplify).is_zero_matrix
    numbers = module_of(load_links())['force_map']()
    np.testing.assert_allclose(force_matrix(load_links()), numbers, rtol=1e-15)


def test_gravity_on_deflection_changes_the_rest_of_a_link():
    """(20) drops it; the paper's second link alone, horizontal: 0.2 mm at its middle."""
    links = load_links()
    one = links.replace(links=links.links[1:])
    state = random_state(one)
    heavy = one.replace(gravity_on_deflection=True)
    for case in (one, heavy):
        np.testing.assert_allclose(
            evaluate(case, state).gravity_and_stiffness, reference(case, state)[2], rtol=1e-12
        )
    weight = module_of(heavy)['equations'](np.zeros(3), np.zeros(3))[2]
    stiffness = module_of(one)['equations'](np.array([0.0, 1.0, 0.0]), np.zeros(3))[2]
    assert -weight[1] / stiffness[1] == pytest.approx(2.2e-4, rel=0.01)
