"""What the command line says to nodes that run."""

from __future__ import annotations

import functools

from longreach_node.remote import call_plant as _call_plant

__all__ = ['call_plant']

call_plant = functools.partial(_call_plant, start='longreach launch excavator')
