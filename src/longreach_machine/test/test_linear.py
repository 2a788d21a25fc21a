"""Choice of inputs and outputs of linear models, and what has no derivative."""

import json

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_machine import Signal, SmoothModel, linearize

SIGNALS = (Signal('a', ''), Signal('b', ''))
SUM = SmoothModel(
    SIGNALS[:1],
    SIGNALS,
    SIGNALS,
    np.zeros(1),
    np.zeros(2),
    lambda _, u: u.sum(keepdims=True),
    lambda _, u: u,
)


def test_repeated_inputs_and_outputs_are_refused():
    np.testing.assert_allclose(linearize(SUM, ['b', 'a']).D, [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InputError, match="inputs has the name 'a' twice"):
        linearize(SUM, ['a', 'b', 'a'])
    with pytest.raises(InputError, match="outputs has the name 'b' twice"):
        linearize(SUM, outputs=['b', 'b'])


@pytest.mark.parametrize(
    ('shown', 'slope', 'text'),
    [
        (abs, 0.0, 'b has a kink in a'),
        (lambda a: 3.0 * a + 0.5 * (a > 0.0), np.nan, 'b jumps with a'),
        (lambda a: 3.0 * a - 0.5 * np.sign(a), np.nan, 'b jumps with a'),
        # Has an infinite slope, but no jump.
        (lambda a: np.sqrt(max(a, 0.0)), None, 'b has a kink in a'),
        (lambda a: 3.0 * a + 1e-9 * (a > 0.0), 3.0, ''),
    ],
)
def test_what_jumps_has_no_derivative(shown, slope, text, tmp_path):
    model = SmoothModel(
        SIGNALS[:1],
        SIGNALS[:1],
        SIGNALS,
        np.zeros(1),
        np.zeros(1),
        lambda x, u: u - x,
        lambda x, u: np.array([x[0], shown(x[0]) + u[0]]),
    )
    found = linearize(model)
    assert ''.join(found.notes).startswith(text)
    assert len(found.notes) == bool(text)
    np.testing.assert_array_equal(found.C[0], [1.0])
    assert found.D[1] == pytest.approx(1.0)
    if slope is not None:
        assert found.C[1, 0] == pytest.approx(slope, abs=1e-6, nan_ok=True)
        assert found.error < 1e-6
    found.save(tmp_path / 'a.json')
    read = json.loads((tmp_path / 'a.json').read_text(), parse_constant=pytest.fail)
    assert (read['C'][1][0] is None) == np.isnan(found.C[1, 0])
    if 'jumps' in text:
        assert np.isnan(found.response(np.ones(1))[0, 1]).all()
        with pytest.raises(
            InputError, match='b jumps at this state and cannot be reduced; choose'
        ):
            found.reduce(1)
        assert linearize(model, outputs=['a']).reduce(1).poles()[0].value == pytest.approx(-1.0)
        with pytest.raises(InputError, match='the rate of a jumps with a at this state'):
            linearize(model._replace(rates=lambda x, _: np.array([shown(x[0])])))
