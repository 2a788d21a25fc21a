"""Common parts of the machines' tests: what an operator does at random."""

from __future__ import annotations

import numpy as np

from longreach_machine.scenarios import ValveCommand

_SHORTEST, _LONGEST = 0.2, 2.0  # between two commands [s]
# A way to operate lasts so many commands on average.
_LASTS = 6
_STEP = 1e-3  # times are multiples of it [s]


def random_operation(
    random: np.random.Generator, axes: int, duration: float
) -> tuple[ValveCommand, ...]:
    """Return what a careless operator does with the valves."""
    commands, time = [], 0.0
    spools, way = np.zeros(axes), 'full'
    while time < duration:
        if random.random() < 1.0 / _LASTS:
            way = str(random.choice(['full', 'some', 'reverse', 'any', 'close']))
        if way == 'reverse' and spools.any():
            spools = -spools
        elif way in ('full', 'reverse'):
            spools = random.choice([-1.0, 1.0], axes)
        elif way == 'some':
            spools = random.choice([-1.0, 0.0, 1.0], axes)
        else:
            spools = random.uniform(-1.0, 1.0, axes) if way == 'any' else np.zeros(axes)
        commands.append(ValveCommand(round(time / _STEP) * _STEP, tuple(spools.tolist())))
        time += random.uniform(_SHORTEST, _LONGEST)
    return tuple(commands)
