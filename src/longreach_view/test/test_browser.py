"""The page in a real browser."""

from __future__ import annotations

import re
from urllib.parse import quote

import numpy as np
import pytest
from pages import FakeSource, Tab, View, findings

# Colour and height [pixels] of the line that says that there is an emergency.
ALARM = """() => {
    const line = [...document.querySelectorAll('#state div')]
        .find(e => e.textContent === 'EMERGENCY');
    return line && [getComputedStyle(line).backgroundColor, line.clientHeight]; }"""


@pytest.fixture(scope='module')
def shown(chromium):
    """A tab, and the view of the swinging crane that it shows."""
    tab = Tab(chromium, View(FakeSource()))
    yield tab
    tab.page.close()
    tab.view.close()


def yellow(picture):
    """Return where the crane's car is in a picture, as its material is yellow."""
    red, green, blue = np.moveaxis(picture, 2, 0)
    return (red > 140) & (green > 100) & (blue < 90)


def fits(axis):
    """Return whether a chart shows 15 s and the car's way, from -3 m to 3 m, not much more."""
    begin, end, low, high = axis
    return abs(end - begin - 15.0) < 1e-6 and -5.0 <= low <= -2.9 and 2.9 <= high <= 5.0


def test_the_machine_moves_and_stands_still_when_paused(shown):
    source = shown.view.source
    shown.until(lambda: yellow(shown.picture()).any(), 'the car of the crane')
    before = shown.picture()
    shown.until(lambda: (shown.picture() != before).any(), 'a picture that changes')

    shown.page.get_by_role('button', name='Pause').click()
    shown.until(lambda: source.paused, 'the simulation is paused')
    shown.until(lambda: 'paused' in shown.state(), 'the page says that it is paused')
    previous = [shown.picture()]

    def stands_still():
        previous.append(shown.picture())
        return (previous[-1] == previous[-2]).all()

    shown.until(stands_still, 'a picture that stands still')
    time, last = shown.time(), shown.charts()
    shown.page.wait_for_timeout(300)
    assert (shown.picture() == previous[-1]).all()
    assert (shown.time(), shown.charts()) == (time, last)

    shown.page.get_by_role('button', name='Resume').click()
    shown.until(lambda: shown.time() > time, 'time goes on')
    shown.until(lambda: (shown.picture() != previous[-1]).any(), 'the machine goes on')


def test_charts_of_the_preset_advance(shown):
    shown.until(lambda: len(shown.charts()) == 3, 'three charts')
    for chart in range(2):
        first = shown.charts()[chart]
        shown.until(lambda k=chart, old=first: shown.charts()[k] != old, 'later values')
    shown.until(lambda: fits(shown.axes()[0]), 'limits that fit')
    begin = shown.axes()[0][0]
    shown.until(lambda: shown.axes()[0][0] > begin, 'an axis that follows')


def test_a_signal_is_added_from_the_list_by_typing_a_part_of_its_name(shown):
    page = shown.page
    shown.until(lambda: len(shown.charts()) == 3, 'three charts')
    page.get_by_text('Signals', exact=True).click()
    field = page.locator(f'[id="{shown.view.page._add._impl.uuid}"]')
    field.click()
    field.fill('effort[cable')
    page.get_by_role('option', name='effort[cable_joint]').click()
    shown.until(lambda: len(shown.charts()) == 4, 'a fourth chart')
    added = '/crane/joint_states.effort[cable_joint]'
    assert added in shown.view.world.series
    shown.until(lambda: quote(added.strip('/'), '') in page.url, 'the address has it')
    page.get_by_role('button', name='Back to the preset').click()
    shown.until(lambda: len(shown.charts()) == 3, 'the three charts of the preset')
    shown.until(lambda: '?' not in page.url, 'the address has none')


def test_an_emergency_is_large_and_red_and_a_closed_brake_is_not(shown):
    source = shown.view.source
    assert 'brake' not in shown.state()
    source.brake = True
    shown.until(lambda: 'brake closed' in shown.state(), 'a closed brake')
    assert not shown.page.evaluate(ALARM)
    source.emergency = True
    style = shown.until(lambda: shown.page.evaluate(ALARM), 'an alarm')
    assert style[0] == 'rgb(200, 30, 30)'
    assert style[1] >= 25
    source.brake = source.emergency = False
    shown.until(lambda: 'brake' not in shown.state(), 'an open brake')


def test_a_dead_machine_is_stale_not_frozen(shown):
    shown.view.source.silent = True
    shown.page.get_by_text(re.compile('stale: no sample for')).first.wait_for()
    shown.view.source.silent = False
    shown.until(lambda: 'stale' not in shown.state(), 'alive again')


def test_a_slider_of_the_machine_gives_its_value(shown):
    page = shown.page
    page.get_by_text('Controls', exact=True).click()
    page.get_by_text('Set point [m]').last.wait_for()
    number = page.locator("input[inputmode=decimal][aria-label='Set point [m]']")
    number.fill('2.5')
    number.press('Enter')
    shown.until(
        lambda: ('crane', '/crane/set_point', 2.5) in shown.view.source.asked, 'a set point'
    )
    page.get_by_text('Charts', exact=True).click()


