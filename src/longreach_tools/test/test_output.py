"""Tables, JSON, CSV files and pictures."""

import contextlib
import csv
import errno
import json
import math
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_tools.output import (
    PICTURES,
    check_output,
    check_places,
    figure,
    print_result,
    summary_table,
    table,
    write_csv,
    writing,
    writing_directory,
)


def refused(context, error, kind=InputError):
    """Check that the block of a context is not reached."""
    with pytest.raises(kind, match=error), context:
        raise AssertionError('not reached')


def test_format(capsys):
    result = {'x': 0.1 + 0.2, 'name': 'a'}
    print_result(result, 'for people', 'table')
    assert capsys.readouterr().out == 'for people\n'
    print_result(result, 'for people', 'json')
    assert json.loads(capsys.readouterr().out) == result
    print_result({'x': [math.inf, (np.array([1.0, np.nan]), np.int64(2))]}, '', 'json')
    assert json.loads(capsys.readouterr().out) == {'x': [None, [[1.0, None], 2]]}


def test_table():
    text = table(('name', 'value'), [('x', 1.0 / 3.0), ('longer name', 2), ('', 'text')])
    assert text.splitlines() == [
        '       name     value',
        '          x  0.333333',
        'longer name         2',
        '                 text',
    ]
    assert table(('a', 'b'), []) == 'a  b'


def test_table_of_a_summary():
    summary = {
        'end': [1.0 / 3.0, 2.0],
        'count': 3,
        'cavitated': [],
        'names': ['a', 'b'],
        'swept': None,
        'peaks': {'boom': 1.5},
        'final': {'time': 2.0},
    }
    rows = summary_table(summary, {'end': 's', 'peaks': 'N', 'final.time': 's'}).splitlines()
    assert rows[0].split() == ['quantity', 'value', 'unit']
    assert [row.split(maxsplit=1) for row in rows[1:]] == [
        ['end', '0.333333 2     s'],
        ['count', '3'],
        ['cavitated', 'none'],
        ['names', 'a b'],
        ['swept', 'none'],
        ['peaks,', 'boom         1.5     N'],
        ['final,', 'time           2     s'],
    ]


def test_csv_keeps_every_bit(tmp_path):
    file = tmp_path / 'a.csv'
    values = np.array([[0.1 + 0.2, 1.0, 1e-300], [math.pi, 0.0, -5e22], [1e16 + 2, -1.0, 1.5]])
    write_csv(file, ('x', 'flag', 'y'), values)
    with file.open(newline='') as stream:
        head, *rows = csv.reader(stream)
    assert head == ['x', 'flag', 'y']
    np.testing.assert_array_equal(np.array(rows, dtype=float), values)
    assert [row[1] for row in rows] == ['1', '0', '-1']
    assert rows[0][0] == '0.30000000000000004'


def test_a_file_appears_complete_or_not_at_all(tmp_path):
    file = tmp_path / 'a.txt'
    file.write_text('old')

    def write_half():
        with writing(file) as path:
            path.write_text('half')
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert file.read_text() == 'old'
    before = os.umask(0o027)
    try:
        with writing(file) as path:
            path.write_text('new')
            assert file.read_text() == 'old'
            # Next to its place: a rename there is atomic, and the ending tells the format.
            assert (path.parent, path.suffix) == (tmp_path, '.txt')
    finally:
        os.umask(before)
    assert file.read_text() == 'new'
    # As open as any other file.
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / 'there').mkdir()
    for name in ('old', 'new'):
        (tmp_path / name).symlink_to(f'there/{name}.csv')
    (tmp_path / 'there' / 'old.csv').write_text('old')
    for name in ('old', 'new'):
        check_output(tmp_path / name)
        write_csv(tmp_path / name, ('x',), np.array([[1.0]]))
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / 'there' / f'{name}.csv').read_text() == 'x\n1\n'
    assert len(list((tmp_path / 'there').iterdir())) == 2
    assert len(list(tmp_path.iterdir())) == 3


