"""Lines and Ritz functions against textbooks and the boundary-value problem of Henikl 2015."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_bvp

from longreach_dynamics.beams import (
    BASIS_SETS,
    Beam,
    fit_polynomial,
    ritz_basis,
    self_weight_line,
    tip_force_line,
    tip_moment_line,
)
from longreach_dynamics.errors import InputError


def integrals(basis):
    """Return int eta_e eta_f dx, shape (F, F), by a rule finer than the one that made them."""
    edges = np.unique(np.concatenate([basis.beam.grid, np.linspace(0.0, LENGTH, 40)]))
    nodes, weights = np.polynomial.legendre.leggauss(7)
    halves = np.diff(edges)[:, None] / 2.0
    places = (edges[:-1, None] + halves * (nodes + 1.0)).ravel()
    values = basis.at(places)
    return np.asarray((values * (halves * weights).ravel()) @ values.T)


LENGTH, SIGMA, EI = 9.6, 190.0, 8.0e7
LINES = {'force': tip_force_line, 'moment': tip_moment_line, 'weight': self_weight_line}


def constant(value):
    return lambda x: np.full(np.shape(x), value)


def uniform(support=0.0, length=LENGTH):
    return Beam(length, constant(SIGMA), constant(EI), support)


def tapered(support=0.0, length=LENGTH, tip=1.0 / 3.0):
    """Return a beam with the taper of a pump boom: EI falls with the third power of the depth."""
    ratio = tip ** (1.0 / 3.0)
    return Beam(
        length,
        lambda x: SIGMA * (1.0 - 0.4 * np.asarray(x) / length),
        lambda x: EI * (1.0 + (ratio - 1.0) * np.asarray(x) / length) ** 3,
        support,
    )


def kinked(support=0.0):
    """Return a beam whose sigma and EI come from tables: straight lines with corners."""
    places = np.array([0.0, 1.7, 3.1, 7.0, LENGTH])
    sigma = np.array([300.0, 120.0, 180.0, 90.0, 60.0])
    stiffness = EI * np.array([1.0, 0.9, 0.3, 0.25, 0.1])
    return Beam(
        LENGTH,
        lambda x: np.interp(x, places, sigma),
        lambda x: np.interp(x, places, stiffness),
        support,
        tuple(places),
    )


def boundary_value_solution(beam, load, x):
    """Return w(x) of (9) to (13) by collocation, left and right of the support, with w(L) = 1."""
    split = beam.support or 0.5 * beam.length
    widths = np.array([split, beam.length - split])

    def derivative(s, y, scale):
        rates = np.empty_like(y)
        for part, offset in enumerate((0.0, split)):
            w = 4 * part
            place = offset + widths[part] * s
            distributed = scale[0] * beam.mass_per_length(place) if load == 'weight' else 0.0
            rates[w] = y[w + 1]
            rates[w + 1] = y[w + 2] / beam.bending_stiffness(place)
            rates[w + 2] = y[w + 3]
            rates[w + 3] = distributed
            rates[w : w + 4] *= widths[part]
        return rates

    def conditions(left, right, scale):
        root = [left[0], left[2] / EI] if beam.support else [left[0], left[1]]
        if beam.support:
            across = [right[0], left[4]]
        else:
            across = [right[0] - left[4], (right[3] - left[7]) / EI]
        across += [right[1] - left[5], (right[2] - left[6]) / EI]
        moment = scale[0] if load == 'moment' else 0.0
        force = scale[0] if load == 'force' else 0.0
        tip = [(right[6] - moment) / EI, (right[7] - force) / EI, right[4] - 1.0]
        return np.array([*root, *across, *tip])

    mesh = np.linspace(0.0, 1.0, 81)
    solution = solve_bvp(
        derivative, conditions, mesh, np.zeros((8, mesh.size)), [EI], tol=1e-9, max_nodes=20000
    )
    assert solution.success
    inner = x <= split
    values = solution.sol(np.where(inner, x / split, (x - split) / widths[1]))
    return np.where(inner, values[0], values[4])


def overhanging(load, a, x):
    """Return the uniform beam's line over two supports at 0 and a, up to a factor; by hand."""
    c, s = LENGTH - a, x - a
    if load == 'weight':
        reaction = LENGTH**2 / (2.0 * a)
        root = LENGTH - reaction
        # Upward forces at both supports, load 1 a metre; two integrations, w(0) = w(a) = 0.
        particular = x**4 / 24.0 - root * x**3 / 6.0 - reaction * np.maximum(s, 0.0) ** 3 / 6.0
        return particular - x * (a**3 / 24.0 - root * a**2 / 6.0)
    inner = {'force': c, 'moment': 1.0}[load] * (x**3 - a**2 * x) / (6.0 * a)
    if load == 'force':
        outer = c * a / 3.0 * s + c * s**2 / 2.0 - s**3 / 6.0
    else:
        outer = a / 3.0 * s + s**2 / 2.0
    return np.where(x < a, inner, outer)


