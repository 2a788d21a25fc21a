"""
The command ``longreach`` and common parts of its subcommands.

``cli``        the command itself; packages add subcommands as entry points
``arguments``  types of arguments
``options``    options and subcommands that machines have in common
``output``     results as tables, JSON, CSV and pictures
``comparison`` comparison of a recorded run with the library's
``demo``       demonstrations: launch, record, compare, draw
``launch``     ``longreach launch``
``plot``       ``longreach plot`` and ``longreach animate``
``machine_command``, ``run_figure``  what follows from the declaration of a machine
``presets``    figures of recordings of other packages
``new``        ``longreach new``, a package with a machine
``bag``        ``longreach bag``
``fields``     numbers in messages, by name
``signals``    numbers of a recording over time
``testing``    common parts of the machines' tests
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
