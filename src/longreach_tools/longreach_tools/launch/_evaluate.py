"""
Evaluate a launch file with arguments into the processes to run; nothing is started or written.

Scopes are those of ROS 2 Jazzy: a group has its own configurations and namespace, an included
file shares its parent's. The later parameter wins, of remaps the earlier one.
"""

from __future__ import annotations

import math
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from longreach_dynamics.errors import InputError

from ._file import Element, Filling, read_launch_file, substituted, unknown
from ._packages import find_executable, find_share

_NODE_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_NAMESPACE = re.compile(r'/|(/[A-Za-z_][A-Za-z0-9_]*)+')
# Numbers of arguments of substitutions.
_FUNCTIONS = {
    'and': (2,),
    'command': (1,),
    'dirname': (0,),
    'equals': (2,),
    'find-pkg-share': (1,),
    'if': (2, 3),
    'not': (1,),
    'or': (2,),
    'var': (1,),
}
_TRUE, _FALSE = ('true', 'True', 'TRUE', '1'), ('false', 'False', 'FALSE', '0')

_Result = TypeVar('_Result')


class Argument(NamedTuple):
    """A declared argument; ``default`` is the text in the file, None if one must be given."""

    name: str
    default: str | None
    description: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class ParameterFile:
    """The text of a parameter file that is written when its process starts."""

    text: str


@dataclass(frozen=True)
class Process:
    """A process to run."""

    name: str
    command: tuple[str | ParameterFile, ...]
    environment: Mapping[str, str] = field(repr=False)
    respawn: bool = False
    respawn_delay: float = 0.0  # [s]
    respawn_max_retries: int = -1  # below zero: no limit
    ends_all: bool = False  # the whole launch ends with it


def evaluate_launch_file(
    path: Path, arguments: Mapping[str, str], environment: Mapping[str, str]
) -> list[Process]:
    """Return the processes of a launch file in the order of their start."""
    launch = _Launch(path, arguments, environment)
    failure = None
    try:
        launch.visit(read_launch_file(path))
    except InputError as error:
        failure = error
    # Every launch file has the argument network, declared or not.
    if strange := arguments.keys() - {*launch.declared, 'network'}:
        # It may be declared in a part that the conditions of this run leave out. If not, it is
        # also the likely cause of a failure.
        known = launch.declared | survey(path, arguments, environment)
        for name in sorted(strange - known.keys()):
            allowed = ', '.join(sorted(known)) or 'none'
            raise InputError(f'{path}: no argument {name!r}; allowed: {allowed}')
    if failure is not None:
        raise failure
    return launch.processes


def survey(
    path: Path, arguments: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, Argument]:
    """Return the arguments that a launch file and its includes declare, by name, in order."""
    launch = _Launch(path, arguments, environment, survey=True)
    launch.visit(read_launch_file(path))
    return launch.declared


def flag(text: str) -> bool:
    """Return the value of true, True, TRUE, 1, false, False, FALSE, 0."""
    word = text.strip()
    if word not in _TRUE + _FALSE:
        raise ValueError(f'{text!r} is neither true nor false; allowed: true, false, 1, 0')
    return word in _TRUE


