"""What the command line says to nodes that run."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from longreach_msgs.msg import CylinderCommand, HydraulicState
from std_msgs.msg import Header

from longreach_dynamics.errors import InputError
from longreach_node.remote import call_plant as _call_plant
from longreach_node.remote import remote

__all__ = ['call_plant', 'command_valves']

_START = 'longreach launch excavator'
_OTHERS = (
    f'commands the cylinders on {{topic}}, too; start the excavator with {_START} operator:=false'
    ' to move its valves by hand'
)
_STANDS_STILL = 'if it is paused, longreach excavator resume lets it go on'

call_plant = functools.partial(_call_plant, start=_START)


def command_valves(
    spools: Sequence[float], duration: float, namespace: str, timeout: float
) -> str:
    """
    Command the valves for some time, close them, and return the topic.

    They are closed, too, when this is interrupted.

    Parameters
    ----------
    spools : sequence of float
        Spool positions of boom, arm, bucket, -1 to 1.
    duration : float
        [s] of real time.
    namespace : str
    timeout : float
        Longest wait for the plant and its samples [s].

    Raises
    ------
    InputError
        When there are not three.
    LongreachError
        When there is no plant, its time stands still, or somebody else commands the cylinders.
    """
    with remote('valves', namespace, timeout, _START) as far:
        publisher = far.sole_publisher(CylinderCommand, 'cylinder_command', _OTHERS)
        sample = far.moving_sample(HydraulicState, 'hydraulics', 'excavator', _STANDS_STILL)
        names = list(sample.name)
        if len(names) != len(spools):
            raise InputError(
                f'{len(spools)} spool positions, allowed: {len(names)}, one for each of'
                f' {", ".join(names)}'
            )
        # A stamp of zero is now.
        header = Header(frame_id=sample.header.frame_id)
        told = CylinderCommand(header=header, name=names, spool=list(spools))
        closed = CylinderCommand(header=header, name=names, spool=[0.0] * len(names))
        far.repeat(publisher, told, duration, closed, _OTHERS)
        return str(publisher.topic_name)
