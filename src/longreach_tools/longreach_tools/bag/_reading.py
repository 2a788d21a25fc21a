"""Read messages as Python objects, by a recording's own types, else by this machine's."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach_dynamics.errors import InputError

from ._stamps import StampReader, stamp_reader
from ._storage import Bag, open_bag
from ._topics import MachineTypes, store_of_definitions

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore


def read_bag(
    path: str | Path, topics: Sequence[str] | None = None
) -> Iterator[tuple[str, int, Any]]:
    """
    Read the messages of a recording in the order of time, then of recording.

    Parameters
    ----------
    path : path
        Directory of the recording, or a storage file. What can be read of a recording that was
        never closed is read, with a warning.
    topics : sequence of str, optional
        Only these topics; all by default.

    Returns
    -------
    iterator of (str, int, object)
        Topic, bag time [ns], and the message with the fields of its type.

    Raises
    ------
    InputError
        At once, if the recording is missing, foreign or damaged, lacks a topic, or needs a type
        that is defined neither in it nor on this machine; later if a message cannot be read.
    """
    bag = open_bag(path)
    try:
        stores = store_of(bag, bag.select(topics))
    except BaseException:
        bag.close()
        raise
    if bag.problem:
        warnings.warn(
            f'{path}: {bag.problem}; {bag.message_count} messages recovered', stacklevel=2
        )

    def messages() -> Iterator[tuple[str, int, Any]]:
        with bag:
            for name, time, message, _ in messages_of(bag, stores):
                yield name, time, message

    return messages()


def bag_typestore(path: str | Path | None = None) -> Typestore:
    """
    Return the message types of a recording, or of this machine.

    Parameters
    ----------
    path : path, optional
        A recording. Without it: the types of ROS 2 Jazzy and all that AMENT_PREFIX_PATH offers.

    Returns
    -------
    rosbags.typesys.store.Typestore
        With ``deserialize_cdr(data, typename)``, ``serialize_cdr(message, typename)`` and the
        message classes by name in ``types``.

    Raises
    ------
    InputError
        If the recording cannot be read.
    """
    if path is None:
        machine = MachineTypes()
        machine.require_all()
        return machine.store
    with open_bag(path) as bag:
        return store_of_definitions({t.typename: t.definition for t in bag.topics.values()})


def store_of(
    bag: Bag, names: Sequence[str], *, missing_is_error: bool = True, repair: bool = False
) -> dict[str, Typestore]:
    """Return each topic's type store; ``repair``: this machine's types where none is readable."""
    definitions = {bag.topics[n].typename: bag.topics[n].definition for n in names}
    try:
        own = store_of_definitions(definitions)
    except InputError:
        if not repair:
            raise
        own = store_of_definitions({})
    stores = {}
    machine: MachineTypes | None = None
    for name in names:
        typename = bag.topics[name].typename
        if typename in own.fielddefs:
            stores[name] = own
            continue
        machine = machine or MachineTypes()
        try:
            machine.require(typename)
        except InputError:
            if missing_is_error:
                raise
            continue
        stores[name] = machine.store
    return stores


def stamp_readers(bag: Bag, stores: dict[str, Typestore]) -> dict[str, StampReader]:
    """Return the stamp readers of the topics with a type store whose messages have stamps."""
    readers = {n: stamp_reader(bag.topics[n].typename, store) for n, store in stores.items()}
    return {name: reader for name, reader in readers.items() if reader is not None}


def messages_of(bag: Bag, stores: dict[str, Typestore]) -> Iterator[tuple[str, int, Any, bytes]]:
    """Yield topic, bag time [ns], message and its bytes of the topics with a type store."""
    for name, time, data in bag.messages(list(stores)):
        try:
            message = stores[name].deserialize_cdr(data, bag.topics[name].typename)
        except InputError as error:
            raise InputError(f'{bag.path}: {name} at {time} ns: {error}') from error
        yield name, time, message, data


def first_messages(path: str | Path, names: Sequence[str]) -> dict[str, Any]:
    """Return the first message of each topic that has one."""
    found: dict[str, Any] = {}
    with open_bag(path) as bag:
        waiting = {name for name in names if name in bag.topics and bag.topics[name].count}
        stores = store_of(bag, sorted(waiting))
        for name, _, data in bag.messages(sorted(waiting)):
            if name in waiting:
                found[name] = stores[name].deserialize_cdr(data, bag.topics[name].typename)
                waiting.remove(name)
            if not waiting:
                break
    return found
