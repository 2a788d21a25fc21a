"""A replay in a real browser."""

from __future__ import annotations

import pytest
from pages import Tab, View
from test_replay import crane_bag

from longreach_view.page import Request
from longreach_view.recording import BagSource

# Samples from 11 s to 12.5 s.
LOST = range(60, 75)
# Whether a chart has a line at a time: pixels of the colour #1f77b4.
HAS_LINE = """(time) => { const { chart } = Object.values(window.__viserTestpoints.uplots)[0];
    const { top, height } = chart.bbox, x = Math.round(chart.valToPos(time, 'x', true));
    const pixels = chart.ctx.getImageData(x, top, 1, height).data;
    return pixels.some((red, k) => k % 4 === 0 && red < 90 && pixels[k + 2] > 150); }"""


@pytest.fixture(scope='module')
def replay(chromium, tmp_path_factory):
    """A tab with a paused recording from 5 s to 15 s."""
    source = BagSource([crane_bag(tmp_path_factory.mktemp('replay') / 'a', 0.5, lost=LOST)])
    source.handle(Request('', 'play'))
    view = View(source, length=source.length, begin=source.begin)
    tab = Tab(chromium, view)
    tab.until(lambda: '5.00 s' in tab.state(), 'the beginning')
    number = tab.page.get_by_label('Time [s]').last

    def choose():
        # What is typed while the page is still loading may be lost.
        number.fill('13')
        number.press('Enter')
        tab.page.wait_for_timeout(500)
        return '13.00 s' in tab.state()

    tab.until(choose, 'the time that was chosen')
    tab.until(lambda: [line[-1] for line in tab.charts()][:1] == [4.0], 'the charts')
    yield tab
    assert not tab.errors
    tab.page.close()
    view.close()


def test_the_slider_of_a_replay_seeks(replay):
    position = replay.view.world.machines['crane'].positions['car_joint']
    assert position == pytest.approx(4.0)
    assert 'paused' in replay.state()
    replay.page.evaluate('document.activeElement.blur()')
    for key, time in (('ArrowRight', '13.10 s'), ('ArrowLeft', '13.00 s')):
        replay.page.keyboard.press(key)
        replay.until(lambda shown=time: shown in replay.state(), f'{key}: {time}')


def test_charts_of_a_replay_show_values_zoom_and_seek(replay):
    """They show 15 s up to 13 s; the car is at 0.5 m/s times the time from 5 s on."""
    mouse, over = replay.page.mouse, replay.page.locator('.u-over').first
    over.scroll_into_view_if_needed()
    replay.page.wait_for_timeout(500)
    box = over.bounding_box()
    y = box['y'] + 0.5 * box['height']

    def x(time):
        return box['x'] + (time + 2.0) / 15.0 * box['width']

    def axis():
        return replay.axes()[0][:2]

    found = [replay.page.evaluate(HAS_LINE, time) for time in (10.5, 11.5, 12.3, 12.8)]
    assert found == [True, False, False, True]
    mouse.move(x(9.0), y)
    written = """Object.values(window.__viserTestpoints.uplots)
        .map(({chart}) => chart.axes[1].values(chart, [0, -2e-5, 1.5])).find(Boolean)"""
    assert replay.page.evaluate(written) == ['0', '-2e-5', '1.5']
    values = replay.page.locator('.u-legend').first.locator('.u-value')
    replay.until(lambda: values.first.inner_text() != '–', 'values')
    time, value = (float(text) for text in values.all_inner_texts()[:2])
    assert value == pytest.approx(0.5 * (time - 5.0), abs=0.06)
    assert time == pytest.approx(9.0, abs=0.2)

    mouse.move(x(6.0), y)
    mouse.down()
    mouse.move(x(10.0), y, steps=3)
    mouse.up()
    replay.until(lambda: axis() == pytest.approx([6.0, 10.0], abs=0.2), 'the marked part')
    mouse.dblclick(x(9.0), y)
    replay.until(lambda: axis() == pytest.approx([-2.0, 13.0]), 'all of it')
    assert '13.00 s' in replay.state()
    mouse.click(x(9.0), y)
    replay.until(lambda: replay.time() == pytest.approx(9.0, abs=0.2), 'the time that was clicked')
