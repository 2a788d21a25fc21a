"""Commands to the valves of a machine that runs as nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longreach_msgs.msg import HydraulicState, ValveCommand
from std_msgs.msg import Header

from longreach_dynamics.errors import InputError
from longreach_machine import MachineSpec
from longreach_node.hydraulic_messages import valve_command
from longreach_node.remote import remote


def command_valves(
    spec: MachineSpec[Any, Any, Any],
    spools: Sequence[float],
    duration: float,
    namespace: str,
    timeout: float,
) -> str:
    """
    Command the valves for some time [s of real time], close them, and return the topic.

    They are also closed when the function is interrupted. ``spools`` has a value in [-1, 1] for
    each cylinder, InputError for another number. LongreachError when there is no plant, its time
    has stopped, or another node commands the valves.
    """
    with remote('valves', namespace, timeout, spec.launch) as far:
        publisher = far.sole_publisher(ValveCommand, spec.valves, spec.other_senders)
        sample = far.moving_sample(HydraulicState, 'hydraulics', spec.name, spec.stands_still)
        names = list(sample.name)
        if len(names) != len(spools):
            raise InputError(
                f'{len(spools)} spool positions, allowed: {len(names)}, one for each of'
                f' {", ".join(names)}'
            )
        # A stamp of zero is now.
        told = valve_command(names, Header(), spools)
        closed = valve_command(names, Header(), [0.0] * len(names))
        far.repeat(publisher, told, duration, closed, spec.other_senders)
        return str(publisher.topic_name)
