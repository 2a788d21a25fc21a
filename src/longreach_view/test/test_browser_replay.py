"""A replay in a real browser."""

from __future__ import annotations

import pytest
from pages import Tab, View
from test_replay import crane_bag

from longreach_view.page import Request
from longreach_view.recording import BagSource


def test_the_slider_of_a_replay_seeks(chromium, tmp_path):
    source = BagSource([crane_bag(tmp_path / 'a', 0.5)])
    source.handle(Request('', 'play'))
    view = View(source, length=source.length)
    try:
        tab = Tab(chromium, view)
        tab.until(lambda: '5.00 s' in tab.state(), 'the beginning')
        number = tab.page.locator('input[type=text]:visible').first
        number.fill('8')
        number.press('Enter')
        tab.until(lambda: '13.00 s' in tab.state(), 'the time that was chosen')
        assert view.world.machines['crane'].positions['car_joint'] == pytest.approx(4.0)
        tab.until(lambda: [line[-1] for line in tab.charts()][:1] == [4.0], 'the charts')
        assert not tab.errors
        tab.page.close()
    finally:
        view.close()
