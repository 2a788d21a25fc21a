"""Parameter objects and their YAML files: what is accepted, and how each mistake is refused."""

import dataclasses
import math
import re

import pytest
import yaml

from longreach_dynamics import errors, parameters
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import (
    Parameters,
    choice,
    from_mapping,
    load,
    load_yaml,
    quantity,
)


@dataclasses.dataclass(frozen=True)
class Cylinder(Parameters):
    relations = ('rod < bore',)

    bore: float = quantity('inner diameter', 'm', above=0.0, at_most=0.5)
    rod: float = quantity('rod diameter', 'm', at_least=0.0)


@dataclasses.dataclass(frozen=True)
class Machine(Parameters):
    relations = ('limit <= mass',)

    mass: float = quantity('mass', 'kg', above=0.0)
    cylinders: tuple[Cylinder, ...] = quantity('cylinders')
    main: Cylinder = quantity('the main cylinder')
    joints: int = quantity('number of joints', at_least=1, below=8, default=3)
    weights: tuple[float, ...] = quantity('weights', length=3, default=(1.0, 2.0, 3.0))
    poles: tuple[tuple[float, float], ...] = quantity('poles', '1/s', default=())
    oil: str = choice('oil', ('mineral', 'ester'), default='mineral')
    name: str = quantity('name', '', default='arm')
    locked: bool = quantity('locked', '', default=False)
    limit: float | None = quantity('limit, if any', 'N', default=None, at_least=0.0)


def values(**changes):
    """Return a valid mapping with changes; a change to ... leaves the key out."""
    mapping = {
        'mass': 10.0,
        'cylinders': [{'bore': 0.1, 'rod': 0.05}, {'bore': 0.2, 'rod': 0.1}],
        'main': {'bore': 0.3, 'rod': 0.1},
    }
    mapping.update(changes)
    return {key: value for key, value in mapping.items() if value is not ...}


def write(tmp_path, text):
    file = tmp_path / 'machine.yaml'
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_mapping_becomes_nested_objects_with_defaults():
    machine = from_mapping(Machine, values(mass=7, joints=2.0, weights=[1, 2, 3], limit=4))
    assert machine == Machine(
        mass=7.0,
        cylinders=(Cylinder(0.1, 0.05), Cylinder(0.2, 0.1)),
        main=Cylinder(0.3, 0.1),
        joints=2,
        limit=4.0,
    )
    assert (machine.oil, machine.name, machine.locked) == ('mineral', 'arm', False)
    kinds = [type(value) for value in (machine.mass, machine.joints, machine.limit)]
    assert kinds == [float, int, float]
    assert [type(weight) for weight in machine.weights] == [float] * 3
    assert machine.replace(mass=8).mass == 8.0
    with pytest.raises(InputError, match=r'mass = -1, allowed: \(0, inf\) kg'):
        machine.replace(mass=-1)
    with pytest.raises(TypeError, match='Machine has no maas'):
        machine.replace(maas=2)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'maas': 1.0}, r'^maas is unknown, allowed here: mass, cylinders, main, joints'),
        ({'main': {'bore': 0.1, 'rod': 0.0, 'x': 1}}, r'^main\.x is unknown, .*: bore, rod$'),
        ({'cylinders': [{'bore': 0.1, 'rod': 0.0}, {'bor': 1}]}, r'^cylinders\[1\]\.bor is unk'),
        ({'mass': ...}, r'^mass is missing: mass \[kg\]'),
        ({'main': {'bore': 0.1}}, r'^main\.rod is missing: rod diameter \[m\]'),
        ({'mass': math.nan}, r'^mass = nan, allowed: \(0, inf\) kg'),
        ({'mass': 10**400}, r'^mass = .*more than 300 digits'),
        ({'mass': True}, r'^mass = True, allowed: a number in \(0, inf\) kg'),
        ({'mass': [1] * 1000}, r'^mass = \[(1, ){12}\.\.\.\], allowed: a number'),
        ({'mass': '10'}, r"^mass = '10', allowed: a number in"),
        ({'mass': 0.0}, r'^mass = 0\.0, allowed: \(0, inf\) kg'),
        ({'main': {'bore': 0.6, 'rod': 0.1}}, r'^main\.bore = 0\.6, allowed: \(0, 0\.5\] m'),
        ({'main': {'bore': 0.1, 'rod': -1e-9}}, r'^main\.rod = -1e-09, allowed: \[0, inf\) m'),
        ({'cylinders': [{'bore': 0.1, 'rod': 0.1}]}, r'^cylinders\[0\]: rod = 0\.1 m, .*low bo'),
        ({'limit': 10.1}, r'^limit = 10\.1 N, allowed: at most mass = 10 N$'),
        ({'main': 3.0}, r'^main = 3\.0, allowed: a mapping with the keys bore, rod'),
        ({'cylinders': {'bore': 0.1}}, r'^cylinders = .*, allowed: a list'),
        ({'cylinders': 'ab'}, r"^cylinders = 'ab', allowed: a list"),
        ({'joints': 2.5}, r'^joints = 2\.5, allowed: an integer in \[1, 8\)'),
        ({'joints': 8}, r'^joints = 8, allowed: \[1, 8\)'),
        ({'weights': [1.0, 2.0]}, r'^weights has 2 values, allowed: 3'),
        ({'poles': [[1.0, 2.0], [1.0]]}, r'^poles\[1\] has 1 values, allowed: 2'),
        ({'poles': [[1.0, None]]}, r'^poles\[0\]\[1\] = None, .* number in \(-inf, inf\) 1/s'),
        ({'oil': 'olive'}, r"^oil = 'olive', allowed: mineral \| ester"),
        ({'name': 3}, r'^name = 3, allowed: a text'),
        ({'locked': 1}, r'^locked = 1, allowed: true \| false'),
    ],
)
def test_refusals_name_path_value_and_what_is_allowed(changes, message):
    with pytest.raises(InputError, match=message):
        from_mapping(Machine, values(**changes))


