"""Flexible links as an FMU: motor torques in, motor angles, joint angles and deflections out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.fmu import FmuModel, Variable, rk4_step, write_fmu
from longreach_dynamics.parameters import rules_of
from longreach_symbolic.code import as_single_c
from longreach_symbolic.links import LINK_QUANTITIES, Link, Links
from longreach_symbolic.vibration import Joints, modal_eigenvalues

_CODE = """
static int model_derivatives(const double *x, const double *u, const double *p, double *dx)
{
    double mass[LINKS_SIZE * LINKS_SIZE], velocity[LINKS_SIZE], force[LINKS_SIZE * LINKS_COUNT];
    double *found = dx + LINKS_SIZE;
    int i, j, k;
    links_equations(x, x + LINKS_SIZE, p, mass, velocity, found);
    links_force_map(p, force);
    for (i = 0; i < LINKS_SIZE; i++) {
        dx[i] = x[LINKS_SIZE + i];
        found[i] = -found[i] - velocity[i];
        for (k = 0; k < LINKS_COUNT; k++)
            found[i] += force[i * LINKS_COUNT + k] * u[k];
    }
    /* Cholesky factors in the lower triangle; the written form lets NaN fail, too. */
    for (j = 0; j < LINKS_SIZE; j++)
        for (i = j; i < LINKS_SIZE; i++) {
            double sum = mass[i * LINKS_SIZE + j];
            for (k = 0; k < j; k++)
                sum -= mass[i * LINKS_SIZE + k] * mass[j * LINKS_SIZE + k];
            if (i == j && !(sum > 0.0))
                return 1;
            mass[i * LINKS_SIZE + j] = i == j ? sqrt(sum) : sum / mass[j * LINKS_SIZE + j];
        }
    for (i = 0; i < LINKS_SIZE; i++) {
        for (k = 0; k < i; k++)
            found[i] -= mass[i * LINKS_SIZE + k] * found[k];
        found[i] /= mass[i * LINKS_SIZE + i];
    }
    for (i = LINKS_SIZE - 1; i >= 0; i--) {
        for (k = i + 1; k < LINKS_SIZE; k++)
            found[i] -= mass[k * LINKS_SIZE + i] * found[k];
        found[i] /= mass[i * LINKS_SIZE + i];
    }
    return 0;
}

static int model_outputs(const double *x, const double *u, const double *p, double *y)
{
    double force[LINKS_SIZE * LINKS_COUNT];
    int i, k;
    (void)u;
    links_force_map(p, force);
    for (k = 0; k < LINKS_COUNT; k++) {
        y[k] = 0.0;
        for (i = 0; i < LINKS_SIZE; i++)
            y[k] += force[i * LINKS_COUNT + k] * x[i];
    }
    links_positions(x, p, y + LINKS_COUNT);
    return 0;
}
"""


def write_links_fmu(file: str | Path, equations: Any, cse: bool = True) -> None:
    """Write the FMU of equations; symbols become parameters, and must have values."""
    model = equations.model
    if not model.has_values:
        raise InputError(
            'an FMU needs start values of its parameters; give --file with the numbers'
        )
    links, count = model.links, range(1, model.count + 1)
    coordinates = [(f'theta_{i}', 'rad', f'angle from chord {i - 1} to chord {i}') for i in count]
    coordinates += [
        (f'f_{i}{k}', 'm', f'deflection {k} of link {i}')
        for i in count
        for k in range(1, model.modes + 1)
    ]
    states = [Variable(*one, is_output=True) for one in coordinates]
    states += [
        Variable(f'd{name}', f'{unit}/s', f'rate of {text}') for name, unit, text in coordinates
    ]
    rules = rules_of(Links, Link)
    names = ['gravity', *LINK_QUANTITIES * model.count]
    parameters = [
        Variable(p.name, p.unit, p.meaning, p.value, bounds=rules[name].bounds)
        for name, p in zip(names, model.quantities, strict=True)
        if p.is_symbol
    ]
    # Of straight links and motors without torque.
    still = modal_eigenvalues(links, [0.0] * model.count, Joints(0.0, 0.0))
    fastest = float(np.abs(still).max())
    unit = FmuModel(
        name='links',
        description=f'{model.count} flexible links in a vertical plane, {links.basis} functions',
        states=tuple(states),
        inputs=tuple(Variable(f'torque_{i}', 'N m', f'torque of motor {i}') for i in count),
        outputs=(
            *(Variable(f'motor_angle_{i}', 'rad', f'angle of motor {i}') for i in count),
            *(
                Variable(f'end_{axis}_{i}', 'm', f'{axis} of the end of link {i}, y is up')
                for i in count
                for axis in 'xy'
            ),
        ),
        parameters=tuple(parameters),
        code=as_single_c(equations, cse) + _CODE,
        step=rk4_step(fastest),
    )
    write_fmu(file, unit)
