"""
The documentation as a site, by Sphinx: ``make docs``.

The pages are those of the tree, which can be read where they are. The reference of the Python API
is made here: a page for each package, with what its ``__init__.pyi`` exports.
"""

import dataclasses
import importlib
import inspect
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
API = ROOT / 'docs' / 'api'

project = 'Longreach'
author = project_copyright = 'Longreach developers'
extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.napoleon']
root_doc = 'docs/index'
include_patterns = ['*.md', '*.rst', 'docs/**', 'src/*/README.md']
exclude_patterns = ['.venv', 'build', 'install', 'log', 'out']
html_theme = 'furo'
html_title = 'Longreach'
# Anchors of headings as on a hosting page.
myst_heading_anchors = 4
# Scenario, for instance, is a name in many packages.
suppress_warnings = ['ref.python']
napoleon_use_ivar = True
autodoc_typehints = 'none'
autodoc_member_order = 'bysource'


def write_reference() -> None:
    """Write the pages of the Python API."""
    shutil.rmtree(API, ignore_errors=True)
    API.mkdir()
    packages = sorted(path.parent.name for path in ROOT.glob('src/*/longreach_*/__init__.pyi'))
    for package in packages:
        module = importlib.import_module(package)
        lines = [package, '=' * len(package), '']
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found):
                lines += [f'.. autoclass:: {package}.{name}', '   :members:', '']
            elif callable(found):
                lines += [f'.. autofunction:: {package}.{name}', '']
            else:
                lines += [f'.. py:data:: {package}.{name}', '']
        (API / f'{package}.rst').write_text('\n'.join(lines), encoding='utf-8')
    entries = ''.join(f'   {package}\n' for package in packages)
    (API / 'index.rst').write_text(
        f'Python API\n==========\n\n.. toctree::\n   :maxdepth: 1\n\n{entries}', encoding='utf-8'
    )


def describe_fields(
    _app: Any, _what: str, _name: str, found: Any, _options: Any, lines: list[str]
) -> None:
    """Add the fields of parameter objects, which declare units and meanings."""
    if dataclasses.is_dataclass(found):
        rules = {field.name: field.metadata.get('rule') for field in dataclasses.fields(found)}
        lines += [
            f':ivar {name}: {rule.description} [{rule.unit}]'.removesuffix(' []')
            for name, rule in rules.items()
            if rule is not None
        ]


def setup(app: Any) -> None:
    """Register what is made here."""
    write_reference()
    app.connect('autodoc-process-docstring', describe_fields)
