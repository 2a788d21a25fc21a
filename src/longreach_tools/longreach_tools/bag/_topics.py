"""
Topics: their names, message types and quality of service.

Definitions are those of rosbags, then of ``share/<package>/msg`` in AMENT_PREFIX_PATH. DDS does
not report kind and depth of a publisher's history: a recording stores these as ``unknown``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach_dynamics.errors import InputError

from ._stamps import is_shared

if TYPE_CHECKING:
    from rosbags.interfaces import MessageDefinition, Qos, QosTime
    from rosbags.typesys.store import Typestore

# Topic, time [ns], CDR bytes.
Message = tuple[str, int, bytes]

_FULL_NAME = re.compile(r'(/[A-Za-z_][A-Za-z0-9_]*)+')

# Most bytes behind a message that are looked at.
_PADDING = 256

# A recorder must not lose messages while it writes or the machine is busy: this depth is 10 s of a
# topic with 1 kHz. The middleware allocates memory only as messages arrive.
_RECORDER_DEPTH = 10_000
# Of images and the like, which have megabytes each; lost messages are counted.
_LARGE_DEPTH = 64
_LARGE_TYPES = {f'sensor_msgs/msg/{name}' for name in ('Image', 'CompressedImage', 'PointCloud2')}
# Largest history of a player for slow subscribers. DDS sends a lost message again only when the
# loss is detected, which can take seconds.
PLAYER_DEPTH = 10_000


@dataclasses.dataclass(frozen=True)
class Topic:
    """A topic of a recording: its type and definition, message count and the offered QoS."""

    name: str
    typename: str
    count: int
    definition: MessageDefinition
    qos: tuple[Qos, ...]

    @property
    def is_shared(self) -> bool:
        """Whether the stamps are those of several publishers."""
        return is_shared(self.typename, len(self.qos))


@contextlib.contextmanager
def quiet_node(name: str) -> Iterator[Any]:
    """Yield a node that publishes nothing of its own; the caller's signal handlers stay."""
    import rclpy
    from rclpy.context import Context
    from rclpy.signals import SignalHandlerOptions
    from rclpy.utilities import try_shutdown

    context = Context()
    # rclpy's own signal handlers would shut down the context, and with it the queues.
    rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = rclpy.create_node(
            name, context=context, enable_rosout=False, start_parameter_services=False
        )
        yield node
        node.destroy_node()
    finally:
        try_shutdown(context=context)


# --- names ----------------------------------------------------------------------------------


def absolute_name(name: str, namespace: str = '/') -> str:
    """Return the absolute name of a topic; a relative name is resolved in the namespace."""
    return name if name.startswith('/') else f'/{namespace.strip("/")}/{name}'.replace('//', '/')


def checked_name(name: str, namespace: str = '/', *, patterns: bool = False) -> str:
    """Return the absolute name of a topic that ROS accepts; with ``patterns`` parts may be *."""
    full = absolute_name(name, namespace)
    checked = '/'.join('any' if patterns and part == '*' else part for part in full.split('/'))
    if not _FULL_NAME.fullmatch(checked) or '__' in full:
        raise InputError(
            f'topic name {name!r}; allowed: parts of letters, digits and _ between slashes, none '
            'of which begins with a digit, and no __'
        )
    return full


# --- types ----------------------------------------------------------------------------------


class MachineTypes:
    """Message types known on this machine: those of ROS 2 Jazzy, others loaded on demand."""

    def __init__(self) -> None:
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
            path = definition_file(name)
            try:
                text = path.read_text(encoding='utf-8')
                types.update(_parse(text, name, idl=path.suffix == '.idl'))
            except (TypesysError, UnicodeDecodeError) as error:
                raise InputError(f'{path}: not a message definition: {error}') from error
            wanted += _nested(types, name)
        self.store.register(types)

    def require_all(self) -> None:
        """Load every type that AMENT_PREFIX_PATH offers; unreadable ones are skipped."""
        for prefix in _prefixes():
            for path in sorted((prefix / 'share').glob('*/msg/*')):
                if path.suffix in ('.msg', '.idl'):
                    # The error of an unreadable one is raised when it is requested by name.
                    with contextlib.suppress(InputError):
                        self.require(f'{path.parts[-3]}/msg/{path.stem}')

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


