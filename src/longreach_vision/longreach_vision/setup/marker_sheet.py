"""
Markers to be printed at exact size, as vector graphics in PDF or SVG.

A sheet contains the marker on a square of its background, and outside of that square: lines
towards the centre, cut marks, a scale of 100 mm to check the print, a line of text. Lengths in
this module are in mm, from the upper left corner of the page, x right, y down.
"""

from __future__ import annotations

import dataclasses
import math

from longreach_dynamics.errors import InputError

__all__ = ['FORMATS', 'PAGES', 'Sheet', 'lay_out', 'to_pdf', 'to_svg']

PAGES = {
    'A4': (210.0, 297.0),
    'A3': (297.0, 420.0),
    'A2': (420.0, 594.0),
    'A1': (594.0, 841.0),
    'A0': (841.0, 1189.0),
}
"""Width and height [mm], ISO 216."""
FORMATS = ('pdf', 'svg')
"""Extensions of the files."""

_SMALLEST, _LARGEST = 0.005, 3.0  # diameter [m]; the largest PDF page has 5.08 m
_INNER = (0.2, 0.85)  # ratios with two separate edges
# Background around the marker, as a share of its diameter: 4.5 px for a radius of 15 px.
_MARGIN = 0.15
_BORDER = 5.0  # unprintable margin
_POINTERS = 6.0  # length of the lines outside of the square
_FOOT = 14.0  # height of scale and text
_SCALE = 100.0
_LINE, _TEXT = 0.25, 2.4  # 80 characters are as long as the scale
_POINT = 72.0 / 25.4  # points in a mm
_ARCS = 16  # cubic curves in a circle, with an error of 1e-9 of the radius


@dataclasses.dataclass(frozen=True)
class Sheet:
    """
    A page with one marker.

    Parameters
    ----------
    radius : float
        Radius of the outer edge [mm].
    inner : float
        Inner over outer radius; 0 for a disc.
    bright : bool
        Bright on dark, else dark on bright.
    page : str
        One of PAGES, or 'fit' for a page of the marker's size.
    size : tuple of float
        Width and height of the page [mm].
    center : tuple of float
        Centre of the marker [mm].
    half : float
        Half the side of the background square [mm].
    """

    radius: float
    inner: float
    bright: bool
    page: str
    size: tuple[float, float]
    center: tuple[float, float]
    half: float

    @property
    def colours(self) -> tuple[float, float]:
        """Grey of the marker and of its background, 0 black to 1 white."""
        return (1.0, 0.0) if self.bright else (0.0, 1.0)

    @property
    def circles(self) -> list[tuple[float, float]]:
        """Radius [mm] and grey of the discs to be painted, in this order."""
        marker, background = self.colours
        discs = [(self.radius, marker)]
        if self.inner:
            discs.append((self.inner * self.radius, background))
        return discs

    @property
    def lines(self) -> list[tuple[float, float, float, float]]:
        """Lines x1, y1, x2, y2 [mm]: pointers, cut marks, and the scale with its ends."""
        x, y = self.center
        near, far = self.half + 1.0, self.half + _POINTERS
        lines = []
        for sign in (-1.0, 1.0):
            lines.append((x + sign * near, y, x + sign * far, y))
            lines.append((x, y + sign * near, x, y + sign * far))
            for other in (-1.0, 1.0):
                edge = x + sign * self.half, y + other * self.half
                lines.append((edge[0] + sign, edge[1], x + sign * far, edge[1]))
                lines.append((edge[0], edge[1] + other, edge[0], y + other * far))
        left, level = self.scale
        lines.append((left, level, left + _SCALE, level))
        lines += [(end, level - 1.5, end, level + 1.5) for end in (left, left + _SCALE)]
        return lines

    @property
    def scale(self) -> tuple[float, float]:
        """Left end of the scale [mm]."""
        x, y = self.center
        return x - 0.5 * _SCALE, y + self.half + _POINTERS + 4.0

    @property
    def text(self) -> str:
        """Text at the bottom."""
        diameter = 2.0 * self.radius
        kind = 'disc' if not self.inner else f'ring, inside {self.inner * diameter:.6g} mm'
        way = 'bright on dark' if self.bright else 'dark on bright'
        return f'{diameter:.6g} mm {kind}, {way}. Print at 100 %: the line is 100 mm long'


