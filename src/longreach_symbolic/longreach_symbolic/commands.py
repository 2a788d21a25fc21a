"""
Derive the equations of motion of N flexible links, Yu and Chen (2019), corrected.

Links have symbols or numbers; formulas to read, code to compile, values at a state.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from longreach_dynamics.errors import InputError, LongreachError
from longreach_symbolic.links import BASES, Model, load_links, load_state, model_of, symbolic_model
from longreach_tools.arguments import add_common, whole
from longreach_tools.options import add_results
from longreach_tools.output import (
    add_format,
    check_output,
    check_places,
    print_result,
    report_study,
    summary_table,
    table,
    writing,
)

SUMMARY = 'equations of motion of flexible links as formulas and code (Yu and Chen 2019)'

FORMS = ('reduced', 'trace')
FORMATS = ('latex', 'markdown', 'python', 'numba', 'c', 'casadi', 'json', 'fmu')
_LINKS = 'links (default: the two of the paper; of generate none, see --links)'
# Written out, longer texts are of no use: 10 MB and more.
_MOST_OPERATIONS = 300_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach symbolic``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    generate = commands.add_parser('generate', help='formulas or code of the equations of motion')
    generate.add_argument(
        '--links', metavar='N', type=whole, help='number of links; without --file all symbols'
    )
    add_common(generate, '--file', help=_LINKS)
    generate.add_argument(
        '--symbols',
        choices=('file', 'all', 'none'),
        help='which quantities of --file stay symbols: those that it names, all, none'
        ' (default: file; all for fmu, where symbols are its parameters)',
    )
    generate.add_argument(
        '--basis', choices=BASES, help='functions of the deflection without --file (default: sine)'
    )
    _add_form(generate)
    generate.add_argument(
        '--language',
        '--format',
        dest='format',
        choices=FORMATS,
        metavar='NAME',
        required=True,
        help=f'of the text: {", ".join(FORMATS[:-1])}, or fmu: an FMU 2.0',
    )
    text = 'default: stdout; NAME.c gets a header NAME.h, and functions NAME_equations, ...'
    generate.add_argument('--out', help=text)
    generate.add_argument(
        '--cse',
        choices=('on', 'off'),
        default='on',
        help='abbreviate what stands more than once; off: write everything out',
    )
    generate.set_defaults(run=_generate)

    evaluate = commands.add_parser('evaluate', help='terms of the equations of motion at a state')
    add_common(evaluate, '--file', help=_LINKS)
    evaluate.add_argument('--state', required=True, help='theta, theta_rate, f, f_rate')
    _add_form(evaluate)
    add_format(evaluate)
    evaluate.set_defaults(run=_evaluate)

    experiment = commands.add_parser(
        'experiment', help="the paper's experiment: two links vibrate, or draw a circle"
    )
    experiment.add_argument('--case', choices=('free', 'circle'), required=True)
    add_common(experiment, '--file', help=_LINKS)
    experiment.add_argument(
        '--basis', choices=BASES, help='functions of the deflection (default: as in the file)'
    )
    experiment.add_argument(
        '--motors',
        '--joints',
        dest='joints',
        choices=('locked', 'springs', 'pd'),
        help='what holds the motors: nothing turns them, springs of 125 N m/rad, or PD control'
        ' with 125 N m/rad and 25 N m s/rad (default: free: locked, circle: pd)',
    )
    experiment.add_argument(
        '--force-map',
        choices=('correct', 'printed'),
        default='correct',
        help='how torques act on deflections; printed: (A.9) of the paper, which is unstable',
    )
    add_results(experiment, 'one row per millisecond', 'figures 10 to 14: png, pdf or svg')
    experiment.set_defaults(run=_experiment)

    growth = commands.add_parser(
        'growth', help='processor time and operations by the number of links'
    )
    text = 'largest number of links'
    growth.add_argument('--links', metavar='N', type=whole, default=8, help=text)
    add_format(growth)
    growth.add_argument('--plot', help='both, beside the paper')
    growth.set_defaults(run=_growth)


def _add_form(parser: argparse.ArgumentParser) -> None:
    """Add ``--form`` and ``--as-printed``."""
    text = 'reduced: closed form in relative angles; trace: the matrices of the paper'
    add_common(parser, '--form', choices=FORMS, help=f'{text} (default: reduced)')
    text = "the paper's trace form with its Coriolis terms and M_ff, which are wrong"
    add_common(parser, '--as-printed', False, action='store_true', help=text)


def _form_of(options: argparse.Namespace) -> str:
    """Return the form; InputError for one that the printed terms do not have."""
    if options.as_printed and options.form == 'reduced':
        raise InputError('--as-printed, allowed without --form reduced: it has --form trace')
    return options.form or 'reduced'


def _model(options: argparse.Namespace) -> Model:
    """Return what to derive equations for."""
    if options.file is None:
        if options.links is None:
            raise InputError('neither --links nor --file is given; give one of them')
        if options.symbols in ('file', 'none'):
            raise InputError(f'--symbols {options.symbols} needs a --file')
        return symbolic_model(options.links, basis=options.basis or 'sine')
    if options.basis is not None:
        raise InputError(f'--basis goes without --file; put basis into {options.file}')
    links = load_links(options.file)
    if options.links is not None and options.links != len(links.links):
        raise InputError(
            f'--links {options.links}, allowed: {len(links.links)}, what {options.file} has'
        )
    usual = 'all' if options.format == 'fmu' else 'file'
    return model_of(links, options.symbols or usual)


def _generate(options: argparse.Namespace) -> None:
    """Write the equations in a language."""
    if options.format == 'fmu' and None in (options.file, options.out):
        raise InputError('--format fmu needs --file with the numbers of the links, and --out')
    model, form = _model(options), _form_of(options)
    check_output(csv=options.out)
    check_places(
        {'--out': options.out, 'the header of --out': _header_of(options)}, [options.file]
    )
    _tell(f'loading SymPy ({model.count} links)')
    from longreach_symbolic import code, latex
    from longreach_symbolic.generated import derive

    _tell('deriving the equations')
    equations = derive(model, form, options.as_printed)
    results = code.entries(equations)
    written_out = code.operations(results, equations.definitions)
    if options.cse == 'off':
        if written_out > _MOST_OPERATIONS:
            raise InputError(
                f'written out, the equations have {written_out} operations, allowed:'
                f' {_MOST_OPERATIONS}; take --cse on'
                + ('' if options.as_printed else ', or --form reduced')
            )
        equations = derive(model, form, options.as_printed, abbreviated=())
    _tell(f'writing {options.format}')
    cse = options.cse == 'on'
    writers: dict[str, Callable[[Any, bool], str]] = {
        'latex': latex.as_latex,
        'markdown': latex.as_markdown,
        'python': code.as_python,
        'numba': code.as_numba,
        'c': code.as_single_c,
        'casadi': code.as_casadi,
        'json': code.as_json,
        'fmu': lambda *_: '',
    }
    header = _header_of(options)
    if header is not None:
        declarations, text = code.as_c(equations, cse, header.stem)
    else:
        text = writers[options.format](equations, cse)
    shared = code.parts_of(equations, cse).equations.operations
    _tell('')
    if options.out is None:
        print(text, end='')
    else:
        if header is not None:
            with writing(header) as path:
                path.write_text(declarations, encoding='utf-8')
        with writing(options.out) as path:
            if options.format == 'fmu':
                from longreach_symbolic.fmu import write_links_fmu

                write_links_fmu(path, equations, cse)
            else:
                path.write_text(text, encoding='utf-8')
    after = f', {shared} after elimination of common subexpressions' if cse else ''
    print(
        f'{model.count} links, {len(equations.coordinates)} coordinates, {equations.form} form:'
        f' {written_out if cse else shared} operations written out{after}',
        file=sys.stderr,
    )


def _header_of(options: argparse.Namespace) -> Path | None:
    """Return the header beside ``--out FILE.c``: its name begins the names of all functions."""
    if options.format != 'c' or options.out is None or options.out.suffix != '.c':
        return None
    name: str = options.out.stem
    if not re.fullmatch(r'[A-Za-z_]\w*', name, flags=re.ASCII):
        raise InputError(
            f'--out {options.out}, allowed: letters, digits and _ before .c, as all functions'
            ' begin with this name; such as my_arm.c'
        )
    return Path(options.out.with_suffix('.h'))


def _tell(what: str) -> None:
    """Show what is done, on a terminal; an empty text removes the line."""
    if sys.stderr.isatty():
        print(f'\r\033[K{what}', end=' ...' if what else '', file=sys.stderr, flush=True)


def _evaluate(options: argparse.Namespace) -> None:
    """Print the terms of the equations of motion at a state."""
    links = load_links(options.file)
    state = load_state(options.state, links)
    import numpy as np

    from longreach_symbolic.generated import evaluate

    with np.errstate(over='ignore', invalid='ignore'):
        found = evaluate(links, state, _form_of(options), options.as_printed)
    if not all(np.isfinite(value).all() for value in found):
        raise LongreachError(
            'the terms exceed the range of floating-point numbers; give smaller rates and'
            ' deflections'
        )
    result = {name: value.tolist() for name, value in found._asdict().items()}
    print_result(result, _as_table(found, links.modes), options.format)


def _growth(options: argparse.Namespace) -> None:
    """Measure the processor time for 1 to N links in the reduced form, all symbols."""
    symbolic_model(options.links)
    check_output(plot=options.plot)
    from sympy.core.cache import clear_cache

    from longreach_symbolic import code
    from longreach_symbolic.figures import plot_growth
    from longreach_symbolic.generated import derive

    # What is loaded and computed once is not measured.
    derive(symbolic_model(1))
    rows = []
    for count in range(1, options.links + 1):
        _tell(f'{count} links')
        clear_cache()
        started = time.process_time()
        equations = derive(symbolic_model(count))
        derived = time.process_time()
        code.as_c(equations)
        rows.append(
            {
                'links': count,
                'derived': derived - started,
                'written': time.process_time() - derived,
                'written_out': code.operations(code.entries(equations), equations.definitions),
                'operations': code.parts_of(equations, True).equations.operations,
            }
        )
    _tell('')
    head = ('links', 'derived [s]', 'as C [s]', 'operations written out', 'after cse')
    text = table(head, [tuple(row.values()) for row in rows])
    report_study(options, rows, text, draw=lambda file: plot_growth(file, rows))


def _as_table(found: Any, modes: int) -> str:
    """Return the terms with a row for each coordinate."""
    count = found.force_map.shape[1]
    names = [f'theta_{i}' for i in range(1, count + 1)]
    names += [f'f_{i}{k}' for i in range(1, count + 1) for k in range(1, modes + 1)]
    head = ['', *(f'M {name}' for name in names), 'velocity', 'static']
    head += [f'tau_{i}' for i in range(1, count + 1)]
    rows = [
        [name, *map(float, (*mass, velocity, static, *force))]
        for name, mass, velocity, static, force in zip(names, *found, strict=True)
    ]
    return table(head, rows)


_UNITS = {
    'growth_rate': '1/s',
    'ended_at': 's',
    'largest_torque': 'N m',
    'largest_acceleration': 'm/s^2',
    'peaks': 'rad/s',
    'paper': 'rad/s',
    'angle_error': 'rad',
    'angle_error_rms': 'rad',
    'end_error': 'm',
    'end_error_rms': 'm',
}


def _experiment(options: argparse.Namespace) -> None:
    """Run the experiment of the paper."""
    links = load_links(options.file)
    if options.basis is not None:
        links = links.replace(basis=options.basis)
    check_output(csv=options.csv, plot=options.plot)
    check_places({'--csv': options.csv, '--plot': options.plot}, [options.file])
    from longreach_symbolic.experiment import experiment
    from longreach_symbolic.figures import draw

    run = experiment(links, options.case, options.joints, options.force_map == 'printed')
    result = run.summary()
    rows = {name: value for name, value in result.items() if name != 'frequencies'}
    text = summary_table(rows, _UNITS)
    if 'frequencies' in result:
        text += f'\n\n{_frequency_text(result["frequencies"])}'
    report_study(options, result, text, *run.columns(), lambda file: draw(file, run))


def _frequency_text(rows: list[dict[str, Any]]) -> str:
    """Return a table of the frequencies of exact beams and of assumed modes."""
    head = ['joints', 'mode', 'exact [rad/s]']
    for basis in BASES:
        head += [f'{basis} [rad/s]', f'{basis} - exact [%]']
    head.append('exact decay [1/s]')
    cells: list[list[object]] = []
    for row in rows:
        line: list[object] = [row['joints'], row['mode'], f'{row["exact"]:.4f}']
        for basis in BASES:
            line += [f'{row[basis]:.4f}', f'{100.0 * row[f"{basis}_error"]:.4f}']
        cells.append([*line, f'{row["exact_decay"]:.4f}'])
    return table(head, cells)