def read_later(pipe, size=-1):
    """Read a new named pipe in a thread, as opening it waits for the other end."""
    os.mkfifo(pipe)
    read = []

    def run():
        with pipe.open('rb', buffering=0) as stream:
            read.append(stream.read(size))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, read


@pytest.mark.parametrize('linked', [False, True])
def test_a_pipe_gets_the_bytes_and_stays(tmp_path, linked):
    pipe = tmp_path / 'pipe.csv'
    thread, read = read_later(pipe)
    name = tmp_path / 'link' if linked else pipe
    if linked:
        name.symlink_to(pipe)
    check_output(name)
    with writing(name) as path:
        assert path.parent != tmp_path
        path.write_bytes(bytes(200_000))
    thread.join(30.0)
    assert read == [bytes(200_000)]
    assert not path.exists()
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert name.is_symlink() == linked


def test_a_reader_of_a_pipe_that_leaves(tmp_path):
    pipe = tmp_path / 'pipe'
    thread, _ = read_later(pipe, 1)
    with pytest.raises(LongreachError, match='be written: Broken pipe'), writing(pipe) as path:
        path.write_bytes(bytes(2_000_000))
    thread.join(30.0)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_places_are_checked_before_the_work(tmp_path):
    (tmp_path / 'file').write_text('old')
    (tmp_path / 'loop').symlink_to('loop')
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / 'socket'))
    before = sorted(tmp_path.iterdir())
    long = 'n' * 300
    for name, error in (
        ('', 'is a directory; give a file'),
        ('file/a.csv', 'cannot be written: Not a directory'),
        (long, 'cannot be written: File name too long'),
        (f'{long}/a.csv', 'cannot be written: File name too long'),
        ('loop', 'cannot be written: Too many levels of symbolic links'),
        ('socket', 'is not a regular file and cannot be opened for writing'),
    ):
        with pytest.raises(InputError, match=error):
            check_output(tmp_path / name, None)
        refused(writing(tmp_path / name), error)
    check_output(tmp_path / 'no' / 'a.csv', tmp_path / 'no' / 'deep' / 'a.png')
    with pytest.raises(InputError, match="has the extension 'csv', allowed: eps, "):
        check_output(None, tmp_path / 'a.csv')
    with pytest.raises(InputError, match=r'the table and the figure are both .*; give two places'):
        check_output(tmp_path / 'a.png', tmp_path / 'x' / '..' / 'a.png')
    check_output()
    check_output(tmp_path / 'file', tmp_path / 'a.PNG')
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / 'file').read_text() == 'old'


def test_places_that_would_be_taken_twice(tmp_path):
    seen = tmp_path / 'seen'
    seen.mkdir()
    (seen / '0.png').write_text('picture')
    (tmp_path / 'rig.yaml').write_text('rig')
    (tmp_path / 'other.yaml').hardlink_to(tmp_path / 'rig.yaml')
    inputs = [tmp_path / 'rig.yaml', None, seen]
    check_places({'--csv': tmp_path / 'a', '--plot': tmp_path / 'b', '--out': None}, inputs)
    # Nothing is lost by a new file in a folder that is read, nor by pipes and devices.
    check_places({'--csv': seen / 'new.csv'}, inputs)
    check_places({'--csv': '/dev/null', '--plot': '/dev/null'})
    long = tmp_path / ('n' * 300)
    check_places({'--csv': long}, [long / 'a'])
    for name in ('rig.yaml', 'other.yaml', 'seen', 'seen/0.png'):
        with pytest.raises(InputError, match=f'--csv .*{name} is one of the inputs; give another'):
            check_places({'--csv': tmp_path / name}, inputs)
    with pytest.raises(InputError, match='is one of the inputs'):
        check_places({'--csv': tmp_path / 'not/yet'}, [tmp_path / 'not/yet'])


