"""
Message types: definitions, and Python classes.

A type is named ``package/msg/Name``. Its definition is searched first among the standard types of
ROS 2 Jazzy in rosbags, then in ``share/<package>/msg`` of every prefix in ``AMENT_PREFIX_PATH``,
with its nested types. A workspace's own messages are therefore found as soon as it is sourced.
Callers check by the type hash that a publisher uses the same definition.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach_dynamics.errors import InputError

if TYPE_CHECKING:
    from rosbags.interfaces import MessageDefinition
    from rosbags.typesys.store import Typestore

# Most bytes behind a message that are looked at.
_PADDING = 256


def need_rosbags() -> None:
    """Raise an error with installation instructions if rosbags is missing."""
    try:
        importlib.import_module('rosbags.rosbag2')
    except ModuleNotFoundError as error:
        raise InputError(
            f'bags need the Python package rosbags, which is not installed here ({error}); '
            'install it: pip install rosbags'
        ) from error


def need_ros() -> None:
    """Raise an error with instructions if rclpy, which recording and playing need, is missing."""
    try:
        importlib.import_module('rclpy')
    except ModuleNotFoundError as error:
        raise InputError(
            f'recording and playing need ROS 2, which was not found ({error}); source it, or the '
            'workspace, in this shell'
        ) from error


class MachineTypes:
    """
    Message types known on this machine, loaded on demand.

    Attributes
    ----------
    store : rosbags.typesys.store.Typestore
        All types of ROS 2 Jazzy and those loaded by :meth:`require`.
    """

    def __init__(self) -> None:
        need_rosbags()
        from rosbags.typesys import Stores

        self.store = _new_store(Stores.ROS2_JAZZY)

    def require(self, typename: str) -> None:
        """Load a type and its nested types into the store."""
        from rosbags.typesys import TypesysError

        types: dict[str, Any] = {}
        wanted = [typename]
        while wanted:
            name = wanted.pop()
            if name in self.store.fielddefs or name in types:
                continue
            path = _definition_file(name)
            try:
                types.update(_parse(path.read_text(encoding='utf-8'), name, idl=_is_idl(path)))
            except (TypesysError, UnicodeDecodeError) as error:
                raise InputError(f'{path}: not a message definition: {error}') from error
            wanted += _nested(types, name)
        if types:
            _refuse_cycles(types)
            self.store.register(types)

    def require_all(self) -> None:
        """Load every type that AMENT_PREFIX_PATH offers; unreadable ones are skipped."""
        for folder in _message_folders():
            for path in [*folder.glob('*.msg'), *folder.glob('*.idl')]:
                try:
                    self.require(f'{folder.parent.name}/msg/{path.stem}')
                except InputError:
                    # An unreadable definition must not affect the others; its error is raised when
                    # the type is requested by name.
                    continue

    def definition(self, typename: str) -> tuple[str, str]:
        """Return the definition of a type with all nested types, and its type hash (RIHS01)."""
        self.require(typename)
        return definition_in(self.store, typename)


def definition_in(store: Typestore, typename: str) -> tuple[str, str]:
    """Return the definition of a type in a store with nested types, and its type hash (RIHS01)."""
    text, _ = store.generate_msgdef(typename, ros_version=2)
    return text, store.hash_rihs01(typename)


def store_of_definitions(definitions: Mapping[str, MessageDefinition]) -> Typestore:
    """Return a type store with the definitions in a bag only."""
    from rosbags.interfaces import MessageDefinitionFormat
    from rosbags.typesys import Stores, TypesysError

    store = _new_store(Stores.EMPTY)
    for name, definition in definitions.items():
        if definition.format is MessageDefinitionFormat.NONE:
            continue
        try:
            idl = definition.format is MessageDefinitionFormat.IDL
            types = _parse(definition.data, name, idl=idl)
            _refuse_cycles(types)
            store.register(types)
        except TypesysError as error:
            raise InputError(f"the bag's definition of {name} cannot be used: {error}") from error
    return store


def _new_store(name: Any) -> Typestore:
    """Return a store of rosbags that also reads what rclpy's ``serialize_message`` writes."""
    from rosbags.typesys import get_typestore

    store = get_typestore(name)
    read: Any = partial(_read, store.deserialize_cdr)
    store.deserialize_cdr = read  # type: ignore[method-assign]
    return store


