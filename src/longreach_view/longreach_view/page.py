"""The page: scene, state, controls, charts, pictures; widgets only put requests into a queue."""

from __future__ import annotations

import html
import json
import math
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from longreach_machine import MACHINE_GROUP
from longreach_view.charts import (
    EVENT,
    WANTED,
    Chart,
    chart_of,
    limits_of,
    lines_of,
)
from longreach_view.scene import ELLIPSE, PANEL_WIDTH, Scene
from longreach_view.world import EVENTS, STALE, Machine, World

ALL = 'all machines'
TRANSPORT = ('pause', 'resume', 'step', 'reset')
SPEEDS = ('0.1', '0.25', '0.5', '1', '2', '5', '10')
_CHOOSE = 'choose ...'
# More charts on a page are slow in a browser.
_MOST_CHARTS = 8
_CHART_HEIGHT = 170
# Topics of a machine appear one by one: presets wait until none has for this long [s].
_SETTLED = 1.0
# What is removed stays hidden on pages for this long before [s].
_DISCARD = 3.0
_DASH = (4, 4)
_RED, _AMBER, _GREY = '#c81e1e', '#b45309', '#5b626e'
# Style of a large line.
_ALARM = (
    f'background:{_RED};color:white;border-radius:6px;padding:0.25em 0.6em;font-weight:700;'
    'font-size:1.5em;text-align:center;margin:0.25em 0'
)


class Control(NamedTuple):
    """A control of one machine; its kind is button, slider, number (with a button) or valve."""

    name: str
    label: str
    kind: str
    low: float = 0.0
    high: float = 1.0
    value: float = 0.0


class Request(NamedTuple):
    """What somebody wants: a machine's name (or ALL), the name of a control, and a value."""

    machine: str
    name: str
    value: Any = None


class Replay(NamedTuple):
    """Time of a replay since its beginning [s], and whether it plays."""

    time: float
    playing: bool