@pytest.mark.parametrize('support', [0.2, 2.4, 5.0, 9.5])
@pytest.mark.parametrize('load', LINES)
def test_uniform_beam_on_two_supports(load, support):
    x = np.linspace(0.0, LENGTH, 97)
    expected = overhanging(load, support, x)
    line = LINES[load](uniform(support))
    # Where next to nothing hangs over, the bulge inboard is the measure.
    largest = expected[np.argmax(np.abs(expected))]
    bulging = abs(expected[-1]) < 0.1 * abs(largest)
    scale = line.at(x)[np.argmax(np.abs(expected))] / largest if bulging else 1.0 / expected[-1]
    np.testing.assert_allclose(line.at(x), scale * expected, atol=1e-11)
    if bulging:
        assert np.abs(line.at(x)).max() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize('support', [0.0, 2.4])
@pytest.mark.parametrize('section', [tapered, kinked])
@pytest.mark.parametrize('load', LINES)
def test_line_solves_the_boundary_value_problem(load, section, support):
    beam = section(support)
    x = np.linspace(0.0, LENGTH, 41)
    expected = boundary_value_solution(beam, load, x)
    np.testing.assert_allclose(LINES[load](beam).at(x), expected, atol=2e-7)


def test_places_that_differ_by_rounding_are_one():
    beam = uniform(0.1 + 0.2)
    near = dataclasses.replace(beam, breaks=(0.3, float(np.nextafter(LENGTH, 0.0))))
    np.testing.assert_array_equal(near.grid, beam.grid)


def test_quadrature_is_exact_for_products_of_functions():
    beam = kinked(2.4)
    x, weights = beam.gauss()
    assert weights.sum() == pytest.approx(LENGTH, rel=1e-14)
    for power in (1, 6, 20):
        expected = LENGTH ** (power + 1) / (power + 1)
        assert beam.integral(x**power) == pytest.approx(expected, rel=1e-13)
    mass, _ = quad(
        lambda s: float(beam.mass_per_length(np.array(s))), 0.0, LENGTH, points=[1.7, 3.1, 7.0]
    )
    assert beam.integral(beam.mass_per_length(x)) == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize('support', [0.0, 2.4])
def test_fit_has_the_printed_form(support):
    # sum_j c_j (x - x_m) x^(j - 1), j = 2..6: one polynomial of degree 6 over the whole beam.
    beam = tapered(support)
    fitted, _ = fit_polynomial(beam, tip_force_line(beam), 6)
    x = np.linspace(0.0, LENGTH, 61)
    s, share = x / LENGTH, support / LENGTH
    terms = np.stack([(s - share) * s ** (j - 1) for j in range(2, 7)], axis=1)
    factors, *_ = np.linalg.lstsq(terms, fitted.at(x), rcond=None)
    np.testing.assert_allclose(terms @ factors, fitted.at(x), atol=1e-12)
    assert abs(factors[-1]) > 1e-6
    assert fitted.at(LENGTH) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize('support', [0.0, 2.4])
def test_fit_is_the_best_in_the_mean_square(support):
    beam = tapered(support)
    line = tip_force_line(beam)
    fitted, _ = fit_polynomial(beam, line, 5)
    x, _ = beam.gauss()
    scale = beam.integral(line.at(x) * fitted.at(x)) / beam.integral(fitted.at(x) ** 2)
    left = line.at(x) - scale * fitted.at(x)
    size = math.sqrt(beam.integral(left**2))
    assert size > 1e-9
    for j in range(2, 6):
        term = (x - support) * x ** (j - 1)
        cosine = beam.integral(left * term) / (size * math.sqrt(beam.integral(term**2)))
        assert abs(cosine) < 1e-6


@pytest.mark.parametrize('support', [0.0, 2.4])
def test_fit_reports_its_error(support):
    beam = tapered(support)
    line = tip_force_line(beam)
    x = np.linspace(0.0, LENGTH, 2001)
    places, _ = beam.gauss()
    errors = []
    for order in range(2, 10):
        fit, error = fit_polynomial(beam, line, order)
        # Before the normalisation.
        fitted = fit.at(places)
        scale = beam.integral(line.at(places) * fitted) / beam.integral(fitted**2)
        seen = np.abs(line.at(x) - scale * fit.at(x)).max() / np.abs(line.at(x)).max()
        # Over quadrature points and the tip.
        assert 0.98 * seen <= error <= 1.01 * seen
        errors.append(error)
    # Smooth lines converge quickly; the corner of the curvature at a support holds it up.
    assert all(later < earlier for earlier, later in zip(errors, errors[2:], strict=False))
    assert errors[4] < (1e-3 if support else 2e-5)
    assert errors[0] > 1e-2


