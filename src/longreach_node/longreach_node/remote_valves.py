"""Commands to the valves of a machine that runs as nodes."""

from __future__ import annotations

from collections.abc import Sequence

from longreach_msgs.msg import HydraulicState, ValveCommand
from std_msgs.msg import Header

from longreach_dynamics.errors import InputError
from longreach_node.hydraulic_messages import valve_command
from longreach_node.remote import remote


def command_valves(
    spools: Sequence[float],
    duration: float,
    namespace: str,
    timeout: float,
    *,
    topic: str,
    machine: str,
    others: str,
    stands_still: str,
) -> str:
    """
    Command the valves for some time [s of real time], close them, and return the topic.

    They are also closed when the function is interrupted. ``spools`` has a value in [-1, 1] for
    each cylinder; ``others`` is the error for other senders, with ``{topic}``, and
    ``stands_still`` the remedy when simulation time has stopped. InputError for another number of
    cylinders, LongreachError when there is no plant, its time has stopped, or another node
    commands the valves.
    """
    with remote('valves', namespace, timeout, f'longreach launch {machine}') as far:
        publisher = far.sole_publisher(ValveCommand, topic, others)
        sample = far.moving_sample(HydraulicState, 'hydraulics', machine, stands_still)
        names = list(sample.name)
        if len(names) != len(spools):
            raise InputError(
                f'{len(spools)} spool positions, allowed: {len(names)}, one for each of'
                f' {", ".join(names)}'
            )
        # A stamp of zero is now.
        told = valve_command(names, Header(), spools)
        closed = valve_command(names, Header(), [0.0] * len(names))
        far.repeat(publisher, told, duration, closed, others)
        return str(publisher.topic_name)
