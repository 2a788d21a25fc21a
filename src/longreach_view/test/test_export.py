"""Recordings as one file: what a browser shows of it without a server."""

from __future__ import annotations

import pytest
from pages import MILLISECONDS, findings, until
from test_replay import crane_bag

from longreach_tools.testing import Outcome

NOW = '() => Number(document.querySelector("#root [role=\'slider\']")?.ariaValueNow)'
PLACE = "() => document.querySelector('#now').getBoundingClientRect().x"
# Where times are in the charts.
AT = """(time) => { const {xaxis} = document.querySelector('#figure')._fullLayout;
    return document.querySelector('#figure').getBoundingClientRect().x
        + xaxis._offset + xaxis.l2p(time); }"""


@pytest.mark.slow
def test_one_file_plays_has_charts_and_goes_to_a_time_that_is_clicked(chromium, tmp_path, capsys):
    """The car is at 0.5 m/s times the time from 5 s on, until 15 s."""
    bag, file = crane_bag(tmp_path / 'a', 0.5), tmp_path / 'run.html'
    out = Outcome(capsys, 'view', bag, '--export', file).out
    assert out == f'{file}: 10.0 s, a picture every 0.04 s, at most 4000 points of a curve\n'
    page, asked, errors = chromium.new_page(), [], []
    page.set_default_timeout(MILLISECONDS)
    page.on('request', lambda request: asked.append(request.url))
    page.on('pageerror', lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    until(lambda: page.evaluate(NOW) > 0.0, 'it plays')
    page.locator('#root button:visible').first.click()  # pause
    assert page.locator('.mantine-Notifications-root').count()
    assert not page.locator('.mantine-Notification-root:visible').count(), 'not over the machine'
    line = page.evaluate("document.querySelector('#figure').data[0]")
    chart = page.locator('#figure .nsewdrag').first.bounding_box()
    page.mouse.move(page.evaluate(AT, 11.0), chart['y'] + 0.5 * chart['height'])
    page.wait_for_timeout(500)
    page.mouse.down()
    page.mouse.up()
    until(lambda: page.evaluate(NOW) == pytest.approx(6.0, abs=0.2), 'the time that was clicked')
    until(
        lambda: page.evaluate(PLACE) == pytest.approx(page.evaluate(AT, 11.0), abs=8.0), 'its line'
    )
    assert line['name'] == 'car'
    assert page.title() == 'Longreach - crane'
    assert findings(page) == []
    assert (errors, [url for url in asked if url.startswith(('http', 'ws'))]) == ([], [])
    page.close()


def test_a_long_recording_has_fewer_pictures_and_one_without_charts_is_shown(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr('longreach_view.html_output._MOST', 4)
    monkeypatch.setattr('longreach_view.html_output.machine_charts', lambda *_: [])
    bags, file = [crane_bag(tmp_path / name, 0.5) for name in 'ab'], tmp_path / 'two.html'
    out = Outcome(capsys, 'view', *bags, '--export', file).out
    assert f'{file}: 10.0 s, a picture every 2.5 s, at most' in out


def test_only_recordings_are_exported_to_html(tmp_path, capsys):
    text = '--export without a recording, which crane is not; give one'
    Outcome(capsys, 'view', 'crane', '--export', 'a.html').refused(text)
    bag = crane_bag(tmp_path / 'a', 0.5)
    Outcome(capsys, 'view', bag, '--export', 'a.mp4').refused('a name that ends in .html')
    served = '--port', 0, '--no-token'
    text = '--port and --token, allowed without --export'
    Outcome(capsys, 'view', bag, '--export', 'a.html', *served).refused(text)
