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
    Command the valves for some time, close them, and return the topic.

    They are also closed when the function is interrupted.

    Parameters
    ----------
    spools : sequence of float
        Spool positions, -1 to 1, one for each cylinder.
    duration : float
        [s] of real time.
    namespace : str
    timeout : float
        Longest wait for the plant and its samples [s].
    topic : str
        Of the commands.
    machine : str
        Its name, for ``longreach launch`` and errors.
    others : str
        Message when other nodes command the valves, with ``{topic}`` for the topic.
    stands_still : str
        Remedy when simulation time has stopped, for the error message.

    Raises
    ------
    InputError
        When the machine has another number of cylinders.
    LongreachError
        When there is no plant, its time has stopped, or another node commands the valves.
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
