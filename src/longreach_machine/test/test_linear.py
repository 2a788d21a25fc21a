"""Choice of inputs and outputs of linear models."""

from __future__ import annotations

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


def test_repeated_inputs_and_outputs_are_refused() -> None:
    np.testing.assert_allclose(linearize(SUM, ['b', 'a']).D, [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InputError, match='inputs = a, b, a, allowed: each of them once'):
        linearize(SUM, ['a', 'b', 'a'])
    with pytest.raises(InputError, match='outputs = b, b, allowed'):
        linearize(SUM).select(outputs=['b', 'b'])
