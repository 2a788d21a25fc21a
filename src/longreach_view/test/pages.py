"""Pages for tests: a source without nodes, and its loop in a thread."""

from __future__ import annotations

import io
import re
import threading
import time
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import matplotlib.image
import numpy as np
from longreach_msgs.msg import CraneStatus
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from longreach_crane.description import robot_description
from longreach_crane.parameters import load_machinery
from longreach_node.stamps import stamp_of
from longreach_tools.fields import numeric_fields
from longreach_view.chart_files import load_presets, machine_charts
from longreach_view.loop import Source, run_view
from longreach_view.page import Control, Page
from longreach_view.server import open_server, stop_server
from longreach_view.world import Sample, World

DEADLINE = 60.0
"""Longest wait for anything on a page [s]: a software renderer on a busy machine is slow."""


class FakeSource(Source):
    """A crane that swings as long as it is not paused, and notes what pages ask for."""

    def __init__(self) -> None:
        self.time, self.paused, self.silent = 0.0, False, False
        self.asked: list[tuple[str, str, Any]] = []
        self.own = [
            Control('/crane/set_point', 'Set point [m]', 'slider', -5.0, 5.0),
            Control('/crane/attach', 'Load [kg]', 'number', 0.0, 1000.0, 90.0),
        ]
        self.brake = self.emergency = False
        self._described = False
        self.text = robot_description(load_machinery().crane, 'crane/')

    def poll(self, *_: Any) -> list[Sample]:
        samples = []
        if not self._described:
            self._described = True
            text = String(data=self.text)
            samples.append(Sample('/crane/robot_description', 'std_msgs/msg/String', text, None))
        if self.silent:
            return samples
        if not self.paused:
            self.time += 0.01
        clock = Clock(clock=stamp_of(round(1e9 * self.time)))
        samples.append(Sample('/clock', 'rosgraph_msgs/msg/Clock', clock, None))
        if not self.paused:
            place = 3.0 * np.sin(2.0 * self.time)
            joints = JointState(name=['car_joint', 'cable_joint'], position=[place, 0.2 * place])
            joints.velocity = joints.effort = [0.0, 0.0]
            status = CraneStatus(set_point=1.0, brake=self.brake, emergency_mode=self.emergency)
            for name, kind, message in (
                ('joint_states', 'sensor_msgs/msg/JointState', joints),
                ('status', 'longreach_msgs/msg/CraneStatus', status),
            ):
                samples.append(Sample(f'/crane/{name}', kind, message, self.time))
        return samples

    def handle(self, request: Any, *_: Any) -> None:
        self.asked.append(tuple(request))
        if request.name in ('pause', 'resume'):
            self.paused = request.name == 'pause'

    def controls(self, *_: Any) -> list[Control]:
        return self.own

    def pictures(self) -> dict[str, np.ndarray]:
        return {'left/image_raw': np.full((60, 80, 3), 128, np.uint8)}


class View:
    """A server with its loop."""

    def __init__(self, source: Any, port: int = 0, **options: Any) -> None:
        self.source, self.world = source, World(numeric_fields)
        self.warnings: list[str] = []
        self.server = open_server('127.0.0.1', port, warn=self.warnings.append)
        self.port = self.server.get_port()
        self.address = f'http://127.0.0.1:{self.port}/'
        self.page = Page(self.server, partial(machine_charts, load_presets()), **options)
        self._stop = threading.Event()
        self.failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            run_view(self.source, self.page, self.world, self._stop.is_set)
        except BaseException as error:  # noqa: BLE001
            self.failure.append(error)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(DEADLINE)
        stop_server(self.server)
        if self.failure:
            raise self.failure[0]


def until(condition: Any, what: str, deadline: float = DEADLINE) -> Any:
    """Wait until a condition holds, and return its value."""
    end = time.monotonic() + deadline
    while not (value := condition()):
        assert time.monotonic() < end, f'not within {deadline:g} s: {what}'
        time.sleep(0.02)
    return value


# Small: a software renderer draws every pixel on this machine's processor.
SIZE = {'width': 900, 'height': 500}
# Part of the page with the crane, without the panel.
SCENE = {'x': 10, 'y': 40, 'width': 470, 'height': 430}
MILLISECONDS = 1000.0 * DEADLINE
# First line, and the part of the time axis that is shown, of each chart: viser's access for tests.
CHARTS = """() => Object.values(window.__viserTestpoints?.uplots ?? {})
    .sort((a, b) => a.chart.root.getBoundingClientRect().top
        - b.chart.root.getBoundingClientRect().top)
    .map(({chart}) => [[...chart.data[1]], chart.scales.x.min, chart.scales.x.max,
        chart.scales.y.min, chart.scales.y.max])"""


class Tab:
    """A page of the browser, with what it requested and complained about."""

    def __init__(self, chromium, view, size=SIZE, scheme='light'):
        self.view = view
        self.page = chromium.new_page(viewport=size, color_scheme=scheme)
        self.page.set_default_timeout(MILLISECONDS)
        self.errors, self.hosts = [], set()
        self.page.on('console', lambda m: m.type == 'error' and self.errors.append(m.text))
        self.page.on('pageerror', lambda error: self.errors.append(str(error)))
        for event in ('request', 'websocket'):
            self.page.on(event, lambda what: self.hosts.add(urlsplit(what.url).netloc or 'own'))
        self.page.goto(view.address)
        self.page.wait_for_selector('#state')
        # viser's notice on rendering without a graphics card lies on the scene.
        self.page.locator('.mantine-Notification-closeButton').click()

    def state(self):
        return self.page.locator('#state').inner_text()

    def time(self):
        return float(re.search(r'([\d.]+) s', self.state())[1])

    def charts(self):
        """Return the first line of each chart from the top, if it has one, without gaps."""
        lines = [[v for v in line if v == v] for line, *_ in self.page.evaluate(CHARTS)]
        return [line for line in lines if line]

    def axes(self):
        """Return the limits of time [s] and of the vertical axis of each chart."""
        return [axis for _, *axis in self.page.evaluate(CHARTS)]

    def picture(self):
        shot = self.page.screenshot(clip=SCENE, timeout=MILLISECONDS)
        return np.round(255.0 * matplotlib.image.imread(io.BytesIO(shot))[..., :3]).astype(int)

    def until(self, condition, what):
        """Wait as ``until``, and let the browser's events arrive."""

        def look():
            self.page.wait_for_timeout(50)
            return condition()

        return until(look, what)


def findings(page):
    """Return the critical and serious findings of axe on a page."""
    page.evaluate(files('axe_playwright_python').joinpath('axe.min.js').read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")['violations']
    return [
        (one['id'], node['html'], node['failureSummary'])
        for one in found
        if one['impact'] in ('critical', 'serious')
        for node in one['nodes']
    ]
