"""
A parameter object as the parameters of a node.

One class derived from :class:`longreach_dynamics.parameters.Parameters` is the table of a node:
each field becomes a ROS parameter with its type, description, bounds and whether it may change.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, Rule, rule_of

T = TypeVar('T', bound=Parameters)

_TYPES = {
    bool: Parameter.Type.BOOL,
    int: Parameter.Type.INTEGER,
    float: Parameter.Type.DOUBLE,
    str: Parameter.Type.STRING,
}
# Parameters of ROS itself, declared on a node or given in a parameter file for all nodes.
_ROS_OWN = ('use_sim_time', 'start_type_description_service')
_ROS_PREFIXES = ('qos_overrides.',)


def declare(
    node: Node,
    cls: type[T],
    on_change: Callable[[T], None] | None = None,
    otherwise: Callable[[T], Mapping[str, Any]] | None = None,
) -> T:
    """
    Declare the fields of a class as parameters of a node, and return the object of their values.

    Fields are of type bool, int, float or str. ``on_change`` is called with a new object when a
    field that is not read-only was changed at run time; ``otherwise``, called with the object,
    returns values for fields that were not given, by name. InputError when an override has a wrong
    type or value, or a name that this node does not have.
    """
    overrides = node._parameter_overrides
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for name in overrides:
        if name not in fields and name not in _ROS_OWN and not name.startswith(_ROS_PREFIXES):
            raise InputError(
                f'parameter {name!r} is unknown to node {node.get_fully_qualified_name()},'
                f' allowed: {", ".join(fields)}'
            )
    given = {name: overrides[name].value for name in fields if name in overrides}
    for name, field in fields.items():
        if name not in given and field.default is dataclasses.MISSING:
            raise InputError(f'parameter {name!r} is required: {rule_of(field).description}')
    values = cls(**given)
    if otherwise is not None:
        others = otherwise(values)
        values = values.replace(**{n: others[n] for n in others if n not in given})
    types = typing.get_type_hints(cls)
    for name, field in fields.items():
        # 10 for a number is right, although YAML makes an integer of it.
        value = Parameter(name, _TYPES[types[name]], getattr(values, name))
        if name in overrides:
            overrides[name] = value
        node.declare_parameter(name, value.value, _descriptor(name, field, types[name]))
    _check_changes(node, values, on_change)
    return values


def run_time_names(cls: type[Parameters]) -> frozenset[str]:
    """Return the names of the fields that may be set at run time."""
    return frozenset(f.name for f in dataclasses.fields(cls) if not rule_of(f).read_only)


def _descriptor(name: str, field: dataclasses.Field[Any], kind: type) -> ParameterDescriptor:
    """Return a field's descriptor; the exact bounds are in its constraints, as a text."""
    rule = rule_of(field)
    unit = f' [{rule.unit}]' if rule.unit not in ('', '1') else ''
    return ParameterDescriptor(
        name=name,
        type=_TYPES[kind].value,
        description=rule.description + unit,
        additional_constraints=_allowed(rule, kind),
        read_only=rule.read_only,
        **_ranges(rule, kind),
    )


def _allowed(rule: Rule, kind: Any) -> str:
    """Return what is allowed for a field, as a text."""
    if kind is bool:
        return 'true | false'
    if kind is str and not rule.choices:
        return 'a text'
    return str(rule.range_text())


def _ranges(rule: Rule, kind: type) -> dict[str, list[Any]]:
    """Return the bounds as a descriptor holds them, for sliders: only where both ends have one."""
    low = rule.above if rule.at_least is None else rule.at_least
    high = rule.below if rule.at_most is None else rule.at_most
    if low is None or high is None:
        return {}
    if kind is int:
        return {'integer_range': [IntegerRange(from_value=int(low), to_value=int(high), step=0)]}
    return {'floating_point_range': [FloatingPointRange(from_value=low, to_value=high)]}


def _check_changes(node: Node, values: T, on_change: Callable[[T], None] | None) -> None:
    """Let changes at run time be checked together, and refused with the text of a start."""
    # rclpy would answer first, with its own texts, for a type, a range or a read-only field: its
    # two public methods, which its parameter services call, are therefore replaced.
    fields = {field.name: field for field in dataclasses.fields(values)}
    types, set_all = typing.get_type_hints(type(values)), node.set_parameters_atomically

    def as_declared(parameter: Parameter) -> Parameter:
        # 10 as 10.0 where a number is declared: YAML makes an integer of it.
        whole = parameter.type_ is Parameter.Type.INTEGER
        if whole and types.get(parameter.name) is float:
            return Parameter(parameter.name, Parameter.Type.DOUBLE, float(parameter.value))
        return parameter

    def set_together(parameters: list[Parameter]) -> SetParametersResult:
        nonlocal values
        parameters = [as_declared(parameter) for parameter in parameters]
        changes: dict[str, Any] = {p.name: p.value for p in parameters if p.name in fields}
        try:
            for name in changes:
                if rule_of(fields[name]).read_only:
                    raise InputError(f'{name} is read-only: set it when the node starts')
            after = values.replace(**changes)
        except InputError as error:
            return SetParametersResult(successful=False, reason=str(error))
        result = set_all(parameters)
        if result.successful and changes:
            values = after
            if on_change is not None:
                on_change(values)
        return result

    # Not by assignment, which type checkers refuse for methods.
    node.__dict__['set_parameters_atomically'] = set_together
    node.__dict__['set_parameters'] = lambda given: [set_together([one]) for one in given]