def _read(read: Any, data: Any, typename: str) -> object:
    """Return a message, behind whose bytes may be padding; InputError if they are not one."""
    from rosbags.serde import SerdeError

    try:
        return read(data, typename)
    except SerdeError as error:
        # ``serialize_message`` counts the alignment of elements also for sequences that have none:
        # at most 8 bytes for each empty one. More than that at the end is an error.
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
    if dataclasses.is_dataclass(message):
        return sum(_empty_sequences(getattr(message, f.name)) for f in dataclasses.fields(message))
    if isinstance(message, str | bytes) or not hasattr(message, '__len__'):
        return 0
    if len(message) == 0:
        return 1
    return sum(map(_empty_sequences, message)) if isinstance(message, list) else 0


def message_class(typename: str) -> type:
    """Return the Python class of a message type."""
    package, _, name = typename.partition('/msg/')
    try:
        found: type = getattr(importlib.import_module(f'{package}.msg'), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise InputError(
            f'message type {typename}: not in package {package} as it is installed here; install'
            ' the version that has it, or source the workspace'
        ) from error
    return found


def _prefixes() -> Iterator[Path]:
    """Yield the prefixes in AMENT_PREFIX_PATH."""
    yield from map(Path, filter(None, os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)))


def definition_file(typename: str) -> Path:
    """Return the definition file of an installed type."""
    package, _, name = typename.partition('/msg/')
    for prefix in _prefixes():
        for suffix in ('.msg', '.idl'):
            path = prefix / 'share' / package / 'msg' / f'{name}{suffix}'
            if path.is_file():
                return path
    raise InputError(
        f'message type {typename}: no definition found, neither share/{package}/msg/{name}.msg '
        f'in AMENT_PREFIX_PATH nor among the standard types; source the workspace that has '
        f'package {package}'
    )


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
    for _, (kind, value) in types[name][1]:
        if kind in (Nodetype.ARRAY, Nodetype.SEQUENCE):
            kind, value = value[0]
        if kind == Nodetype.NAME:
            names.append(value)
    return names


# --- quality of service ---------------------------------------------------------------------


def recorded(profile: Any) -> Qos:
    """Convert an rclpy QoSProfile to the form stored in a recording."""
    from rosbags import interfaces as i

    def time(duration: Any) -> QosTime:
        return i.QosTime(*divmod(duration.nanoseconds, 1_000_000_000))

    return i.Qos(
        i.QosHistory[profile.history.name],
        profile.depth,
        i.QosReliability[profile.reliability.name],
        i.QosDurability[profile.durability.name],
        time(profile.deadline),
        time(profile.lifespan),
        i.QosLiveliness[profile.liveliness.name],
        time(profile.liveliness_lease_duration),
        profile.avoid_ros_namespace_conventions,
    )


def _profile(depth: int, reliable: bool, latched: bool) -> Any:
    """Return an rclpy QoSProfile."""
    from rclpy import qos

    make: Any = qos.QoSProfile
    return make(
        history=qos.QoSHistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=getattr(qos.QoSReliabilityPolicy, 'RELIABLE' if reliable else 'BEST_EFFORT'),
        durability=getattr(qos.QoSDurabilityPolicy, 'TRANSIENT_LOCAL' if latched else 'VOLATILE'),
    )


def subscription_profile(offered: Sequence[Qos], typename: str = '') -> Any:
    """Return the rclpy QoSProfile that hears all of these publishers; of none the usual one."""
    return _profile(
        _LARGE_DEPTH if typename in _LARGE_TYPES else _RECORDER_DEPTH,
        all(qos.reliability.name == 'RELIABLE' for qos in offered),
        bool(offered) and all(qos.durability.name == 'TRANSIENT_LOCAL' for qos in offered),
    )


def is_looser(profile: Any, other: Any) -> bool:
    """Return whether one rclpy QoSProfile hears publishers that another does not hear."""
    return bool(
        (profile.reliability != other.reliability and profile.reliability.name == 'BEST_EFFORT')
        or (profile.durability != other.durability and profile.durability.name == 'VOLATILE')
    )


def publisher_profile(offers: Sequence[Qos], count: int) -> Any:
    """Return the strongest of recorded QoS profiles; reliable, volatile without a record."""
    return _profile(
        max(1, min(count, PLAYER_DEPTH)),
        not offers or any(qos.reliability.name != 'BEST_EFFORT' for qos in offers),
        any(qos.durability.name == 'TRANSIENT_LOCAL' for qos in offers),
    )


def qos_summary(offers: Sequence[Qos]) -> str:
    """Return the QoS of a recorded topic in words."""
    words = [
        f'{qos.reliability.name}, {qos.durability.name}'.lower().replace('_', ' ')
        + f', depth {qos.depth}' * bool(qos.depth)
        for qos in offers
    ]
    return ' / '.join(dict.fromkeys(words)) or 'not recorded'
