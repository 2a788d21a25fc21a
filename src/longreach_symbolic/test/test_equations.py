"""Reduced form, trace form and automatic differentiation agree, and where the paper does not."""

import pytest
from links_reference import assert_equal, random_links, random_state, reference

from longreach_symbolic.generated import evaluate

CASES = [
    (count, modes, basis, weighing)
    for count in (1, 2, 3)
    for modes in (1, 2, 4)
    for basis, weighing in (('sine', False), ('cubic', True))
] + [(4, 2, 'sine', True), (5, 2, 'cubic', False), (6, 2, 'sine', False), (6, 2, 'cubic', True)]


@pytest.mark.slow_after(4)
@pytest.mark.parametrize(('count', 'modes', 'basis', 'weighing'), CASES)
def test_reduced_form_equals_automatic_differentiation(count, modes, basis, weighing):
    links = random_links(count, modes, basis, weighing)
    for seed in range(2):
        state = random_state(links, seed)
        assert_equal(evaluate(links, state), reference(links, state)[:4], 1e-12)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ('count', 'modes', 'basis', 'weighing'),
    [
        (1, 2, 'sine', False),
        (2, 2, 'sine', True),
        (2, 3, 'cubic', False),
        (3, 1, 'sine', False),
        (3, 2, 'cubic', True),
        pytest.param(4, 2, 'sine', False, marks=pytest.mark.slow),
        pytest.param(5, 2, 'sine', False, marks=pytest.mark.slow),
        pytest.param(6, 2, 'cubic', True, marks=pytest.mark.slow),
    ],
)
def test_trace_form_equals_the_reduced_one(count, modes, basis, weighing):
    links = random_links(count, modes, basis, weighing)
    state = random_state(links)
    assert_equal(evaluate(links, state, 'trace'), evaluate(links, state, 'reduced'), 1e-13)
