"""
The command ``longreach`` and what its subcommands share.

``cli``        the command itself; packages add subcommands as entry points
``arguments``  types of arguments
``options``    options and subcommands that machines have in common
``output``     results as tables, JSON, CSV and pictures
``comparison`` a recorded run beside the library's
``demo``       demonstrations: run, record, compare, draw
``launch``     ``longreach launch``
``bag``        ``longreach bag``
``testing``    what tests of machines share
``warm_up``    compiles the kernels of all packages
"""