def lay_out(
    diameter: float, inner: float = 0.5, bright: bool = False, page: str | None = None
) -> Sheet:
    """
    Lay out a sheet with one marker.

    Parameters
    ----------
    diameter : float
        Diameter of the outer edge [m].
    inner : float
        Inner over outer diameter; 0 for a disc.
    bright : bool
        Bright on dark in place of dark on bright.
    page : str, optional
        One of PAGES or 'fit', a page of the marker's size; by default the smallest of PAGES that
            fits, else 'fit'.

    Raises
    ------
    InputError
        For sizes out of range, or a page that is too small.
    """
    if not _SMALLEST <= diameter <= _LARGEST:
        raise InputError(
            f'diameter = {diameter:g} m, allowed: [{_SMALLEST:g}, {_LARGEST:g}] m; 0.3 m is good'
            ' at 20 m'
        )
    if inner != 0.0 and not _INNER[0] <= inner <= _INNER[1]:
        raise InputError(
            f'inner = {inner:g}, allowed: 0 for a disc, [{_INNER[0]:g}, {_INNER[1]:g}] for a ring'
        )
    if page is not None and page not in (*PAGES, 'fit'):
        raise InputError(f'page = {page!r}, allowed: {", ".join(PAGES)}, fit')
    radius = 500.0 * diameter
    half = radius * (1.0 + 2.0 * _MARGIN)
    needed = 2.0 * (half + _POINTERS + _BORDER), 2.0 * (half + _POINTERS + _BORDER) + _FOOT
    fitting = [name for name, size in PAGES.items() if _holds(size, needed)]
    if page is None:
        page = fitting[0] if fitting else 'fit'
    elif page != 'fit' and page not in fitting:
        width, height = PAGES[page]
        most = min(width, height - _FOOT) - 2.0 * (_POINTERS + _BORDER)
        raise InputError(
            f'page = {page}, allowed for a marker of {2.0 * radius:g} mm:'
            f' {", ".join((*fitting, "fit"))}; {page} holds'
            f' {math.floor(most / (1.0 + 2.0 * _MARGIN)):g} mm'
        )
    size = PAGES.get(page, (max(needed[0], _SCALE + 2.0 * _BORDER), needed[1]))
    center = 0.5 * size[0], 0.5 * (size[1] - _FOOT)
    return Sheet(radius, inner, bright, page, size, center, half)


def _holds(size: tuple[float, float], needed: tuple[float, float]) -> bool:
    """Return whether a page is large enough for a width and height [mm]."""
    return size[0] >= needed[0] and size[1] >= needed[1]


def to_svg(sheet: Sheet) -> str:
    """Return a sheet as SVG with 1 mm as the unit."""
    width, height = (_number(value) for value in sheet.size)
    x, y = sheet.center
    side = _number(2.0 * sheet.half)
    corner = f'x="{_number(x - sheet.half)}" y="{_number(y - sheet.half)}"'
    head = f'width="{width}mm" height="{height}mm" viewBox="0 0 {width} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {head}>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<rect {corner} width="{side}" height="{side}" fill="{_hex(sheet.colours[1])}"/>',
    ]
    place = f'cx="{_number(x)}" cy="{_number(y)}"'
    parts += [
        f'<circle {place} r="{_number(radius)}" fill="{_hex(grey)}"/>'
        for radius, grey in sheet.circles
    ]
    parts += [
        '<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="#000000" stroke-width="{}"/>'.format(
            *map(_number, line), _LINE
        )
        for line in sheet.lines
    ]
    left, level = sheet.scale
    parts.append(
        f'<text x="{_number(left)}" y="{_number(level + 5.0)}" font-family="Helvetica, Arial,'
        f' sans-serif" font-size="{_TEXT}" textLength="{_SCALE:g}"'
        f' lengthAdjust="spacingAndGlyphs">{sheet.text}</text>'
    )
    return '\n'.join([*parts, '</svg>', ''])


