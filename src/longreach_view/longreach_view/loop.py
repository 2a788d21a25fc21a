"""The loop of a view: from a source of messages to the page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from longreach_view.page import Control, Page, Replay, Request
from longreach_view.world import Sample, World

# How often the source is asked, the shortest time between two pictures of motion, and between two
# updates of charts and texts [s].
_POLL, _MOTION, _SLOW = 0.008, 0.012, 0.2
# Without a page, motion is updated this often [s].
_IDLE = 0.5


class Source:
    """Where messages come from, running nodes or a recording; without controls by default."""

    def poll(self, world: World, now: float) -> Sequence[Sample]:
        """Return what has come since the last call."""
        raise NotImplementedError

    def handle(self, request: Request, world: World, now: float) -> None:
        """Carry out a request of a page."""

    def controls(self, _machine: str, _world: World) -> list[Control]:
        """Return the own controls of a machine."""
        return []

    def springs(self, _now: float) -> Sequence[str]:
        """Return the controls whose sliders go back to 0 now."""
        return ()

    def pictures(self) -> dict[str, np.ndarray]:
        """Return new pictures of cameras by topic."""
        return {}

    def notes(self) -> Sequence[str]:
        """Return lines for the page: what failed lately."""
        return ()

    def replay(self) -> Replay | None:
        """Return where a replay is, None when live."""
        return None

    def ghost(self) -> World | None:
        """Return the machines of the second recording, None without one."""
        return None


def run_view(source: Source, page: Page, world: World, stop: Callable[[], bool]) -> None:
    """Show what a source gives until it is stopped."""
    moved = slow = 0.0
    fresh = False
    while not stop():
        now = time.monotonic()
        samples = source.poll(world, now)
        for sample in samples:
            world.take(sample, now)
        fresh = fresh or bool(samples)
        while not page.requests.empty():
            request = page.requests.get()
            if not page.handle(request):
                source.handle(request, world, now)
        watched = bool(page.server.get_clients())
        if (fresh and now - moved >= (_MOTION if watched else _IDLE)) or now - moved >= _IDLE:
            page.move(world, now, source.ghost())
            page.server.flush()
            moved, fresh = now, False
        if now - slow >= (_SLOW if watched else _IDLE):
            slow = now
            _show_slow(source, page, world, now)
        time.sleep(max(0.0, _POLL - (time.monotonic() - now)))


def _show_slow(source: Source, page: Page, world: World, now: float) -> None:
    """Show what need not follow each sample."""
    replay = source.replay()
    paused = replay is not None and not replay.playing
    page.show_state(world, now, source.notes(), paused)
    page.show_charts(world, now, source.ghost())
    for topic, picture in source.pictures().items():
        page.show_picture(topic, picture)
    if replay is not None:
        page.show_replay(replay)
        return
    for machine in list(world.machines):
        page.show_controls(machine, source.controls(machine, world))
    for control in source.springs(now):
        page.spring_back(control)
