"""Tables of numbers in CSV files: what is read, and what is refused with file and line."""

import re
import tracemalloc

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.tables import read_table

PLAIN = 'time,force\n0,1.5\n0.5,-2e3\n2,+7\n'


def write(tmp_path, text):
    file = tmp_path / 'table.csv'
    file.write_text(text, encoding='utf-8')
    return file


@pytest.mark.parametrize(
    'text',
    [
        PLAIN,
        PLAIN.replace(',', ';'),
        PLAIN.replace('\n', '\r\n'),
        PLAIN.replace(',', ' , '),
        PLAIN.rstrip(),
        '# measured on a Monday\n\n' + PLAIN.replace('\n0.5', '\n  # a gap, with a comma\n\n0.5'),
        '\ufeff' + PLAIN,
        PLAIN.replace('1.5', '"1.5"').replace('force', '"force"'),
    ],
)
def test_ways_to_write_one_table(tmp_path, text):
    table = read_table(write(tmp_path, text))
    assert list(table) == ['time', 'force']
    assert table['time'].tolist() == [0.0, 0.5, 2.0]
    assert table['force'].tolist() == [1.5, -2e3, 7.0]
    assert table.file == tmp_path / 'table.csv'
    assert table['force'].flags['C_CONTIGUOUS']


def test_numbers_survive_a_file(tmp_path):
    random = np.random.default_rng(1)
    numbers = random.normal(size=(50, 4)) * 10.0 ** random.integers(-300, 300, (50, 4))
    lines = [','.join(map(repr, row)) for row in numbers.tolist()]
    table = read_table(write(tmp_path, '\n'.join(['a,b,c,d', *lines])), time=None)
    assert np.array_equal(table.stack(['a', 'b', 'c', 'd']), numbers)
    assert np.array_equal(table.stack(['d', 'a']), numbers[:, [3, 0]])


def test_time_may_have_another_name_or_none(tmp_path):
    file = write(tmp_path, 't,x\n2,1\n1,1\n')
    assert read_table(file, time=None)['t'].tolist() == [2.0, 1.0]
    with pytest.raises(InputError, match=r'table\.csv:3: t = 1, allowed: above 2'):
        read_table(file, time='t')


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('', 'table.csv: 0 lines, allowed: one of names and others of numbers'),
        ('time,x\n', 'table.csv: 1 lines, allowed: one of names and others of numbers'),
        ('time,x,x\n0,1,2\n', "table.csv: the column name 'x' is empty or stands twice"),
        ('time,,x\n0,1,2\n', "table.csv: the column name '' is empty or stands twice"),
        ('0,1\n1,2\n', 'table.csv lacks time; found: 0, 1'),
        ('time,x\n0,1\n1\n', 'table.csv:3: 1 values, allowed: 2, one for each name'),
        (
            'time;x\n0;1\n1;2,5\n',
            ":3: x = '2,5', allowed: finite numbers; a decimal comma? Write 2.5",
        ),
        ('time,x\n0,1\n0,5,1,2\n', 'table.csv:3: 4 values, allowed: 2, one for each name; decim'),
        ('time\n0\t1\n', 'finite numbers; separate columns by commas or semicolons'),
        ('time,x\n0,1\n1,\n', "table.csv:3: x = '', allowed: finite numbers"),
        ('time,x\n0,1\n1,nan\n', "table.csv:3: x = 'nan', allowed: finite numbers"),
        ('time,x\n0,1\n1,2\xa0\n', r"table.csv:3: x = '2\xa0', allowed: finite numbers"),
        ('time,x\n0,1\n1,1_0\n', "table.csv:3: x = '1_0', allowed: finite numbers"),
        ('time,x\n0,١٢\n', "table.csv:2: x = '١٢', allowed: finite numbers"),
        ('time,x\n# a\n\n0,1\n0,2\n', 'table.csv:5: time = 0, allowed: above 0 of the row before'),
        # Lines that run into each other would give a number that nobody wrote.
        ('time,x\n0,"1\n1"\n2,3\n', 'table.csv: a quotation mark is not closed on its line'),
        ('"time,x\n0,1\n', 'table.csv: a quotation mark is not closed on its line'),
    ],
)
def test_refusals(tmp_path, text, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_table(write(tmp_path, text))
    assert '\n' not in str(caught.value)


def test_a_large_table_takes_little_more_memory_than_its_numbers(tmp_path):
    rows = 30_000
    text = ''.join(f'{k},{k / 7!r},{k / 11!r},{k / 13!r}\n' for k in range(rows))
    file = write(tmp_path, 'time,a,b,c\n' + text)
    tracemalloc.start()
    table = read_table(file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert table['c'][-1] == (rows - 1) / 13
    # Twice the numbers while they are put into columns, and the lines of the rows.
    assert peak < 4 * rows * 4 * 8


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('x' * 2_000_000, r'table\.csv:1: 1000000 characters or more'),
        (f'time,x\n0,{"1" * 200_000}\n', r'table\.csv is no table: field larger'),
    ],
    ids=['line', 'cell'],
)
def test_lines_and_cells_beyond_measure(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_table(write(tmp_path, text))


def test_columns_of_interest_and_gaps(tmp_path):
    file = tmp_path / 'a.csv'
    file.write_text('time,a,text,b\n0,1,x,\n1,NaN,"y",4\n')
    table = read_table(file, columns=('a', 'b', 'c'), gaps=True)
    assert list(table) == ['time', 'a', 'b']
    np.testing.assert_array_equal(table['a'], [1.0, np.nan])
    np.testing.assert_array_equal(table['b'], [np.nan, 4.0])
    with pytest.raises(InputError, match=r"a.csv:2: b = '', allowed: finite numbers"):
        read_table(file, columns=('a', 'b'))
    with pytest.raises(InputError, match='none of its columns is known, found: time, a, text, b'):
        read_table(file, time=None, columns=('c',))
    file.write_text('time,a\n0,1\n,2\n')
    with pytest.raises(InputError, match="time = '', allowed"):
        read_table(file, gaps=True)