class _Launch:
    """A walk through launch files; what is declared and the processes are collected."""

    def __init__(
        self,
        path: Path,
        arguments: Mapping[str, str],
        environment: Mapping[str, str],
        *,
        survey: bool = False,
    ) -> None:
        self.declared: dict[str, Argument] = {}
        self.processes: list[Process] = []
        self._nodes: set[str] = set()
        self._survey = survey
        self._files = [path]
        self._values = dict(arguments)
        self._environment = dict(environment)

    def visit(self, element: Element) -> None:
        """Do the actions inside an element."""
        for child in element.children:
            act = getattr(self, f'_{child.tag}')
            if not self._survey:
                if self._flag(child, 'if', True) and not self._flag(child, 'unless', False):
                    act(child)
            elif child.tag in ('arg', 'group', 'include', 'let'):
                try:
                    act(child)
                except InputError:
                    # Evaluation reports it, if this part is used at all.
                    continue

    # Actions

    def _arg(self, element: Element) -> None:
        name = element.attributes['name']
        default = element.attributes.get('default')
        choices = tuple(child.attributes['value'] for child in element.children)
        description = self._text(element, 'description')
        self.declared.setdefault(name, Argument(name, default, description, choices))
        if name not in self._values:
            if default is None:
                hint = f' ({description})' if description else ''
                raise element.error(f'argument {name!r}{hint} is not set; add {name}:=VALUE')
            self._values[name] = self._text(element, 'default')
        if choices and self._values[name] not in choices:
            raise element.error(
                f'argument {name!r} is {self._values[name]!r}; allowed: {", ".join(choices)}'
            )

    def _let(self, element: Element) -> None:
        self._values[self._text(element, 'name')] = self._text(element, 'value')

    def _group(self, element: Element) -> None:
        outer = dict(self._values)
        self.visit(element)
        self._values = outer

    def _include(self, element: Element) -> None:
        path = Path(self._text(element, 'file')).absolute()
        if path.resolve() in [file.resolve() for file in self._files]:
            raise element.error(f'file: {str(path)!r} includes itself')
        if not path.is_file():
            raise element.error(f'file: there is no launch file {str(path)!r}')
        # The values are evaluated with the included file's directory, as ROS does.
        self._files.append(path)
        try:
            for child in element.children:
                self._let(child)
            self.visit(read_launch_file(path))
        finally:
            self._files.pop()

    def _push_ros_namespace(self, element: Element) -> None:
        self._values['ros_namespace'] = self._namespace(element) or '/'

    def _executable(self, element: Element) -> None:
        command = self._words(element, 'cmd')
        if not command:
            raise element.error('cmd is empty; it must name a program')
        if shutil.which(command[0], path=self._environment.get('PATH', '')) is None:
            raise element.error(f'there is no executable {command[0]!r} on PATH')
        self._add(element, command, self._text(element, 'name'))

    def _node(self, element: Element) -> None:
        name = self._text(element, 'name') or None
        if name is not None and not _NODE_NAME.fullmatch(name):
            raise element.error(
                f'name: {name!r} is not a node name; allowed: letters, digits and _, '
                'no digit first'
            )
        namespace = self._namespace(element)
        full_name = None
        if name is not None and namespace is not None:
            full_name = f'{namespace.rstrip("/")}/{name}'
            if full_name in self._nodes:
                raise element.error(f'two nodes have the name {full_name}; give one another name')
            self._nodes.add(full_name)
        package = self._text(element, 'pkg')
        executable = self._read(
            element,
            'exec',
            lambda text, fill: find_executable(package, fill(text), self._environment),
        )
        command: list[str | ParameterFile] = [str(executable)]
        command += [*self._words(element, 'args'), '--ros-args']
        if name is not None:
            command += ['-r', f'__node:={name}']
        if namespace is not None:
            command += ['-r', f'__ns:={namespace}']
        for param in element.children_of('param'):
            command += ['--params-file', self._parameters(param, full_name or '/**')]
        for remap in element.children_of('remap'):
            command += ['-r', f'{self._text(remap, "from")}:={self._text(remap, "to")}']
        self._add(element, command, '')

    def _add(
        self, element: Element, command: list[str] | list[str | ParameterFile], label: str
    ) -> None:
        """Add a process with the attributes common to nodes and executables."""
        if (output := self._text(element, 'output') or 'log') not in ('screen', 'log'):
            raise element.error(f'output: {output!r}; allowed: screen, log')
        if element.attributes.get('on_exit', 'shutdown') != 'shutdown':
            raise element.error(f'on_exit="{element.attributes["on_exit"]}"; allowed: shutdown')
        process = Process(
            name=f'{label or Path(str(command[0])).name}-{len(self.processes) + 1}',
            command=tuple(command),
            environment=self._environment,
            respawn=self._flag(element, 'respawn', False),
            respawn_delay=_number(element, 'respawn_delay', float, 0.0),
            respawn_max_retries=int(_number(element, 'respawn_max_retries', int, -1)),
            ends_all='on_exit' in element.attributes,
        )
        self.processes.append(process)

    def _namespace(self, element: Element) -> str | None:
        """Return the absolute namespace of an element, None if there is none."""
        base, namespace = self._values.get('ros_namespace'), self._text(element, 'namespace')
        if base is None and not namespace:
            return None
        if not namespace.startswith('/'):
            namespace = f'{base or ""}/{namespace}'
        joined = '/' + namespace.strip('/')
        if not _NAMESPACE.fullmatch(joined):
            raise element.error(
                f'namespace: {joined!r} is not a namespace; allowed: names of letters, digits '
                'and _, separated by /, none starting with a digit'
            )
        return joined

    def _parameters(self, param: Element, key: str) -> ParameterFile:
        """Return the text of a parameter file."""
        import yaml  # not for launch files without parameters

        kind = param.attributes.get('type', 'yaml')
        if kind not in ('yaml', 'str'):
            raise param.error(unknown(f'the type {kind!r} of <param>', ('yaml', 'str')))
        name = self._text(param, 'name')
        convert = _filled if kind == 'str' else partial(_yaml_value, name)
        content = {key: {'ros__parameters': {name: self._read(param, 'value', convert)}}}
        return ParameterFile(yaml.safe_dump(content, default_flow_style=False))

    # Attributes and substitutions

    def _read(
        self, element: Element, name: str, convert: Callable[[str, Filling], _Result]
    ) -> _Result:
        """Return what ``convert`` makes of an attribute, or of the empty text, with marks."""
        source = element.attributes.get(name, '')
        try:
            return convert(*substituted(source, self._call))
        except ValueError as error:
            raise element.error(f'{name}="{source}": {error}') from error

    def _text(self, element: Element, name: str) -> str:
        """Return the text of an attribute, empty if it is not given."""
        return self._read(element, name, _filled)

    def _flag(self, element: Element, name: str, default: bool) -> bool:
        """Return an attribute that is true or false."""
        if name not in element.attributes:
            return default
        return self._read(element, name, lambda text, fill: flag(fill(text)))

    def _words(self, element: Element, name: str) -> list[str]:
        """Return the words of a command line; values of substitutions are not split."""
        return self._read(element, name, lambda text, fill: [*map(fill, shlex.split(text))])

    def _call(self, name: str, words: Sequence[str]) -> str:
        """Return the value of a substitution."""
        if name not in _FUNCTIONS:
            raise InputError(unknown(f'the substitution $({name})', _FUNCTIONS))
        if len(words) not in _FUNCTIONS[name]:
            allowed = ' or '.join(map(str, _FUNCTIONS[name]))
            raise InputError(
                f'$({name}) got {len(words)} arguments, allowed: {allowed}; one with spaces needs'
                ' quotes'
            )
        if name == 'var':
            if words[0] not in self._values:
                known = ', '.join(sorted(self._values)) or 'none'
                raise InputError(
                    f'$(var {words[0]}): {words[0]!r} is not set here; set are: {known}'
                )
            return self._values[words[0]]
        if name == 'dirname':
            return str(self._files[-1].parent)
        if name == 'find-pkg-share':
            return str(find_share(words[0], self._environment))
        if name == 'command':
            return _output_of(words[0], self._environment)
        if name == 'if':
            return [*words, ''][1 if flag(words[0]) else 2]
        if name == 'equals':
            result = _equal(*words)
        else:
            flags = [flag(word) for word in words]
            result = {'not': not flags[0], 'and': all(flags), 'or': any(flags)}[name]
        return str(result).lower()


