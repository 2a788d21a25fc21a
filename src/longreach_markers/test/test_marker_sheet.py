"""Layout of markers to be printed."""

from __future__ import annotations

import re

import pytest

from longreach_dynamics.errors import InputError
from longreach_markers.setup.marker_sheet import PAGES, Sheet, lay_out


@pytest.mark.parametrize('page', [None, *PAGES, 'fit'])
def test_all_that_is_drawn_lies_on_the_page_and_off_the_background(page):
    sheet = lay_out(0.13, page=page)
    x, y = sheet.center
    for x1, y1, x2, y2 in sheet.lines:
        for u, v in ((x1, y1), (x2, y2)):
            assert 0.0 < u < sheet.size[0]
            assert 0.0 < v < sheet.size[1]
        # No line meets the square of background.
        beside = max(abs(x1 - x), abs(x2 - x)), max(abs(y1 - y), abs(y2 - y))
        nearest = min(abs(x1 - x), abs(x2 - x)), min(abs(y1 - y), abs(y2 - y))
        assert max(beside) > sheet.half
        assert max(nearest) >= sheet.half
    assert sheet.half >= 1.3 * sheet.radius
    left, level = sheet.scale
    assert level + 8.0 < sheet.size[1]
    assert (left, level, left + 100.0, level) in sheet.lines


@pytest.mark.parametrize(
    ('diameter', 'page'),
    [(0.05, 'A4'), (0.14, 'A4'), (0.15, 'A3'), (0.3, 'A2'), (0.5, 'A0'), (1.0, 'fit')],
)
def test_smallest_page_that_holds_it(diameter, page):
    sheet = lay_out(diameter)
    assert sheet.page == page
    assert sheet.size[0] >= 1300.0 * diameter


def test_ring_is_painted_over_its_background():
    def grey(sheet: Sheet, radius: float) -> float:
        """What covers a distance from the centre last."""
        return [sheet.colours[1], *(g for r, g in sheet.circles if radius < r)][-1]

    for bright in (False, True):
        ring, disc = lay_out(0.3, 0.5, bright), lay_out(0.3, 0.0, bright)
        assert [grey(ring, r) for r in (70.0, 80.0, 140.0, 160.0)] == (
            [0.0, 1.0, 1.0, 0.0] if bright else [1.0, 0.0, 0.0, 1.0]
        )
        assert grey(disc, 1.0) == float(bright)


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        ({'diameter': 0.0}, 'diameter = 0 m, allowed: [0.005, 3] m'),
        ({'diameter': float('nan')}, 'diameter = nan'),
        ({'diameter': 0.3, 'inner': 0.95}, 'inner = 0.95, allowed: 0 for a disc'),
        ({'diameter': 0.3, 'inner': -0.5}, 'inner = -0.5'),
        ({'diameter': 0.3, 'page': 'A9'}, "page = 'A9', allowed: A4, A3"),
        ({'diameter': 0.212, 'page': 'A3'}, 'A3 holds 211 mm'),
    ],
)
def test_what_cannot_be_printed_is_refused(values, text):
    with pytest.raises(InputError, match=re.escape(text)):
        lay_out(**values)
    assert lay_out(0.211, page='A3').page == 'A3'
