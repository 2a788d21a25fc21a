"""Markers to be printed: sizes in the files are those that were asked for."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

from longreach_markers.setup.marker_sheet import lay_out
from longreach_vision.commands.setup_figures import sheet_file

POINT = 25.4 / 72.0
SVG = '{http://www.w3.org/2000/svg}'


def pdf_circles(data: bytes) -> list[np.ndarray]:
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


def test_text_names_diameters_and_polarity():
    assert lay_out(0.3).text.startswith('300 mm ring, inside 150 mm, dark on bright.')
    assert b'300 mm ring, inside 150 mm' in sheet_file(lay_out(0.3), 'svg')


@pytest.mark.parametrize('kind', ['pdf', 'svg'])
def test_same_sheet_gives_the_same_file(kind):
    assert sheet_file(lay_out(0.25), kind) == sheet_file(lay_out(0.25), kind)