class Page:
    """
    The page of a server, with ``charts`` until somebody chooses others.

    ``length`` [s] and ``begin`` are those of a replay, 0: live. ``scenarios`` and ``numbers`` are
    for a restart of what was launched: names, and arguments of the launch file.
    """

    def __init__(
        self,
        server: Any,
        charts: Callable[[World], list[Chart]],
        length: float = 0.0,
        begin: float = 0.0,
        scenarios: Sequence[str] = (),
        numbers: Sequence[Any] = (),
    ) -> None:
        self.server, self.scene = server, Scene(server)
        self.requests: queue.SimpleQueue[Request] = queue.SimpleQueue()

        server.gate.opened = lambda charts: self._ask('', 'charts', charts)

        async def connected(client: Any) -> None:
            self._ask('', 'look', client)

        server.on_client_connect(connected)
        self._machine_charts, self._begin = charts, begin
        self._live = not length
        self._charts: list[Chart] = []
        self._plots: list[tuple[Chart, Any]] = []
        self._ghost: World | None = None
        # Labels of charts that somebody has chosen, None: the presets; what charts were made of.
        self._chosen: list[str] | None = None
        self._made_of: Any = None
        self._left_out = 0
        self._appeared = 0.0
        self._discarded: deque[tuple[float, Any]] = deque()
        self._known: dict[str, tuple[Any, list[Control]]] = {}
        self._widgets: dict[tuple[str, str], Any] = {}
        self._options: list[str] = []
        gui: Any = server.gui
        gui.configure_theme(
            control_width='large',
            show_logo=False,
            show_share_button=False,
            brand_color=(18, 72, 145),
        )
        gui.main_panel.dock_right()
        gui.main_panel.set_width(PANEL_WIDTH)
        self._state = gui.add_html('')
        if length:
            self._add_replay(length)
        else:
            self._add_transport(scenarios, numbers)
        tabs = gui.add_tab_group()
        self._charts_tab = tabs.add_tab('Charts')
        self._controls_tab = None if length else tabs.add_tab('Controls')
        self._picture_tab: Any = None
        self._tabs = tabs
        with tabs.add_tab('View'):
            self._add_view()
        with self._charts_tab:
            self._add_charts()

    # --- widgets -----------------------------------------------------------------------------

    def _on(self, widget: Any, function: Callable[[Any], None]) -> None:
        """Call a function with a widget's new value when a page changes it."""

        # viser calls a coroutine at once, but a function in a thread: maybe after the loop of the
        # view has put the widget back to what is still shown, or after a later click.
        async def changed(event: Any) -> None:
            if event.client_id is not None:
                function(event.target.value)

        widget.on_update(changed)

    def _on_click(self, widget: Any, function: Callable[[Any], None]) -> None:
        """Call a function with the event of a click; a coroutine for the same reason."""

        async def clicked(event: Any) -> None:
            function(event)

        widget.on_click(clicked)

    def _ask(self, machine: str, name: str, value: Any = None) -> None:
        """Put a request into the queue."""
        self.requests.put(Request(machine, name, value))

    def _add_transport(self, scenarios: Sequence[str], numbers: Sequence[Any]) -> None:
        """Add pause, resume, step, reset, and restart."""
        gui: Any = self.server.gui
        self._whom = gui.add_dropdown('Machine', (ALL,), visible=False)
        group = gui.add_button_group('Simulation', tuple(n.capitalize() for n in TRANSPORT))
        self._on_click(
            group, lambda event: self._ask(self._whom.value, event.target.value.lower())
        )
        if scenarios:
            choice = gui.add_dropdown('Scenario', tuple(scenarios))
            fields = {
                one.name: gui.add_number(one.description, float(one.default or 0.0), min=0.0)
                for one in numbers
            }
            button = gui.add_button('Restart with this scenario', color='gray')

            def restart(_: Any) -> None:
                given = {name: f'{field.value:g}' for name, field in fields.items()}
                self._ask('', 'restart', {'scenario': choice.value, **given})

            self._on_click(button, restart)

    def _add_replay(self, length: float) -> None:
        """Add time, play, speed and loop of a replay."""
        gui: Any = self.server.gui
        begin = self._begin
        self._slider = gui.add_slider('Time [s]', begin, begin + length, length / 2000.0, begin)
        self._on(self._slider, lambda value: self._ask('', 'seek', value - begin))
        self._play = gui.add_button('Pause')
        self._on_click(self._play, lambda _: self._ask('', 'play'))
        speed = gui.add_dropdown('Speed', SPEEDS, initial_value='1')
        self._on(speed, lambda value: self._ask('', 'speed', float(value)))
        loop = gui.add_checkbox('Loop', True)
        self._on(loop, lambda value: self._ask('', 'loop', value))

    def _add_view(self) -> None:
        """Add the choice of what is looked at; `head.html` knows the button of the colours."""
        gui: Any = self.server.gui
        self._focus = gui.add_dropdown('Look at', (ALL,))
        fit = gui.add_button('Look there now', color='gray')

        def look(event: Any) -> None:
            name = '' if self._focus.value == ALL else self._focus.value
            self._ask(name, 'look', event.client)

        self._on_click(fit, look)

        gui.add_button('Light or dark', color='gray')
        gui.add_markdown(
            'Bent beams replace the straight links of the robot description. Ellipsoids are one'
            f' standard deviation of measured positions, {ELLIPSE:g} times enlarged.'
        )

    def _add_charts(self) -> None:
        """Add the choice of signals."""
        gui: Any = self.server.gui
        self._window = gui.add_slider('Seconds shown', 2.0, 60.0, 1.0, 15.0)
        with gui.add_folder('Signals', expand_by_default=False):
            self._add = gui.add_dropdown('Add', (_CHOOSE,))
            self._remove = gui.add_dropdown('Remove', (_CHOOSE,))
            preset = gui.add_button('Back to the preset', color='gray')
        self._on(self._add, lambda value: self._ask('', 'add', value))
        self._on(self._remove, lambda value: self._ask('', 'remove', value))
        self._on_click(preset, lambda _: self._ask('', 'preset'))

    # --- requests about the page itself ------------------------------------------------------

    def handle(self, request: Request) -> bool:
        """Carry out a request that concerns the page alone; return False for any other."""
        value = request.value
        # What was chosen is shown a moment later.
        labels = self._chosen or [chart.label for chart in self._charts]
        if request.name == 'add':
            if value != _CHOOSE:
                self._chosen = [*labels, chart_of(value).label]
            self._add.value = _CHOOSE
        elif request.name == 'remove':
            if value != _CHOOSE:
                self._chosen = [label for label in labels if label != value]
            self._remove.value = _CHOOSE
        elif request.name == 'charts':
            self._chosen = value or self._chosen
        elif request.name == 'preset':
            self._chosen = None
        elif request.name == 'look':
            if value.client_id in self.server.get_clients():
                self.scene.look(value, request.machine)
        else:
            return False
        return True

    def _wanted(self, world: World, signals: list[str]) -> list[Chart]:
        """Return the charts that were chosen, as far as there are such signals, or the presets."""
        charts = self._machine_charts(world)
        if self._chosen is not None:
            known = {chart.label: chart for chart in [*map(chart_of, signals), *charts]}
            charts = [known[label] for label in dict.fromkeys(self._chosen) if label in known]
            first = charts[:_MOST_CHARTS]
        else:
            # Of each machine the same number, as far as it has as many.
            owners = [chart.title.partition(':')[0] for chart in charts]
            ranks = {chart: owners[:k].count(owners[k]) for k, chart in enumerate(charts)}
            first = sorted(charts, key=ranks.__getitem__)[:_MOST_CHARTS]
        self._left_out = len(charts) - len(first)
        return [chart for chart in charts if chart in first]

    def _discard(self, widget: Any) -> None:
        """Hide a widget, and remove it later: a page may still have an update of it to apply."""
        widget.visible = False
        self._discarded.append((time.monotonic(), widget))

    def _lines(self, chart: Chart, world: World) -> tuple[np.ndarray, ...]:
        """Return times and lines of a chart: its signals, those of the ghost, events."""
        worlds = [world] if self._ghost is None else [world, self._ghost]
        return lines_of(chart, worlds, self._window.value)

    def _add_plot(self, chart: Chart, lines: tuple[np.ndarray, ...]) -> Any:
        """Add the plot of a chart; its last line is that of events, on a scale of their own."""
        series: list[Any] = [{'label': 'time [s]'}]
        series += [
            {
                'label': line.label,
                'stroke': colour,
                'width': 2.0,
                'points': {'show': False},
                'dash': _DASH if colour == WANTED else (),
            }
            for line, colour in zip(chart.lines, chart.colours, strict=True)
        ]
        if self._ghost is not None:
            series += [
                {**one, 'label': f'{one["label"]} (2)', 'dash': _DASH} for one in series[1:]
            ]
        event = {'label': 'event', 'stroke': EVENT, 'dash': _DASH, 'points': {'show': False}}
        series.append({**event, 'scale': 'event'})
        axis = {'grid': {'stroke': 'rgba(128,136,144,0.25)', 'width': 1}, 'labelSize': 16}
        gui: Any = self.server.gui
        return gui.add_uplot(
            lines,
            tuple(series),
            title=chart.title,
            scales=self._ranges(lines[0], limits_of(lines[1:-1])),
            axes=({**axis, 'size': 28, 'label': 's'}, {**axis, 'size': 50, 'label': chart.unit}),
            cursor={'drag': {'x': True, 'y': False}, 'sync': {'key': 'time'}},
            height=_CHART_HEIGHT,
            # Room for the numbers at the ends of the axes.
            padding=(8, 24, 0, 0),
        )

    @staticmethod
    def _ranges(times: np.ndarray, limits: tuple[float, float]) -> dict[str, Any]:
        """Return the scales of a chart, for uPlot: all of them fixed; the page moves time."""
        return {
            'x': {'time': False, 'range': (float(times[0]), float(times[-1]))},
            'y': {'range': limits},
            'event': {'range': (0.0, 1.0)},
        }

    # --- updates -----------------------------------------------------------------------------

    def move(self, world: World, now: float, ghost: World | None = None) -> None:
        """Show the machines as they are now."""
        with self.server.atomic():
            changed = False
            for machine in world.machines.values():
                note = self._note(machine, world, now)
                changed |= self.scene.update(machine, note)
            for machine in ghost.machines.values() if ghost is not None else ():
                self.scene.update(machine, ghost=True)
        if changed:
            self._focus.options = (ALL, *world.machines)
            if not hasattr(self, '_whom'):
                return
            self._whom.options = (ALL, *world.machines)
            self._whom.visible = len(world.machines) > 1

    def _note(self, machine: Machine, world: World, now: float) -> str:
        """Return why a machine is stale, empty when it is not."""
        silence = now - machine.heard
        if not self._live or silence < STALE or world.is_paused(machine, now):
            return ''
        if not math.isfinite(silence):
            return 'no samples yet'
        machine.still()
        return f'stale: no sample for {silence:.0f} s'

    def show_state(
        self, world: World, now: float, notes: Sequence[str] = (), paused: bool = False
    ) -> None:
        """Show time, speed, losses and flags of all machines."""
        self.scene.fit_pages()
        rows, halted = [], dict[str, bool]()
        for machine in world.machines.values():
            note = self._note(machine, world, now)
            halted[machine.name] = paused or (self._live and world.is_paused(machine, now))
            rows.append(_state_row(machine, note, halted[machine.name]))
            if machine.problem:
                rows.append(_line(f'{machine.name}: {machine.problem}', 'amber'))
            rows += lacking_lines(self.scene, machine)
        if not world.machines:
            rows.append(_line('No machine found yet. Start one: longreach launch crane'))
        rows += [_line(note, 'amber') for note in notes]
        if self._left_out:
            rows.append(
                _line(f'Of {_MOST_CHARTS + self._left_out} charts {_MOST_CHARTS} are shown')
            )
        rows += legend_lines(world.machines.values())
        style = 'padding:0.4em 1.2em 0.4em 0.6em;font-size:0.85em'
        charts = html.escape(json.dumps(self._chosen or []))
        # Of the machine that buttons act on, or of any: what the space bar resumes.
        whom = self._whom.value if hasattr(self, '_whom') else ALL
        data = f'data-charts="{charts}" data-paused="{halted.get(whom, any(halted.values())):d}"'
        text = f'<div id="state" style="{style}" {data}>{"".join(rows)}</div>'
        if text != self._state.content:
            self._state.content = text

    def show_replay(self, replay: Replay) -> None:
        """Show where a replay is."""
        time = min(self._begin + replay.time, self._slider.max)
        if abs(time - self._slider.value) >= self._slider.step:
            self._slider.value = time
        label = 'Pause' if replay.playing else 'Play'
        if self._play.label != label:
            self._play.label = label

    def show_charts(self, world: World, now: float, ghost: World | None = None) -> None:
        """Show the latest values of the charts' signals."""
        while self._discarded and now - self._discarded[0][0] > _DISCARD:
            self._discarded.popleft()[1].remove()
        self._ghost = ghost
        signals = world.signals()
        if signals != self._options:
            self._options, self._appeared = signals, now
            self._add.options = (_CHOOSE, *sorted(signals))
        made_of = (signals, self._chosen)
        if now - self._appeared > _SETTLED and made_of != self._made_of:
            self._made_of = made_of
            charts = self._wanted(world, signals)
            if charts != self._charts:
                self._charts = charts
                for _, plot in self._plots:
                    self._discard(plot)
                # Kept from here on.
                for known in (world, ghost):
                    if known is not None:
                        known.plot(line for chart in charts for line in chart.lines)
                with self._charts_tab:
                    self._plots = [(c, self._add_plot(c, self._lines(c, world))) for c in charts]
                self._remove.options = (_CHOOSE, *(chart.label for chart in charts))
        for chart, plot in self._plots:
            lines = self._lines(chart, world)
            if all(map(partial(np.array_equal, equal_nan=True), lines, plot.data)):
                continue
            plot.data = lines
            old = plot.scales['y']['range']
            limits = limits_of(lines[1:-1], old)
            if limits != old:
                plot.scales = self._ranges(lines[0], limits)

    def show_picture(self, name: str, picture: np.ndarray) -> None:
        """Show the latest picture of cameras, (height, width, 3)."""
        key = ('picture', name)
        if key in self._widgets:
            self._widgets[key].image = picture
            return
        if self._picture_tab is None:
            self._picture_tab = self._tabs.add_tab('Cameras')
        with self._picture_tab:
            self._widgets[key] = self.server.gui.add_image(picture, label=name, format='jpeg')

    # --- controls ----------------------------------------------------------------------------

    def show_controls(self, machine: str, controls: list[Control]) -> None:
        """Show the own controls of a machine, if they have changed."""
        folder, known = self._known.get(machine, (None, []))
        if controls == known or self._controls_tab is None:
            return
        if folder is not None:
            self._discard(folder)
        for key in [k for k in self._widgets if k[0] == machine]:
            del self._widgets[key]
        with self._controls_tab:
            folder = self.server.gui.add_folder(machine or 'machine')
        with folder:
            for control in controls:
                self._add_control(machine, control)
        self._known[machine] = (folder, controls)

    def _add_control(self, machine: str, control: Control) -> None:
        """Add one control."""
        gui: Any = self.server.gui
        name = control.name
        if control.kind == 'button':
            button = gui.add_button(control.label, color='gray')
            self._on_click(button, lambda _: self._ask(machine, name))
            return
        if control.kind == 'number':
            number = gui.add_number(
                control.label, control.value, min=control.low, max=control.high, step=1.0
            )
            button = gui.add_button(control.label.partition(' [')[0], color='gray')
            self._on_click(button, lambda _: self._ask(machine, name, number.value))
            return
        step = (control.high - control.low) / 200.0
        slider = gui.add_slider(
            control.label,
            control.low,
            control.high,
            step,
            control.value,
            hint='Springs back to 0.' if control.kind == 'valve' else None,
        )
        self._on(slider, lambda value: self._ask(machine, name, value))
        self._widgets[(machine, name)] = slider

    def spring_back(self, control: str) -> None:
        """Put the slider of a control back to 0."""
        for (_, name), slider in self._widgets.items():
            if name == control:
                slider.value = 0.0


