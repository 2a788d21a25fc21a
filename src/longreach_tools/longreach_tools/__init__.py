"""
The command ``longreach`` and what its subcommands share.

``cli``      the command itself; packages add subcommands as entry points
``output``   results as tables, JSON, CSV and pictures
``launch``   ``longreach launch``
``bag``      ``longreach bag``
``warm_up``  compiles the kernels of all packages
"""