@pytest.mark.slow
def test_a_narrow_page_shows_its_charts_from_end_to_end(shown, chromium):
    # Its panel, and with it the charts, get their width late.
    narrow = Tab(chromium, shown.view, {'width': 480, 'height': 600})
    narrow.until(lambda: len(narrow.charts()) == 3, 'all charts')
    for _ in range(2):
        first = narrow.charts()[0]
        narrow.until(lambda old=first: narrow.charts()[0] != old, 'later values')
    narrow.until(lambda: fits(narrow.axes()[0]), 'limits that fit')
    narrow.page.close()


def test_keys_pause_step_and_resume(shown):
    source, page = shown.view.source, shown.page

    def wait(paused):
        shown.until(lambda: source.paused is paused, f'paused: {paused}')
        # What a key does depends on what the page says.
        shown.until(lambda: ('paused' in shown.state()) is paused, 'the page says so')

    page.get_by_role('button', name='Pause').click()
    wait(True)
    page.keyboard.press('ArrowRight')
    shown.until(lambda: ('all machines', 'step', None) in source.asked, 'a step')
    # A button that was clicked is not pressed again, nor a tab.
    page.keyboard.press(' ')
    wait(False)
    page.get_by_role('tab', name='Charts').click()
    for paused in (True, False):
        page.keyboard.press(' ')
        wait(paused)


def test_what_can_be_operated_has_a_name(shown):
    """Fields have labels or names; the title has the machine."""
    shown.until(lambda: shown.page.title() == 'Longreach - crane', 'the title')
    unnamed = """() => [...document.querySelectorAll("button, [role='slider'], input")]
        .filter(e => e.offsetParent && e.type !== 'hidden' && !e.innerText?.trim()
            && !e.getAttribute('aria-label') && !e.labels?.length).length"""
    shown.page.get_by_role('tab', name='Cameras').click()
    shown.page.get_by_alt_text('left/image_raw').wait_for()
    assert findings(shown.page) == []
    for tab, part in (('View', 'Look at'), ('Controls', 'Set point [m]'), ('Charts', 'Remove')):
        shown.page.get_by_role('tab', name=tab).click()
        shown.page.get_by_label(part).last.wait_for(state='attached')
        shown.until(lambda: shown.page.evaluate(unnamed) == 0, 'names of all fields')
        assert findings(shown.page) == []


@pytest.mark.slow
def test_a_phone_has_a_sheet_and_targets_for_fingers_and_is_dark_where_its_system_is(
    shown, chromium
):
    phone = Tab(chromium, shown.view, {'width': 390, 'height': 844}, 'dark')
    scheme = '() => document.documentElement.dataset.mantineColorScheme'
    phone.until(lambda: phone.page.evaluate(scheme) == 'dark', 'dark')
    width = "() => document.querySelector('#state').closest('.mantine-Paper-root').clientWidth"
    phone.until(lambda: phone.page.evaluate(width) == 390, 'a sheet of the full width')
    small = """() => [...document.querySelectorAll("button, [role='tab'], input")].filter(e => {
        const {width, height} = e.getBoundingClientRect();
        return e.offsetParent && e.type !== 'hidden'
            && (width < 44 || height < 44); }).map(e => e.outerHTML.slice(0, 80))"""
    phone.until(lambda: phone.page.get_by_role('button', name='Pause').count(), 'buttons')
    assert phone.page.evaluate(small) == []
    phone.page.get_by_role('tab', name='View').click()
    phone.page.get_by_role('button', name='Light or dark').wait_for()
    assert findings(phone.page) == []
    assert phone.page.evaluate(small) == []
    phone.page.get_by_role('tab', name='Controls').click()
    phone.page.get_by_label('Load [kg]').last.wait_for()
    assert phone.page.evaluate(small) == []
    right = """() => Math.max(...[...document.querySelectorAll('input, button')]
        .map(e => e.getBoundingClientRect().right))"""
    assert phone.page.evaluate(right) <= 390
    for expected in ('light', 'dark'):
        phone.page.get_by_role('tab', name='View').click()
        phone.page.get_by_role('button', name='Light or dark').click()
        phone.until(lambda to=expected: phone.page.evaluate(scheme) == to, expected)
        phone.page.locator('.mantine-Notification-closeButton').click()
    assert shown.page.evaluate(scheme) == 'light'
    phone.page.close()


def test_nothing_was_requested_elsewhere_and_no_error_was_logged(shown):
    assert shown.hosts == {f'127.0.0.1:{shown.view.port}', 'own'}
    assert shown.errors == []


def test_a_page_says_that_the_server_is_gone_and_recovers(shown):
    page, port = shown.page, shown.view.port
    page.bring_to_front()
    shown.view.close()
    page.get_by_text('Connecting...').wait_for()
    again = FakeSource()
    again.time = 1000.0
    shown.view = View(again, port)
    page.get_by_text('Connected').wait_for()
    shown.until(lambda: shown.time() > 999.0, 'what the new server knows')
    shown.until(lambda: len(shown.charts()) == 3, 'its charts')