def _line(text: str, kind: str = 'grey') -> str:
    """Return a line of text; its kind is grey, or amber for what needs attention."""
    return f'<div class="{kind}">{html.escape(text)}</div>'


def lacking_lines(scene: Scene, machine: Machine) -> list[str]:
    """Return what is not shown as it is: drawings in unknown frames, unknown joints, events."""
    text = '{}: no robot description has the frame {!r}; what is drawn in it is at the root'
    lines = [text.format(machine.name, frame) for frame in scene.unplaced.get(machine.name, ())]
    joints = machine.robot.joints.values() if machine.robot and machine.positions else ()
    still = [
        joint.name
        for joint in joints
        if joint.kind != 'fixed' and not {joint.name, joint.leader} & machine.positions.keys()
    ]
    if still:
        lines.append(f'{machine.name}: joint_states lack {", ".join(still)}, which do not move')
    if len(machine.events) == EVENTS:
        lines.append(f'{machine.name}: events before the last {EVENTS} are not shown')
    return [_line(line.removeprefix(': '), 'amber') for line in lines]


def legend_lines(machines: Iterable[Machine]) -> list[str]:
    """Return what the drawings of machines mean, as they declare it."""
    rows: dict[str, None] = {}
    for machine in machines:
        for first, *colours in _legend(machine.kind) if machine.drawings else ():
            row = _line(f'{machine.name}: {first}'.removeprefix(': '))
            if colours:
                *between, last = colours
                bar = f'flex:1;height:0.8em;background:linear-gradient(90deg,{",".join(between)})'
                row = (
                    f'<div style="display:flex;gap:0.6em;align-items:center"><span>{first}</span>'
                    f'<div style="{bar}"></div><span>{last}</span></div>'
                )
            rows[row] = None
    return list(rows)


