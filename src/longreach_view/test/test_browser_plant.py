"""A crane that the view has started, in a real browser: what is clicked acts on the simulation."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from pages import Tab, View
from rcl_interfaces.srv import GetParameters
from test_commands import COMMAND

from longreach_node.testing import bench
from longreach_tools.testing import DEADLINE
from longreach_view.launch_files import Started
from longreach_view.page import Request
from longreach_view.view_node import LiveSource

SAMPLE = 0.01
"""Period of the crane's samples [s]."""


class Crane:
    """A tab with a crane that the view has started; its values are those of the real topics."""

    def __init__(self, chromium, resources):
        self.started = Started([['crane', 'scenario:=task_b']])
        resources.callback(self.started.close)
        source = LiveSource(self.started)
        self.ending = resources.enter_context(contextlib.ExitStack())
        self.ending.callback(source.close)
        self.view = View(
            source, scenarios=self.started.scenarios(), numbers=self.started.numbers()
        )
        self.ending.callback(self.view.close)
        self.tab = Tab(chromium, self.view)
        self.until = self.tab.until
        resources.callback(self.tab.page.close)

    @property
    def machine(self):
        return self.view.world.machines['crane']

    def click(self, name):
        self.tab.page.get_by_role('button', name=name, exact=True).click()


def scenario():
    """Return the file that the running plant has read."""
    with bench() as driver:
        answer = driver.call(
            GetParameters, '/crane/plant/get_parameters', GetParameters.Request(names=['scenario'])
        )
    return Path(answer.values[0].string_value).name


@pytest.fixture(scope='module')
def crane(chromium):
    with contextlib.ExitStack() as resources:
        yield Crane(chromium, resources)


def test_the_page_shows_the_machine_that_was_started(crane):
    crane.until(lambda: 'real time' in crane.tab.state(), 'the crane runs')
    assert (crane.machine.kind, crane.machine.problem) == ('crane', '')
    crane.until(lambda: len(crane.tab.charts()) == 3, 'its charts')
    before = crane.tab.picture()
    crane.until(lambda: (crane.tab.picture() != before).any(), 'it moves')


@pytest.mark.slow
def test_the_slider_of_the_set_point_moves_the_car(crane):
    page = crane.tab.page
    page.get_by_text('Controls', exact=True).click()
    page.get_by_text('Set point [m]').last.wait_for()
    number = page.locator('input[type=text]:visible, input[inputmode=decimal]:visible').last
    number.fill('-4')
    number.press('Enter')
    # No set point of the scenario is below -0.5 m.
    crane.until(lambda: crane.machine.positions['car_joint'] < -2.0, 'the car follows')
    page.get_by_text('Charts', exact=True).click()


def test_pause_step_resume_and_reset_act_on_the_simulation(crane):
    crane.click('Pause')
    crane.until(lambda: 'paused' in crane.tab.state(), 'the page says that it is paused')
    paused, shown = crane.machine.time, crane.tab.time()
    assert shown == pytest.approx(paused, abs=0.5 * SAMPLE)
    crane.click('Step')
    crane.until(lambda: crane.machine.time > paused, 'a step')
    crane.tab.page.wait_for_timeout(100)
    assert crane.machine.time == pytest.approx(paused + SAMPLE, abs=1e-6)
    crane.until(lambda: crane.tab.time() == pytest.approx(shown + SAMPLE), 'the page tells it')
    # In that order, though both wait at the same time.
    for word in ('resume', 'pause') * 5:
        crane.view.page.requests.put(Request('crane', word))
    source = crane.view.source
    crane.until(lambda: not (source._due or source._calls), 'answers to all')
    crane.tab.page.wait_for_timeout(100)
    halted = crane.machine.time
    crane.tab.page.wait_for_timeout(100)
    assert crane.machine.time == halted
    crane.click('Resume')
    crane.until(lambda: crane.machine.time > halted + 1.0, 'time goes on')
    before = crane.machine.time
    crane.click('Reset')
    crane.until(lambda: crane.machine.time < before, 'time begins anew')
    crane.until(lambda: crane.tab.time() < before, 'the page tells it')


@pytest.mark.slow
def test_a_restart_with_another_scenario(crane):
    assert scenario() == 'task_b.yaml'
    crane.tab.page.get_by_role('combobox', name='Scenario').click()
    crane.tab.page.get_by_role('option', name='task_c').click()
    crane.click('Restart with this scenario')
    crane.until(lambda: 'stale' in crane.tab.state(), 'the page says that the old one is gone')
    crane.until(lambda: 'real time' in crane.tab.state(), 'the new one runs')
    assert scenario() == 'task_c.yaml'


@pytest.mark.slow
def test_a_view_that_is_killed_and_started_again_is_followed_by_its_page(crane):
    crane.ending.close()
    page, port, seen = crane.tab.page, crane.view.port, crane.tab.time()
    for _ in range(2):
        page.get_by_text('Connecting...').wait_for()
        words = [*COMMAND, '--port', str(port), '--no-token']
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            page.get_by_text('Connected').wait_for()
            crane.until(lambda: 'real time' in crane.tab.state(), 'the crane that still runs')
            crane.until(lambda after=seen: crane.tab.time() > after, 'its time goes on')
            seen = crane.tab.time()
            process.kill()
            process.wait(DEADLINE)
    assert not crane.tab.errors