def test_a_directory_appears_when_it_is_complete(tmp_path):
    with writing_directory(tmp_path / 'new/run') as path:
        path.mkdir()
        (path / 'a').write_text('1')
        assert not (tmp_path / 'new/run').exists()
    assert (tmp_path / 'new/run/a').read_text() == '1'
    assert sorted(one.name for one in (tmp_path / 'new').iterdir()) == ['run']
    refused(writing_directory(tmp_path / 'new/run'), 'run is not empty; give a new directory')
    (tmp_path / 'empty').mkdir()
    with writing_directory(tmp_path / 'empty') as path:
        path.mkdir()
        (path / 'b').write_text('2')
    assert (tmp_path / 'empty/b').read_text() == '2'


def test_a_directory_that_was_not_finished(tmp_path):
    (tmp_path / 'file').write_text('')
    with contextlib.suppress(KeyboardInterrupt), writing_directory(tmp_path / 'a/b') as path:
        path.mkdir()
        (path / 'half').write_text('')
        raise KeyboardInterrupt
    with writing_directory(tmp_path / 'a/b'):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ['file']
    refused(writing_directory(tmp_path / 'file/run'), 'file cannot be written: File exists; give')


def test_a_full_disk_is_told_with_the_name_of_the_output(tmp_path, monkeypatch):
    def fill(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    text = ' cannot be written: No space left on device; make room$'
    with pytest.raises(LongreachError, match=f'a.csv{text}'), writing(tmp_path / 'a.csv'):
        fill()
    with pytest.raises(LongreachError, match=f'run{text}'), writing_directory(tmp_path / 'run'):
        fill()
    # The nearest name counts.
    with (
        pytest.raises(LongreachError, match=f'a.png{text}'),
        writing_directory(tmp_path / 'run'),
        writing(tmp_path / 'a.png'),
    ):
        fill()
    # Other errors may be of what is read.
    with pytest.raises(IsADirectoryError), writing(tmp_path / 'a.csv'):
        tmp_path.read_text()
    monkeypatch.setattr('tempfile.mkstemp', fill)
    with pytest.raises(LongreachError, match=f'a.csv{text}'):
        check_output(tmp_path / 'a.csv')
    monkeypatch.setattr(Path, 'mkdir', fill)
    refused(writing_directory(tmp_path / 'new/a'), f'new{text}', LongreachError)
    assert not list(tmp_path.iterdir())


def test_every_picture_that_is_offered_can_be_drawn(tmp_path):
    begins = {'png': b'\x89PNG\r\n\x1a\n', 'pdf': b'%PDF', 'svg': b'<?xml'}
    for ending in PICTURES:
        file = tmp_path / f'a.{ending}'
        with figure(file, size=(3.0, 2.0), rows=2) as axes:
            axes[1].plot([0.0, 1.0])
            assert not file.exists()
        assert file.read_bytes().startswith(begins.get(ending, b''))
        assert file.stat().st_size > 500
    assert len(list(tmp_path.iterdir())) == len(PICTURES)


@pytest.mark.parametrize('ending', ['', '.pgf', '.raw'])
def test_what_needs_latex_or_is_no_picture_is_refused_before_the_work(tmp_path, ending):
    complaint = f"has the extension '{ending[1:]}', allowed: eps, jpeg, jpg, pdf, png, svg, tif, w"
    refused(figure(tmp_path / f'a{ending}', size=(3.0, 2.0)), complaint)


def test_the_same_picture_is_the_same_file(tmp_path):
    code = (
        'import sys\n'
        'padding = [bytearray(int(sys.argv[2])) for _ in range(50)]\n'
        'from longreach_tools.output import figure\n'
        'with figure(sys.argv[1], (3.0, 2.0)) as (axis,):\n'
        '    axis.plot([0.0, 1.0, 2.0], [0.0, 2.0, 1.0])\n'
    )
    pictures = []
    for name, padding in (('a.svg', '10'), ('b.svg', '100000')):
        file = tmp_path / name
        subprocess.run([sys.executable, '-c', code, str(file), padding], check=True, timeout=60)
        pictures.append(file.read_bytes())
    assert pictures[0] == pictures[1]