@cache
def _legend(kind: str) -> Sequence[Sequence[str]]:
    """Return the legend of an installed machine; empty for others."""
    points = metadata.entry_points(group=MACHINE_GROUP, name=kind)
    return [row for point in points for row in point.load().legend]


def _badge(text: str, color: str) -> str:
    """Return a badge."""
    style = f'background:{color};color:white;border-radius:4px;padding:0.1em 0.5em'
    return f'<span style="{style};font-weight:600;margin-right:0.4em">{html.escape(text)}</span>'


def _state_row(machine: Machine, note: str, paused: bool) -> str:
    """Return the state of a machine."""
    time = f'{machine.time:.2f} s' if math.isfinite(machine.time) else 'no time yet'
    if note:
        state = _badge(note, _GREY)
    elif paused:
        state = _badge('paused', _AMBER)
    else:
        speed = f'{machine.speed:.2f} × real time' if math.isfinite(machine.speed) else ''
        state = f'<span>{speed}</span>'
    # Red is for emergencies.
    kind = 'amber' if machine.lost else 'grey'
    row = (
        '<div style="display:grid;grid-template-columns:4fr 3fr 5fr 2fr;gap:0.8em">'
        f'<b>{html.escape(machine.name or "machine")}</b><span style="font-variant-numeric:'
        f'tabular-nums">{time}</span>{state}<span class="{kind}">{machine.lost} lost</span></div>'
    )
    if machine.events:
        when, text = machine.events[-1]
        row += _line(f'{text} at {when:.2f} s')
    if machine.flags.get('emergency_mode') and not note:
        row += f'<div style="{_ALARM}">EMERGENCY</div>'
    elif machine.flags.get('brake') and not note:
        # Where a crane rests.
        row += _line('brake closed')
    return row
