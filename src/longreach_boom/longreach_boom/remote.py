"""Commands of the command line to a boom that runs as nodes."""

from __future__ import annotations

import argparse
import math

from longreach_msgs.srv import AttachLoad

from longreach_node.remote import remote

__all__ = ['attach_load']


def attach_load(arguments: argparse.Namespace) -> None:
    """Attach the load of the arguments to a running boom, and print the plant's answer."""
    position = math.nan if arguments.position is None else arguments.position
    request = AttachLoad.Request(mass=arguments.mass, beam=arguments.beam, position=position)
    with remote(
        'attach_load', arguments.namespace, arguments.timeout, 'longreach launch boom'
    ) as far:
        print(far.call(AttachLoad, 'plant/attach_load', request))
