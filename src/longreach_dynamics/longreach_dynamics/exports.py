"""What a package exports: the names in the ``__init__.pyi`` beside its ``__init__.py``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return a package's ``__getattr__`` and ``__all__`` of the stub beside ``file``."""
    stub = ast.parse(Path(file).with_suffix('.pyi').read_text('utf-8'))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    modules = {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        return getattr(import_module(modules[name]), name)

    return get, sorted(modules)