def _equal(left: str, right: str) -> bool:
    """Compare as truth values, as numbers or as texts, whichever both are."""
    words = [word.lower() for word in (left, right)]
    if all(word in _TRUE + _FALSE for word in words):
        return (words[0] in _TRUE) == (words[1] in _TRUE)
    try:
        return math.isclose(float(left), float(right))
    except ValueError:
        return left == right


def _output_of(line: str, environment: Mapping[str, str]) -> str:
    """Return what a command writes; it must succeed and not complain."""
    try:
        result = subprocess.run(
            shlex.split(line),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            text=True,
            check=False,
        )
    except (OSError, IndexError) as error:
        raise InputError(f'$(command {line!r}) cannot be run: {error}') from error
    complaint = ' '.join(result.stderr.split())
    if result.returncode or complaint:
        raise InputError(
            f'$(command {line!r}) ended with exit code {result.returncode}: {complaint}'
        )
    return result.stdout


def _number(element: Element, name: str, kind: type[int] | type[float], default: float) -> float:
    """Return an attribute that is a number without substitutions."""
    source = element.attributes.get(name, str(default))
    try:
        number = kind(source)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (kind is float and number < 0.0):
        allowed = 'a number >= 0' if kind is float else 'a whole number'
        raise element.error(f'{name}="{source}"; allowed: {allowed} (no substitution)')
    return number


def _filled(text: str, fill: Filling) -> str:
    """Return a text with the values of its substitutions."""
    return fill(text)


def _yaml_value(name: str, text: str, fill: Filling) -> object:
    """Return the value of a parameter without a type by the rules of YAML 1.1."""
    import yaml

    wrong = ''
    if fill(text) != text and set(text) & {'"', "'"}:
        # Here launch reads quotes before it replaces, which gives the text another type.
        wrong = 'quotes beside a substitution'
    try:
        value = yaml.safe_load(fill(text))
    except yaml.YAMLError as error:
        value, wrong = '', ' '.join(str(error).split())
    kinds = {type(item) for item in (value if isinstance(value, list) else [value])}
    if not kinds <= {bool, int, float, str} or len(kinds) > 1:
        wrong = f'{fill(text)!r} is no bool, int, float or str, and no list of one of these types'
    if wrong:
        raise InputError(f'param {name!r}: {wrong}; type="str" makes a text')
    return value