def _read(read: Callable[[Any, str], object], data: Any, typename: str) -> object:
    """
    Return a message whose bytes may have padding behind them; InputError if they are not one.

    ``serialize_message`` counts the alignment of elements also for sequences that have none: at
    most 8 bytes for each empty one. More than that at the end is an error.
    """
    from rosbags.serde import SerdeError

    try:
        return read(data, typename)
    except SerdeError as error:
        for cut in range(4, min(_PADDING, len(data) - 4), 4):
            with contextlib.suppress(SerdeError):
                message = read(data[:-cut], typename)
                if cut <= 8 * _empty_sequences(message):
                    return message
                break
        raise InputError(f'not a {typename}: {error}') from error
    except (LookupError, MemoryError, OverflowError, ValueError) as error:
        raise InputError(f'not a {typename}: {error!r}') from error


def _empty_sequences(message: Any) -> int:
    """Return how many sequences without elements are in a message."""
    if isinstance(message, str | bytes):
        return 0
    if dataclasses.is_dataclass(message):
        return sum(_empty_sequences(getattr(message, f.name)) for f in dataclasses.fields(message))
    if not hasattr(message, '__len__'):
        return 0
    if len(message) == 0:
        return 1
    return sum(map(_empty_sequences, message)) if isinstance(message, list) else 0


def message_class(typename: str) -> type:
    """Return the Python class of a message type."""
    package, _, name = typename.partition('/msg/')
    try:
        module = importlib.import_module(f'{package}.msg')
    except ModuleNotFoundError as error:
        raise InputError(
            f'message type {typename}: package {package} is not installed here; '
            f'install it or source the workspace that has it'
        ) from error
    found = getattr(module, name, None)
    if not isinstance(found, type):
        raise InputError(
            f'message type {typename}: the installed package {package} has no such message; '
            'install the version that has it'
        )
    return found


def _message_folders() -> Iterable[Path]:
    """Return the folders of message definitions, in the order of AMENT_PREFIX_PATH."""
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        if prefix:
            yield from sorted((Path(prefix) / 'share').glob('*/msg'))


def _definition_file(typename: str) -> Path:
    """Return the definition file of a type."""
    package, _, name = typename.partition('/msg/')
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        for suffix in ('.msg', '.idl'):
            path = Path(prefix) / 'share' / package / 'msg' / f'{name}{suffix}'
            if prefix and path.is_file():
                return path
    raise InputError(
        f'message type {typename}: no definition found, neither share/{package}/msg/{name}.msg '
        f'in AMENT_PREFIX_PATH nor among the standard types; source the workspace that has '
        f'package {package}'
    )


def _is_idl(path: Path) -> bool:
    """Return whether a definition file is IDL."""
    return path.suffix == '.idl'


def _parse(text: str, name: str, *, idl: bool) -> dict[str, Any]:
    """Parse the types in a definition text, in the format of rosbags."""
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    if not idl:
        return dict(get_types_from_msg(text, name))
    # IDL text in a bag has a section for each type, after a separator and its name.
    ruler = '=' * 80 + '\n'
    sections = text.split(ruler)[1:] if text.startswith(f'{ruler}IDL: ') else [f'\n{text}']
    types: dict[str, Any] = {}
    for section in sections:
        types.update(get_types_from_idl(section.partition('\n')[2]))
    return types


def _refuse_cycles(types: Mapping[str, Any]) -> None:
    """Raise InputError for a type that contains itself, directly or within another."""
    inner = {name: [one for one in _nested(types, name) if one in types] for name in types}
    # What contains none of the others can be left out.
    while free := [name for name, names in inner.items() if not names]:
        inner = {k: [n for n in v if n not in free] for k, v in inner.items() if k not in free}
    if inner:
        raise InputError(f'message type {", ".join(sorted(inner))} contains itself')


def _nested(types: Mapping[str, Any], name: str) -> list[str]:
    """Return the names of the types of the fields of ``name``."""
    from rosbags.interfaces import Nodetype

    if name not in types:
        raise InputError(f'message type {name}: its definition file defines {sorted(types)}')
    names = []
    for _, description in types[name][1]:
        kind, value = description
        if kind in (Nodetype.ARRAY, Nodetype.SEQUENCE):
            kind, value = value[0]
        if kind == Nodetype.NAME:
            names.append(value)
    return names
