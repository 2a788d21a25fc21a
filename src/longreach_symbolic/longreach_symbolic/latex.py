"""
Equations as formulas: LaTeX and Markdown.

The matrices are those of the paper's (33): M with the blocks M_theta,theta, M_theta,f and M_ff,
the velocity terms H, gravity C and stiffness K, forces F. Abbreviations stand before them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sympy
from sympy.printing.latex import LatexPrinter

from longreach_symbolic.code import description
from longreach_symbolic.equations import Definition, Equations, reduced

# What formulas of the reduced form abbreviate: constants of links, moments, pairs of links.
_ABBREVIATED = {'S', 'a', 'b', 'c', 'k', 's', 'omega', 'h', 'J', 'd', 'dd', 'A', 'W'}
# Sums over the links before one, too, from this number of links on.
_OF_MANY = {'E', 'P'}
_MANY = 4
# Of each link the same formula.
_OF_A_LINK = {'S', 'a', 'b', 'c', 'k'}
# Characters of LaTeX in a line of formulas.
_LINE = 110
# Of a matrix that is shown as one.
_COLUMNS = 8
_ROWS = 12


class _Block(NamedTuple):
    """A paragraph of text, or lines of aligned formulas."""

    text: str = ''
    formulas: tuple[str, ...] = ()


class _Printer(LatexPrinter):  # type: ignore[misc]
    """Formulas without brackets around single symbols."""

    def _print_function_of(self, name: str, expr: Any, exponent: Any) -> str:
        argument = self._print(expr.args[0])
        if expr.args[0].is_Add:
            argument = f'({argument})'
        power = f'^{{{exponent}}}' if exponent else ''
        return f'\\{name}{power} {argument}'.replace(' (', '(')

    def _print_sin(self, expr: Any, exp: Any = None) -> str:
        return self._print_function_of('sin', expr, exp)

    def _print_cos(self, expr: Any, exp: Any = None) -> str:
        return self._print_function_of('cos', expr, exp)

    def _print_Float(self, expr: Any) -> str:  # noqa: N802
        mantissa, _, exponent = f'{float(expr):.15g}'.partition('e')
        return rf'{mantissa} \cdot 10^{{{int(exponent)}}}' if exponent else mantissa


def as_latex(equations: Equations, cse: bool = True) -> str:
    """Return a document of LaTeX that needs amsmath only."""
    lines = [
        *(f'% {line}'.rstrip() for line in description(equations)),
        r'\documentclass{article}',
        r'\usepackage[a4paper,landscape,margin=15mm]{geometry}',
        r'\usepackage{amsmath}',
        r'\allowdisplaybreaks',
        r'\begin{document}',
        r'\raggedright',
    ]
    for block in _blocks(equations, cse):
        if block.formulas:
            lines += [r'\begin{align*}', ' \\\\\n'.join(block.formulas), r'\end{align*}']
        else:
            lines.append(block.text)
    return '\n'.join([*lines, r'\end{document}']) + '\n'


def as_markdown(equations: Equations, cse: bool = True) -> str:
    """Return the formulas as Markdown with LaTeX between dollar signs."""
    lines = ['# Equations of motion', '', '```', *description(equations), '```', '']
    for block in _blocks(equations, cse):
        if block.formulas:
            inner = ' \\\\\n'.join(block.formulas)
            lines += ['', '$$', r'\begin{aligned}', inner, r'\end{aligned}', '$$', '']
        else:
            lines.append(block.text)
    return '\n'.join(lines).rstrip() + '\n'


def _blocks(equations: Equations, cse: bool) -> Iterator[_Block]:
    """Yield what a document consists of."""
    if cse and equations.form == 'reduced':
        kinds = _ABBREVIATED | (_OF_MANY if equations.model.count >= _MANY else set())
        equations = reduced(equations.model, kinds)
    printer = _Printer({'symbol_names': _names(equations), 'mul_symbol': None})
    model = equations.model
    n, s = model.count, model.modes
    weighs = 'where it is' if model.links.gravity_on_deflection else 'as if it were straight'
    functions = {
        'sine': r'\varphi_k=\sin(k\pi x/L_i)',
        'cubic': r'\varphi_k=(x/L_i)^{k+1}-(-1)^k x/L_i',
    }[model.links.basis]
    yield _Block(
        textwrap.fill(
            rf'Links $i=1..{n}$, $y_i=\sum_{{k=1}}^{{{s}}}\varphi_k f_{{ik}}$, ${functions}$,'
            rf' $x\in[-L_i,0]$, a link weighs {weighs}: $M\ddot q+H+C+Kf=F$,'
            r' $q=(\theta_1..,f_{11},f_{12}..)$.',
            99,
        )
    )
    yield from _definitions(equations, printer)
    matrix, joints, shapes = equations.mass_matrix, slice(0, n), slice(n, n * (1 + s))
    torques = sympy.Matrix([sympy.Symbol(f'tau_{i}') for i in range(1, n + 1)])
    blocks = [
        (r'M_{\theta\theta}', matrix[joints, joints]),
        (r'M_{\theta f}', matrix[joints, shapes]),
        ('M_{ff}', matrix[shapes, shapes]),
        (r'H_\theta', equations.velocity_terms[joints, :]),
        ('H_f', equations.velocity_terms[shapes, :]),
        (r'C_\theta', equations.gravity_and_stiffness[joints, :]),
        ('C_f+Kf', equations.gravity_and_stiffness[shapes, :]),
        ('F', equations.force_map * torques),
    ]
    yield _Block(formulas=tuple(line for name, m in blocks for line in _matrix(name, m, printer)))


def _names(equations: Equations) -> dict[Any, str]:
    """Return the LaTeX of all symbols."""
    names = {sympy.Symbol(name, real=True): latex for name, latex in equations.latex_names.items()}
    count = equations.model.count
    return names | {
        sympy.Symbol(f'tau_{i}'): rf'\tau_{i}' if i < 10 else rf'\tau_{{{i}}}'
        for i in range(1, count + 1)
    }


def _definitions(equations: Equations, printer: _Printer) -> Iterator[_Block]:
    """Yield the abbreviations; those of links whose quantities are all symbols once for all."""
    model = equations.model
    general = all(model.symbols) and model.count > 1
    once, others = [], []
    for definition in equations.definitions:
        if general and definition.kind in _OF_A_LINK:
            if definition.indices[0] == 1:
                once.append(definition)
        else:
            others.append(definition)
    if once:
        general_printer = _Printer({'symbol_names': _of_link_i(equations, once)})
        yield _Block(formulas=tuple(_rows(once, general_printer)))
    if others:
        yield _Block(formulas=tuple(_rows(others, printer)))


def _of_link_i(equations: Equations, definitions: Sequence[Definition]) -> dict[Any, str]:
    """Return the LaTeX of the symbols of link 1 with i in place of its number."""
    names = {}
    for parameter in equations.model.parameters:
        if parameter.name.endswith('_1'):
            names[sympy.Symbol(parameter.name, real=True)] = parameter.latex.replace('1', 'i')
    for definition in definitions:
        indices = ''.join(map(str, definition.indices[1:]))
        names[definition.symbol] = f'{definition.kind}_{{i{indices}}}'
    return names


def _rows(definitions: Sequence[Definition], printer: _Printer) -> Iterator[str]:
    """Yield lines with as many definitions as fit."""
    row = ''
    for definition in definitions:
        lines = _equation(printer.doprint(definition.symbol), definition.expression, printer)
        if len(lines) == 1 and row and len(row) + len(lines[0]) <= _LINE:
            row += r',\quad ' + lines[0].replace('&', '')
            continue
        if row:
            yield row
            row = ''
        if len(lines) == 1:
            row = lines[0]
        else:
            yield from lines
    if row:
        yield row


def _matrix(name: str, matrix: Any, printer: _Printer) -> Iterator[str]:
    """Yield the lines of a matrix: as one if it fits, otherwise its entries that are not 0."""
    cells = [[printer.doprint(entry) for entry in row] for row in matrix.tolist()]
    width = sum(max(map(len, column)) for column in zip(*cells, strict=True))
    if width <= _LINE and matrix.shape[0] <= _ROWS and matrix.shape[1] <= _COLUMNS:
        inner = r'\\'.join('&'.join(row) for row in cells)
        yield rf'{name}&=\begin{{pmatrix}}{inner}\end{{pmatrix}}'
        return
    is_square = matrix.shape[0] == matrix.shape[1]
    for row, values in enumerate(matrix.tolist()):
        for column, value in enumerate(values):
            if value.is_zero or (is_square and column < row):
                continue
            index = [row + 1] if matrix.shape[1] == 1 else [row + 1, column + 1]
            entry = f'({name})_{{{",".join(map(str, index))}}}'
            yield from _equation(entry, value, printer)


def _equation(name: str, expression: Any, printer: _Printer) -> list[str]:
    """Return the lines of an equation, broken between terms."""
    terms = [printer.doprint(term) for term in printer._as_ordered_terms(expression)]
    lines = [f'{name}&=']
    for number, term in enumerate(terms):
        signed = term if not number or term.startswith('-') else f'+{term}'
        if len(lines[-1]) + len(signed) > _LINE and number:
            lines.append(r'&\quad')
        lines[-1] += signed
    return [line.replace(r'\quad+', r'\quad{}+').replace(r'\quad-', r'\quad{}-') for line in lines]