@pytest.mark.parametrize('text', ['1e5', '1E5', '+1e5', '1.e5', '.1e6', '1.0e+5', '100000'])
def test_every_way_to_write_a_number_is_one(text, tmp_path):
    others = yaml.safe_dump(values(mass=...))
    assert load(Machine, write(tmp_path, f'mass: {text}\n{others}')).mass == 1e5


@pytest.mark.parametrize('text', ['1:30', '0x1F', '2001-12-14', '1_000'])
def test_what_only_yaml_1_1_takes_for_a_number_is_a_text(text, tmp_path):
    with pytest.raises(InputError, match=f"mass = '{text}', allowed: a number"):
        load(Machine, write(tmp_path, f'mass: {text}\n'))


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('mass: 1\nmass: 2\n', r"machine\.yaml:2:1: .*the key 'mass' stands twice"),
        ('mass: [1, 2\n', r'machine\.yaml:2:1: not valid YAML'),
        ('? [1, 2]\n: 3\n', r'machine\.yaml:1:3: .*a key must be a name'),
        ('mass: !!python/name:os.system\n', r'machine\.yaml:1:7: not valid YAML'),
        ('mass: \x00\n', r'machine\.yaml: not valid YAML'),
        ('', r'machine\.yaml: the top of the file must be a mapping'),
        ('mass: 1\n---\nmass: 2\n', r'machine\.yaml:2:1: not valid YAML'),
        (b'\xff\xfe\x00\x80\x81', r'machine\.yaml cannot be read: not a text file'),
        ('[' * 5000, r'machine\.yaml: not valid YAML'),
        ('mass: !!float abc', r'machine\.yaml: not valid YAML'),
        ('mass: ' + '9' * 5000, r'machine\.yaml: not valid YAML'),
    ],
)
def test_bad_files_are_refused(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_yaml(write(tmp_path, text))


def laughs(levels):
    """Return a YAML file whose aliases stand for 10 to the power of ``levels`` values."""
    lines = ['a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]']
    for k in range(1, levels):
        lines.append(f'a{k}: &a{k} [{", ".join([f"*a{k - 1}"] * 10)}]')
    return '\n'.join(lines) + '\n'


def test_aliases_are_bounded_by_what_they_repeat(tmp_path):
    assert len(load_yaml(write(tmp_path, laughs(3)))['a2']) == 10
    with pytest.raises(InputError, match=r'machine\.yaml:6:.*: more than 200000 values, counting'):
        load_yaml(write(tmp_path, laughs(9)))
    with pytest.raises(InputError, match=r'machine\.yaml:1:11: .*an alias contains itself'):
        load_yaml(write(tmp_path, 'a: &a [1, *a]\n'))


def test_devices_and_large_files_are_refused(tmp_path):
    for place, reason in ('/dev/zero', 'a device'), (tmp_path, 'Is a directory'):
        with pytest.raises(InputError, match=f'{place} cannot be read: {reason}'):
            load_yaml(place)
    file = tmp_path / 'large.yaml'
    with file.open('wb') as stream:
        stream.truncate(10**9)
    with pytest.raises(InputError, match=r'large\.yaml cannot be read: more than 4000000 char'):
        load_yaml(file)


def test_a_file_gives_what_differs_from_its_base(tmp_path):
    base = {'machine': {'count': 1}, 'parts': [{'name': 'a', 'x': 1}, {'name': 'b', 'x': 2}]}
    (tmp_path / 'base.yaml').write_text(yaml.safe_dump(base))
    own = 'base: base.yaml\nparts:\n  - {name: b, y: 3}\n  - {name: c, x: 4}\n'
    file = tmp_path / 'own.yaml'
    file.write_text(own)
    assert parameters._with_base(load_yaml(file), file) == {
        'machine': {'count': 1},
        'parts': [{'name': 'a', 'x': 1}, {'name': 'b', 'x': 2, 'y': 3}, {'name': 'c', 'x': 4}],
    }
    file.write_text('base: base.yaml\nparts: []\n')
    assert parameters._with_base(load_yaml(file), file)['parts'] == []


@pytest.mark.parametrize(
    ('text', 'error'),
    [
        ('base: own.yaml', 'base = .own.yaml. has a base itself'),
        ('base: 3', 'base = 3, allowed: the name of a file'),
        ('base: none.yaml', 'base = .none.yaml.: .* cannot be'),
        ('base: base.yaml\nparts: [{name: b}, {name: b}]', '.* b, b, allowed: each name once'),
        ('base: base.yaml\nparts: [{name: [1], x: 1}]', ''),
    ],
)
def test_files_that_do_not_fit_their_base_are_refused(tmp_path, text, error):
    (tmp_path / 'base.yaml').write_text('parts: [{name: b, x: 2}]')
    (tmp_path / 'own.yaml').write_text('base: base.yaml')
    with pytest.raises(InputError, match=rf'machine\.yaml: {error}'):
        load(Machine, write(tmp_path, text))


def test_a_mapping_of_parameters_gives_them_back_through_yaml(tmp_path):
    machine = from_mapping(Machine, values(mass=1e-5, poles=[[-1.0, 7.9e-5]], locked=True))
    assert 'weights' not in machine.as_mapping()
    assert load(Machine, write(tmp_path, yaml.safe_dump(machine.as_mapping()))) == machine


@pytest.mark.parametrize(
    ('check', 'words', 'good', 'bad', 'message'),
    [
        ('among', (('b', 'c'), '; d'), 'b', 'e', "a = 'e', allowed: b | c; d"),
        ('count', (2, 'two'), [1, 2], [1], 'a has 1 values, allowed: 2, two'),
        ('count', (0,), [], [1], 'a has 1 values, allowed: 0'),
        ('distinct', (), ['b', 'c'], ['b', 'c', 'c'], "a has the name 'c' twice, allowed: no two"),
        ('has', (['b', 'c'], '; d'), ['b'], ['b', 'e', 'f'], 'a lacks e, f; found: b, c; d'),
        ('within', ('[0, 1) m; b',), 0.0, 1, 'a = 1 m, allowed: [0, 1) m; b'),
        ('within', ('(0, 1]',), 1, 0.0, 'a = 0, allowed: (0, 1]'),
        ('within', ('(-1, inf) m',), 1e99, math.inf, 'a = inf m, allowed: (-1, inf) m'),
        ('within', ('[-1e-3, 1]',), -1e-3, math.nan, 'a = nan, allowed: [-1e-3, 1]'),
    ],
)
def test_families_of_refusals(check, words, good, bad, message):
    refuse = getattr(errors, f'check_{check}')
    refuse('a', good, *words)
    with pytest.raises(InputError, match=re.escape(message)):
        refuse('a', bad, *words)


def test_of_some_values_one_is_allowed():
    errors.check_one(b='x', c=())
    errors.check_one(0, b=None)
    for least, given, text in (
        (0, (1, None, 2), 'b and d'),
        (1, ('', None, ()), 'none of b, c, d'),
    ):
        with pytest.raises(InputError, match=f'^{text} given, allowed: one of them'):
            errors.check_one(least, **dict(zip('bcd', given, strict=True)))