@pytest.mark.parametrize('support', [0.0, 2.4])
@pytest.mark.parametrize('section', [uniform, tapered, kinked])
@pytest.mark.parametrize('last', [False, True])
@pytest.mark.parametrize('name', BASIS_SETS)
def test_one_to_five_functions(name, last, section, support):
    beam = section(support)
    x, _ = beam.gauss()
    largest = ritz_basis(beam, last, name, 5).at(x)
    for count in range(1, 6):
        basis = ritz_basis(beam, last, name, count)
        # More functions are added to those there are.
        np.testing.assert_allclose(basis.at(x), largest[:count], atol=1e-8)
        products = integrals(basis)
        sizes = np.sqrt(np.diag(products))
        left = products / np.outer(sizes, sizes) - np.eye(count)
        assert np.abs(left).max() < (1e-9 if count <= 3 else 1e-7)
        np.testing.assert_allclose(basis.at(0.0), 0.0, atol=1e-14)
        np.testing.assert_allclose(basis.at(LENGTH), 1.0, atol=1e-12 if count <= 3 else 1e-10)
        held = basis.at(support) if support else basis.at(0.0, 1)
        np.testing.assert_allclose(held, 0.0, atol=1e-10)


@pytest.mark.parametrize('last', [False, True])
@pytest.mark.parametrize('support', [0.0, 2.4])
def test_second_printed_function_has_the_form_15(support, last):
    # (x - x_m) x^2 + c (x - x_m) x, up to the normalisation.
    second = ritz_basis(tapered(support), last, 'printed', 2).lines[1]
    x = np.linspace(0.0, LENGTH, 41)
    terms = np.stack([(x - support) * x**2, (x - support) * x], axis=1) / LENGTH**3
    factors, *_ = np.linalg.lstsq(terms, second.at(x), rcond=None)
    np.testing.assert_allclose(terms @ factors, second.at(x), atol=1e-12)
    assert abs(factors[0]) > 0.1


@pytest.mark.parametrize('support', [0.0, 2.4])
def test_printed_first_function_is_the_fitted_static_line(support):
    beam = tapered(support)
    x = np.linspace(0.0, LENGTH, 31)
    for last, line in ((False, tip_force_line(beam)), (True, self_weight_line(beam))):
        for order in (3, 6):
            basis = ritz_basis(beam, last, 'printed', 2, order)
            fit, error = fit_polynomial(beam, line, order)
            assert basis.fit_error == error
            np.testing.assert_allclose(basis.lines[0].at(x), fit.at(x), atol=1e-14)
    assert ritz_basis(beam, False, 'moment', 2).fit_error == 0.0


def span_error(basis, line):
    """Return what the functions leave of a line, as a share of its largest deflection."""
    x = np.linspace(0.0, LENGTH, 101)
    values, wanted = basis.at(x).T, line.at(x)
    factors, *_ = np.linalg.lstsq(values, wanted, rcond=None)
    return float(np.abs(values @ factors - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize('support', [0.0, 2.4])
def test_moment_set_holds_the_lines_of_tip_force_and_moment(support):
    beam = kinked(support)
    force, moment, weight = (line(beam) for line in LINES.values())
    inner = [ritz_basis(beam, False, 'moment', count) for count in (1, 2, 3)]
    assert span_error(inner[0], force) < 1e-12
    assert span_error(inner[0], moment) > 1e-2
    assert max(span_error(inner[1], line) for line in (force, moment)) < 1e-10
    assert span_error(inner[1], weight) > 1e-4
    assert max(span_error(inner[2], line) for line in (force, moment, weight)) < 1e-9
    last = ritz_basis(beam, True, 'moment', 2)
    assert span_error(last, weight) < 1e-12
    # What the paper's pair lacks on an inner beam.
    printed = ritz_basis(beam, False, 'printed', 2)
    assert span_error(printed, moment) > 100.0 * span_error(inner[1], moment)


@pytest.mark.parametrize(
    ('beam', 'arguments', 'message'),
    [
        ({'length': 0.0}, {}, r'length = 0 m, allowed: \(0, inf\) m'),
        ({'support': -0.1}, {}, r'support = -0.1 m, allowed: \[0, 9\.6\) m'),
        ({'support': LENGTH}, {}, r'support = 9.6 m, allowed: \[0, 9\.6\) m'),
        ({}, {'basis': 'eigen'}, r"basis = 'eigen', allowed: printed \| moment"),
        ({}, {'functions': 6}, r'functions = 6, allowed: '),
        ({}, {'basis': 'printed', 'order': 10}, r'order = 10, allowed: \[2, 9\]'),
    ],
)
def test_what_cannot_be_is_refused(beam, arguments, message):
    with pytest.raises(InputError, match=message):
        ritz_basis(uniform(**beam), False, **arguments)


def test_lines_are_kept_so_nobody_may_write_on_them():
    for line in ritz_basis(uniform(1.0), False).lines:
        with pytest.raises(ValueError, match='read-only'):
            line.powers[0, 0] = 1.0
        with pytest.raises(ValueError, match='read-only'):
            line.edges[0] = 1.0
