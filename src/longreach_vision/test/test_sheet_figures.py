"""Markers to be printed: their layout, and sizes in the files."""

import re
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_vision.commands.setup_figures import PAGES, lay_out, sheet_file

POINT = 25.4 / 72.0
SVG = '{http://www.w3.org/2000/svg}'


def pdf_circles(data):
    """Return where the curves of each circle of the page meet [mm]."""
    (content, *_) = re.findall(rb'stream\r?\n(.*?)\r?\nendstream', data, re.DOTALL)
    closed = zlib.decompress(content).split(b'\nh\n')
    ends = [re.findall(rb'(\S+) (\S+) c$', path, re.MULTILINE) for path in closed]
    return [POINT * np.array(found, float) for found in ends if found]


@pytest.mark.parametrize(
    ('diameter', 'inner', 'page'), [(0.3, 0.5, 'A2'), (0.1, 0.0, 'A4'), (0.12, 0.6, 'fit')]
)
def test_circles_of_the_pdf_have_their_radius(diameter, inner, page):
    sheet = lay_out(diameter, inner, page=page)
    data = sheet_file(sheet, 'pdf')
    box = np.array(re.search(rb'/MediaBox \[(.*?)\]', data)[1].split(), float)
    np.testing.assert_allclose(POINT * box, (0.0, 0.0, *sheet.size), atol=1e-3)
    circles = pdf_circles(data)
    radii = [500.0 * diameter] + ([500.0 * diameter * inner] if inner else [])
    assert len(circles) == len(radii)
    for points, radius in zip(circles, radii, strict=True):
        center = np.array([sheet.center[0], sheet.size[1] - sheet.center[1]])
        distances = np.linalg.norm(points - center, axis=1)
        np.testing.assert_allclose(distances, radius, atol=1e-3)


@pytest.mark.parametrize('bright', [False, True])
def test_the_svg_has_the_size_of_the_page_and_the_colours(bright):
    root = ET.fromstring(sheet_file(lay_out(0.3, 0.5, bright), 'svg'))
    sizes = [POINT * float(root.get(name).removesuffix('pt')) for name in ('width', 'height')]
    assert sizes == pytest.approx([420.0, 594.0], abs=1e-3)
    # Black is SVG's default.
    styles = [path.get('style') or '' for path in root.iter(f'{SVG}path')]
    fills = [(re.findall(r'fill: (\S+?)(?:;|$)', style) or ['#000000'])[0] for style in styles]
    marker, background = ('#ffffff', '#000000') if bright else ('#000000', '#ffffff')
    # The square, the outer and the inner circle, after the white page.
    assert fills[1:4] == [background, marker, background]


@pytest.mark.parametrize('kind', ['pdf', 'svg'])
def test_same_sheet_gives_the_same_file(kind):
    assert sheet_file(lay_out(0.25), kind) == sheet_file(lay_out(0.25), kind)


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
    ('values', 'text'),
    [
        ({'diameter': 0.0}, 'diameter = 0 m, allowed: [0.005, 3] m'),
        ({'diameter': float('nan')}, 'diameter = nan'),
        ({'diameter': 0.3, 'inner': 0.95}, 'inner = 0.95, allowed: 0 for a disc'),
        ({'diameter': 0.3, 'inner': -0.5}, 'inner = -0.5'),
        ({'diameter': 0.212, 'page': 'A3'}, 'A3 holds 211 mm'),
    ],
)
def test_what_cannot_be_printed_is_refused(values, text):
    with pytest.raises(InputError, match=re.escape(text)):
        lay_out(**values)
    assert lay_out(0.211, page='A3').page == 'A3'
