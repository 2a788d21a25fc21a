"""
The crane's plant as an FMU: desired force and disturbance in, car and load out.

The equations are those of :func:`longreach_crane.model.right_hand_side`, which is called with
symbols. What is not continuous is not in it: brake, end stops, emergency mode, controller.
"""

from __future__ import annotations

from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import sympy

from longreach_crane.model import FREE, Constants, Inputs, linear_model, right_hand_side
from longreach_crane.parameters import CraneParameters
from longreach_crane.simulation import STATE
from longreach_dynamics.fmu import FmuModel, Variable, rk4_step, write_fmu
from longreach_dynamics.parameters import rules_of

_STATES = tuple(
    Variable(c.name, c.unit, c.meaning, is_output=c.name in ('car_position', 'angle'))
    for c in STATE
)
_INPUTS = (
    Variable('desired_force', 'N', 'desired force of the motor, f_c^Desired'),
    Variable('disturbance', 'N', 'horizontal force on the load, f_d'),
)
_OUTPUTS = (Variable('load_position', 'm', 'position of the load, x_l'),)


def write_crane_fmu(file: str | Path, crane: CraneParameters) -> None:
    """Write the FMU of a crane's nonlinear model; raises the errors of :func:`write_fmu`."""
    rules = rules_of(CraneParameters)
    parameters = tuple(
        Variable(name, rules[field].unit, text, getattr(crane, field), bounds=rules[field].bounds)
        for name, field, text in (
            ('m_c', 'car_mass', 'mass of the car'),
            ('m_l', 'load_mass', 'mass of the load'),
            ('r', 'cable_length', 'length of the cable'),
            ('g', 'gravity', 'gravity'),
            ('d_c', 'car_friction', 'friction of the car'),
            ('d_l', 'load_friction', 'friction of the load'),
            ('motor_rate', 'motor_rate', 'inverse time constant of the motor'),
        )
    )
    x, u, p = (
        [sympy.Symbol(variable.name, real=True) for variable in variables]
        for variables in (_STATES, _INPUTS, parameters)
    )
    named: dict[str, Any] = dict(zip((v.name for v in parameters), p, strict=True))
    constants = Constants.of(crane)._replace(**named, linear=False)
    rates: list[Any] = [None] * len(x)
    # The source of the compiled function, with sine and cosine of symbols.
    symbolic = SimpleNamespace(sin=sympy.sin, cos=sympy.cos)
    function = FunctionType(right_hand_side.py_func.__code__, {'math': symbolic})
    function(0.0, x, Inputs(u[0], u[1], named['d_c'], FREE), constants, rates)
    load = x[1] + named['r'] * sympy.sin(x[3])
    read = [
        (name, array, index)
        for array, variables in (('x', _STATES), ('u', _INPUTS), ('p', parameters))
        for index, (name, *_) in enumerate(variables)
    ]
    fastest = np.abs(np.linalg.eigvals(linear_model(crane)[0])).max()
    model = FmuModel(
        name='crane',
        description='crane of ARGESIM C13R, nonlinear, without brake and controller',
        states=_STATES,
        inputs=_INPUTS,
        outputs=_OUTPUTS,
        parameters=parameters,
        code=_function('model_derivatives', 'dx', rates, read)
        + _function('model_outputs', 'y', [load], read),
        step=rk4_step(float(fastest)),
        duration=60.0,
    )
    write_fmu(file, model)


def _function(name: str, target: str, results: list[Any], read: list[tuple[str, str, int]]) -> str:
    """Return a function of C for expressions."""
    replaced, shortened = sympy.cse(results, order='none')
    used = set().union(*(result.free_symbols for result in results))
    names = {symbol.name for symbol in used}
    lines = [
        f'static int {name}(const double *x, const double *u, const double *p, double *{target})',
        '{',
        '    (void)x; (void)u; (void)p;',
        *(f'    const double {one} = {array}[{i}];' for one, array, i in read if one in names),
        *(f'    const double {symbol} = {sympy.ccode(value)};' for symbol, value in replaced),
        *(f'    {target}[{i}] = {sympy.ccode(value)};' for i, value in enumerate(shortened)),
        '    return 0;',
        '}',
        '',
    ]
    return '\n'.join(lines)
