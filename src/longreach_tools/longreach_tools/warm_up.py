"""
Compile the numerical kernels of all installed packages, so that their first use is fast.

Each entry point of the group ``longreach.warm_up`` is a function without arguments that calls
the kernels of its package once; what is compiled already is loaded and costs nothing.
"""

from __future__ import annotations

from importlib import metadata

__all__ = ['main']


def main() -> None:
    """Call every entry point of the group ``longreach.warm_up``."""
    for point in metadata.entry_points(group='longreach.warm_up'):
        point.load()()


if __name__ == '__main__':
    main()
