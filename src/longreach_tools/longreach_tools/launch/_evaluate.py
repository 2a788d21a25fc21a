"""
Evaluate a launch file with arguments into a plan: which processes to run, in which order.

No process is started and no file written here. Scopes are those of ROS 2 Jazzy: a group has its
own configurations and namespace; an included file shares those of its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from longreach_dynamics.errors import InputError

from ._attributes import condition, pair, text
from ._functions import Scope
from ._model import Entity, LogLine, Plan, ProcessSpecification
from ._nodes import executable_process, join_namespace, node_process
from ._reader import read_launch_file
from ._survey import choices_of, refuse_unknown, survey

__all__ = ['evaluate_launch_file']

_DEEPEST = 64


def evaluate_launch_file(
    path: Path, arguments: Mapping[str, str], environment: Mapping[str, str]
) -> Plan:
    """Return the plan of a launch file."""
    scope = Scope(path, dict(arguments), dict(environment))
    evaluator = _Evaluator(scope)
    try:
        evaluator.document(path, set(arguments))
    except InputError as error:
        # A misspelt argument is the likely cause of this error.
        known = evaluator.declared | survey(path, arguments, environment).keys()
        try:
            refuse_unknown(path, arguments, known)
        except InputError as misspelt:
            raise misspelt from error
        raise
    if not arguments.keys() <= evaluator.declared:
        # It may be declared in a part that the conditions of this run leave out.
        known = evaluator.declared | survey(path, arguments, environment).keys()
        refuse_unknown(path, arguments, known)
    warnings = [LogLine(line, 'WARN', 'launch') for line in scope.warnings]
    return Plan((*warnings, *evaluator.steps))


class _Evaluator:
    """Walks through launch files in order and collects steps."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.steps: list[ProcessSpecification | LogLine] = []
        self.declared: set[str] = set()
        self._processes = 0
        self._nodes: set[str] = set()
        self._depth = 0
        self._actions: dict[str, Callable[[Entity], None]] = {
            'arg': self._arg,
            'executable': self._executable,
            'group': self._group,
            'include': self._include,
            'let': self._let,
            'node': self._node,
            'push_ros_namespace': self._push_ros_namespace,
        }

    def document(self, path: Path, given: set[str], include: Entity | None = None) -> None:
        """Evaluate a file; ``given`` are the arguments that it gets by name."""
        root = read_launch_file(path)
        for entity in root.children:
            required = entity.tag == 'arg' and entity.template('default') is None
            conditional = {'if', 'unless'} & entity.attributes.keys()
            if required and not conditional and entity.literal('name', '') not in given:
                raise _missing(entity, include)
        self.children(root)

    def children(self, entity: Entity) -> None:
        """Evaluate the actions inside an entity."""
        for child in entity.children:
            if condition(child, self.scope):
                self._actions[child.tag](child)

    def _arg(self, entity: Entity) -> None:
        name = entity.literal('name', '')
        self.declared.add(name)
        values = self.scope.configurations
        if name not in values:
            if entity.template('default') is None:
                raise _missing(entity, None)
            values[name] = text(entity, 'default', self.scope)
        choices = choices_of(entity)
        if choices and values[name] not in choices:
            raise entity.location.error(
                f'argument {name!r} is {values[name]!r}; allowed: {", ".join(choices)}'
            )

    def _let(self, entity: Entity) -> None:
        name, value = pair(entity, 'name', 'value', self.scope)
        self.scope.configurations[name] = value

    def _include(self, entity: Entity) -> None:
        scope = self.scope
        path = Path(text(entity, 'file', scope)).absolute()
        before = scope.file
        # The values are evaluated with the included file's directory, as ROS does.
        scope.file = path
        given = set()
        for child in entity.children:
            name, value = pair(child, 'name', 'value', scope)
            scope.configurations[name] = value
            given.add(name)
        if self._depth == _DEEPEST:
            raise entity.location.error(
                f'includes are nested deeper than {_DEEPEST} files; does a file include itself?'
            )
        if not path.is_file():
            raise entity.location.error(f'file: there is no launch file {str(path)!r}')
        self._depth += 1
        self.document(path, given, entity)
        self._depth -= 1
        scope.file = before

    def _group(self, entity: Entity) -> None:
        outer = self.scope
        self.scope = replace(outer, configurations=dict(outer.configurations))
        self.children(entity)
        self.scope = outer

    def _push_ros_namespace(self, entity: Entity) -> None:
        values = self.scope.configurations
        try:
            joined = join_namespace(
                values.get('ros_namespace'), text(entity, 'namespace', self.scope)
            )
        except InputError:
            raise
        except ValueError as error:
            raise entity.location.error(f'namespace: {error}') from error
        values['ros_namespace'] = joined or '/'

    def _executable(self, entity: Entity) -> None:
        self._processes += 1
        self.steps.append(executable_process(entity, self.scope, self._processes))

    def _node(self, entity: Entity) -> None:
        self._processes += 1
        process = node_process(entity, self.scope, self._processes)
        if process.node is not None and process.node.startswith('/'):
            if process.node in self._nodes:
                self.scope.warnings.append(
                    f'{entity.location}: two nodes have the name {process.node}'
                )
            self._nodes.add(process.node)
        self.steps.append(process)


def _missing(entity: Entity, include: Entity | None) -> InputError:
    """Return the complaint about an argument without a value."""
    name = entity.literal('name', '')
    described = entity.literal('description', '')
    hint = f' ({described})' if described else ''
    if include is not None:
        return include.location.error(
            f'argument {name!r}{hint} of the included file has no default; '
            f'give it here: <arg name="{name}" value="..."/>'
        )
    return entity.location.error(f'argument {name!r}{hint} is not set; add {name}:=VALUE')
