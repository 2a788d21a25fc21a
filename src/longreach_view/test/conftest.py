"""A headless Chromium for the tests of pages."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

_CHROMIUM = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser'))), None)
_OPTIONS = [
    '--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader',
    '--disable-background-networking', '--disable-component-update',
]  # fmt: skip


@pytest.fixture(scope='module')
def chromium() -> Iterator[Any]:
    """A headless Chromium; without one the test is skipped, and says why."""
    sync = pytest.importorskip('playwright.sync_api', reason='install playwright')
    if _CHROMIUM is None:
        pytest.skip('no chromium: apt install chromium')
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_OPTIONS)
        yield browser
        browser.close()
