"""
Compile the numerical kernels of all installed packages in advance.

Each entry point of the group ``longreach.warm_up`` is a function without arguments that calls
the kernels of its package once; kernels that are compiled already are loaded from the cache.
"""

from __future__ import annotations

from importlib import metadata


def main() -> None:
    """Call every entry point of the group ``longreach.warm_up``."""
    for point in metadata.entry_points(group='longreach.warm_up'):
        point.load()()


if __name__ == '__main__':
    main()