def to_pdf(sheet: Sheet) -> bytes:
    """Return a sheet as PDF of vector graphics; equal sheets give equal bytes."""
    height = sheet.size[1]
    x, y = sheet.center
    k = _POINT
    # The page is drawn in mm with y up.
    drawn = [f'{k:.9f} 0 0 {k:.9f} 0 0 cm', f'{sheet.colours[1]:g} g']
    corner = f'{_number(x - sheet.half)} {_number(height - y - sheet.half)}'
    drawn.append(f'{corner} {_number(2.0 * sheet.half)} {_number(2.0 * sheet.half)} re f')
    for radius, grey in sheet.circles:
        drawn += [f'{grey:g} g', _pdf_circle(x, height - y, radius), 'f']
    drawn.append(f'0 G {_LINE} w')
    for x1, y1, x2, y2 in sheet.lines:
        ends = (x1, height - y1, x2, height - y2)
        drawn.append('{} {} m {} {} l S'.format(*map(_number, ends)))
    left, level = sheet.scale
    place = f'{_number(left)} {_number(height - level - 5.0)}'
    text = sheet.text.replace('(', '\\(').replace(')', '\\)')
    drawn.append(f'0 g BT /F1 {_TEXT} Tf {place} Td ({text}) Tj ET')
    content = '\n'.join(drawn).encode('ascii')
    box = f'[0 0 {_number(k * sheet.size[0])} {_number(k * height)}]'
    return _pdf_file(
        [
            b'<< /Type /Catalog /Pages 2 0 R /ViewerPreferences << /PrintScaling /None >> >>',
            b'<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
            f'<< /Type /Page /Parent 2 0 R /MediaBox {box} /Contents 4 0 R'
            ' /Resources << /Font << /F1 5 0 R >> >> >>'.encode('ascii'),
            b'<< /Length %d >>\nstream\n%s\nendstream' % (len(content), content),
            b'<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
        ]
    )


def _pdf_circle(x: float, y: float, radius: float) -> str:
    """Return the path of a circle."""
    step = 2.0 * math.pi / _ARCS
    reach = 4.0 / 3.0 * math.tan(0.25 * step)
    parts = [f'{_number(x + radius)} {_number(y)} m']
    for arc in range(_ARCS):
        angles = arc * step, (arc + 1) * step
        (c0, s0), (c1, s1) = ((math.cos(angle), math.sin(angle)) for angle in angles)
        points = (
            (c0 - reach * s0, s0 + reach * c0),
            (c1 + reach * s1, s1 - reach * c1),
            (c1, s1),
        )
        values = ' '.join(
            f'{_number(x + radius * c)} {_number(y + radius * s)}' for c, s in points
        )
        parts.append(f'{values} c')
    return '\n'.join([*parts, 'h'])


def _pdf_file(objects: list[bytes]) -> bytes:
    """Return a PDF file with objects, of which the first is the catalogue."""
    file = bytearray(b'%PDF-1.7\n%\xe2\xe3\xcf\xd3\n')
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(file))
        file += b'%d 0 obj\n%s\nendobj\n' % (number, content)
    start = len(file)
    file += b'xref\n0 %d\n0000000000 65535 f \n' % (len(objects) + 1)
    file += b''.join(b'%010d 00000 n \n' % place for place in places)
    file += b'trailer\n<< /Size %d /Root 1 0 R >>\n' % (len(objects) + 1)
    file += b'startxref\n%d\n%%%%EOF\n' % start
    return bytes(file)


def _number(value: float) -> str:
    """Return a value with a resolution of 0.1 micrometres."""
    return f'{value:.4f}'.rstrip('0').rstrip('.')


def _hex(grey: float) -> str:
    """Return a grey level as an SVG colour."""
    return '#ffffff' if grey else '#000000'
