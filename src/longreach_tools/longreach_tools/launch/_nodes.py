"""
Processes from the tags ``node`` and ``executable``: command line, parameters, environment.

A node is run as ``EXECUTABLE args --ros-args -r __node:=NAME -r __ns:=NAMESPACE``, then
``--params-file`` for each param, and ``-r`` for each remap. The later one wins for parameters, the
earlier one for remaps.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from longreach_dynamics.errors import InputError

from ._attributes import flag, optional_text, pair, text, words
from ._functions import Scope, evaluate
from ._model import Entity, ParameterFile, ProcessSpecification
from ._output import ROUTES
from ._packages import find_executable
from ._substitutions import parse_template
from ._values import TYPES, Value, check_value, convert, dump_parameter, plain_value

__all__ = ['executable_process', 'join_namespace', 'node_process', 'parameter_value']

_NODE_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_NAMESPACE = re.compile(r'/|(/[A-Za-z_][A-Za-z0-9_]*)+')


def join_namespace(base: str | None, namespace: str | None) -> str | None:
    """
    Return a namespace below a base, absolute; None if neither is given.

    An absolute namespace stays as it is.
    """
    if base is None and namespace is None:
        return None
    joined = namespace if namespace is not None else base or ''
    if namespace is not None and base and not namespace.startswith('/'):
        joined = f'{base.rstrip("/")}/{namespace}'
    joined = '/' + joined.strip('/') if joined.strip('/') else '/'
    if not _NAMESPACE.fullmatch(joined):
        raise ValueError(
            f'{joined!r} is not a namespace; allowed: names of letters, digits and _, '
            'separated by /, none starting with a digit'
        )
    return joined


def node_process(entity: Entity, scope: Scope, number: int) -> ProcessSpecification:
    """Return the process of a ``node``."""
    name = optional_text(entity, 'name', scope)
    if name is not None and not _NODE_NAME.fullmatch(name):
        raise entity.location.error(
            f'name: {name!r} is not a node name; allowed: letters, digits and _, no digit first'
        )
    try:
        namespace = join_namespace(
            scope.configurations.get('ros_namespace'), optional_text(entity, 'namespace', scope)
        )
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise entity.location.error(f'namespace: {error}') from error
    full_name = None
    if name is not None and namespace is not None:
        full_name = f'{namespace.rstrip("/")}/{name}'

    command: list[str | ParameterFile] = [
        _executable(entity, scope),
        *words(entity, 'args', scope),
    ]
    command.append('--ros-args')
    if name is not None:
        command += ['-r', f'__node:={name}']
    if namespace is not None:
        command += ['-r', f'__ns:={namespace}']
    for param in entity.children_of('param'):
        command += ['--params-file', _parameter_file(param, full_name or '/**', scope)]
    for remap in entity.children_of('remap'):
        command += ['-r', ':='.join(pair(remap, 'from', 'to', scope))]
    return replace(_process(entity, scope, command, None, number), node=full_name or name)


def executable_process(entity: Entity, scope: Scope, number: int) -> ProcessSpecification:
    """Return the process of an ``executable``; parameters and errors as in node_process."""
    command = words(entity, 'cmd', scope)
    if not command:
        raise entity.location.error('cmd is empty; it must name a program')
    return _process(entity, scope, command, optional_text(entity, 'name', scope), number)


def _executable(entity: Entity, scope: Scope) -> str:
    """Return the path of a node's executable."""
    package = optional_text(entity, 'pkg', scope)
    name = text(entity, 'exec', scope)
    if package is None:
        return name
    try:
        return str(find_executable(package, name, scope.environment))
    except InputError as error:
        raise entity.location.error(str(error)) from error


def _process(
    entity: Entity,
    scope: Scope,
    command: list[str | ParameterFile] | list[str],
    label: str | None,
    number: int,
) -> ProcessSpecification:
    """Return a process with the attributes common to nodes and executables."""
    shell = entity.flag('shell', default=False)
    if not shell:
        _check_program(entity, str(command[0]), scope.environment)
    output = optional_text(entity, 'output', scope) or 'log'
    if output not in ROUTES:
        raise entity.location.error(f'output: {output!r}; allowed: {", ".join(ROUTES)}')
    return ProcessSpecification(
        name=f'{label or Path(str(command[0])).name}-{number}',
        command=tuple(command),
        environment=dict(scope.environment),
        shell=shell,
        output=output,
        respawn=flag(entity, 'respawn', scope),
        respawn_delay=entity.number('respawn_delay', 0.0),
        respawn_max_retries=int(entity.number('respawn_max_retries', -1)),
        ends_all='on_exit' in entity.attributes,
        sigterm_timeout=entity.number('sigterm_timeout', 5.0),
        sigkill_timeout=entity.number('sigkill_timeout', 5.0),
    )


def _check_program(entity: Entity, program: str, environment: Mapping[str, str]) -> None:
    """Refuse a program that cannot be started."""
    if shutil.which(program, path=environment.get('PATH', '')) is None:
        where = '' if '/' in program else ' on PATH'
        raise entity.location.error(f'there is no executable {program!r}{where}')


def _parameter_file(param: Entity, key: str, scope: Scope) -> str | ParameterFile:
    """Return the path of a given file, or the text of one to be written."""
    path = optional_text(param, 'from', scope)
    if path is not None:
        if not Path(path).is_file():
            raise param.location.error(f'from: there is no file {path!r}')
        return path
    name = text(param, 'name', scope)
    kind = param.literal('type', 'yaml')
    if kind not in TYPES:
        raise param.location.unsupported(
            f'the type {kind!r} of <param> (allowed: {", ".join(TYPES)})'
        )
    template = param.template('value')
    try:
        value = parameter_value(template.source if template else '', kind, scope)
    except ValueError as error:
        raise param.location.error(f'param {name!r}: {error}') from error
    return ParameterFile(dump_parameter(key, name, value))


def parameter_value(source: str, kind: str, scope: Scope) -> Value:
    """
    Return a parameter's value from the text in the file.

    Without a type the text is YAML before its substitutions are replaced, and their values are
    YAML again: ``"'10'"`` is a str, ``$(var x)`` has the type of the value of x.
    """
    if kind != 'yaml':
        return convert(evaluate(parse_template(source), scope), kind)
    value: object = source
    if not source.startswith('$('):
        # A text that is not YAML, such as "@x", is used as a str.
        with contextlib.suppress(ValueError):
            value = plain_value(source)
    if isinstance(value, list):
        return check_value([_replaced(item, scope) for item in value], source)
    return check_value(_replaced(value, scope), source)


def _replaced(value: object, scope: Scope) -> object:
    """Return a scalar, with its substitutions replaced and read as YAML if it has any."""
    if not isinstance(value, str):
        return value
    template = parse_template(value)
    text_value = evaluate(template, scope)
    if all(isinstance(part, str) for part in template.parts):
        return text_value
    return convert(text_value, 'yaml')
