"""Parameter objects and their YAML files: what is accepted, and how each mistake is refused."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from longreach_dynamics import parameters
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import (
    Parameters,
    Rule,
    choice,
    from_mapping,
    load,
    load_yaml,
    quantity,
)


@dataclasses.dataclass(frozen=True)
class Cylinder(Parameters):
    bore: float = quantity('inner diameter', 'm', above=0.0, at_most=0.5)
    rod: float = quantity('rod diameter', 'm', at_least=0.0)

    def check(self) -> None:
        if self.rod >= self.bore:
            raise InputError(f'rod = {self.rod} m, allowed: below bore = {self.bore} m')


@dataclasses.dataclass(frozen=True)
class Machine(Parameters):
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


def values(**changes: Any) -> dict[str, Any]:
    """Return a valid mapping with changes; a change to ... leaves the key out."""
    mapping: dict[str, Any] = {
        'mass': 10.0,
        'cylinders': [{'bore': 0.1, 'rod': 0.05}, {'bore': 0.2, 'rod': 0.1}],
        'main': {'bore': 0.3, 'rod': 0.1},
    }
    mapping.update(changes)
    return {key: value for key, value in mapping.items() if value is not ...}


def write(tmp_path: Path, text: str | bytes) -> Path:
    file = tmp_path / 'machine.yaml'
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


VALID = """
mass: 10
cylinders:
  - {bore: 0.1, rod: 0.05}
  - {bore: 0.2, rod: 0.1}
main: {bore: 0.3, rod: 1e-1}
"""


def test_mapping_becomes_nested_objects_with_defaults() -> None:
    machine = from_mapping(Machine, values())
    assert machine == Machine(
        mass=10.0,
        cylinders=(Cylinder(0.1, 0.05), Cylinder(0.2, 0.1)),
        main=Cylinder(0.3, 0.1),
    )
    assert (machine.joints, machine.oil, machine.limit) == (3, 'mineral', None)


def test_numbers_get_the_type_of_their_field() -> None:
    machine = from_mapping(Machine, values(mass=7, joints=2.0, weights=[1, 2, 3], limit=4))
    assert type(machine.mass) is float
    assert type(machine.joints) is int
    assert [type(weight) for weight in machine.weights] == [float] * 3
    assert type(machine.limit) is float


def test_objects_are_frozen() -> None:
    machine = from_mapping(Machine, values())
    with pytest.raises(dataclasses.FrozenInstanceError):
        machine.mass = 1.0  # type: ignore[misc]
    assert hash(machine) == hash(from_mapping(Machine, values()))


def test_replace_checks_again() -> None:
    machine = from_mapping(Machine, values())
    assert machine.replace(mass=2).mass == 2.0
    assert machine.mass == 10.0
    with pytest.raises(InputError, match=r'mass = -1, allowed: \(0, inf\) kg'):
        machine.replace(mass=-1)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'maas': 1.0}, r'^maas is unknown, allowed here: mass, cylinders, main, joints'),
        ({'main': {'bore': 0.1, 'rod': 0.0, 'x': 1}}, r'^main\.x is unknown, .*: bore, rod$'),
        ({'cylinders': [{'bore': 0.1, 'rod': 0.0}, {'bor': 1}]}, r'^cylinders\[1\]\.bor is unk'),
        ({'mass': ...}, r'^mass is missing: mass \[kg\]'),
        ({'main': {'bore': 0.1}}, r'^main\.rod is missing: rod diameter \[m\]'),
        ({'cylinders': [{'rod': 0.1}]}, r'^cylinders\[0\]\.bore is missing'),
        ({'mass': math.nan}, r'^mass = nan, allowed: \(0, inf\) kg'),
        ({'mass': math.inf}, r'^mass = inf, allowed: \(0, inf\) kg'),
        ({'mass': 10**400}, r'^mass = .*more than 300 digits'),
        ({'mass': True}, r'^mass = True, allowed: a number in \(0, inf\) kg'),
        ({'mass': '10'}, r"^mass = '10', allowed: a number in"),
        ({'mass': [1.0]}, r'^mass = \[1\.0\], allowed: a number'),
        ({'mass': 0.0}, r'^mass = 0\.0, allowed: \(0, inf\) kg'),
        ({'main': {'bore': 0.6, 'rod': 0.1}}, r'^main\.bore = 0\.6, allowed: \(0, 0\.5\] m'),
        ({'main': {'bore': 0.1, 'rod': -1e-9}}, r'^main\.rod = -1e-09, allowed: \[0, inf\) m'),
        ({'main': {'bore': 0.1, 'rod': 0.1}}, r'^main: rod = 0\.1 m, allowed: below bore'),
        (
            {'cylinders': [{'bore': 0.1, 'rod': 0.2}]},
            r'^cylinders\[0\]: rod = 0\.2 m, allowed: below bore = 0\.1 m',
        ),
        ({'main': 3.0}, r'^main = 3\.0, allowed: a mapping with the keys bore, rod'),
        ({'cylinders': {'bore': 0.1}}, r'^cylinders = .*, allowed: a list'),
        ({'cylinders': 'ab'}, r"^cylinders = 'ab', allowed: a list"),
        ({'joints': 2.5}, r'^joints = 2\.5, allowed: an integer in \[1, 8\)'),
        ({'joints': 8}, r'^joints = 8, allowed: \[1, 8\)'),
        ({'weights': [1.0, 2.0]}, r'^weights has 2 values, allowed: 3'),
        ({'weights': [1.0, 2.0, math.nan]}, r'^weights\[2\] = nan, allowed'),
        ({'weights': [1.0, 'x', 3.0]}, r"^weights\[1\] = 'x', allowed: a number"),
        ({'poles': [[1.0, 2.0], [1.0]]}, r'^poles\[1\] has 1 values, allowed: 2'),
        ({'poles': [[1.0, None]]}, r'^poles\[0\]\[1\] = None, allowed: a number'),
        ({'oil': 'olive'}, r"^oil = 'olive', allowed: mineral \| ester"),
        ({'name': 3}, r'^name = 3, allowed: a text'),
        ({'locked': 1}, r'^locked = 1, allowed: true \| false'),
    ],
)
def test_refusals_name_path_value_and_what_is_allowed(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        from_mapping(Machine, values(**changes))


@pytest.mark.parametrize('text', ['1e5', '1E5', '+1e5', '1.e5', '.1e6', '1.0e+5', '100000'])
def test_every_way_to_write_a_number_is_one(text: str, tmp_path: Path) -> None:
    machine = load(Machine, write(tmp_path, VALID.replace('mass: 10', f'mass: {text}')))
    assert machine.mass == 1e5


@pytest.mark.parametrize('text', ['1:30', '0x1F', '2001-12-14', '1_000'])
def test_what_only_yaml_1_1_takes_for_a_number_is_a_text(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"mass = '{text}', allowed: a number"):
        load(Machine, write(tmp_path, VALID.replace('mass: 10', f'mass: {text}')))


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('mass: 1\nmass: 2\n', r"machine\.yaml:2:1: .*the key 'mass' stands twice"),
        ('main:\n  bore: 1\n  rod: 2\n  bore: 1\n', r"machine\.yaml:4:3: .*'bore' stands twice"),
        ('mass: [1, 2\n', r'machine\.yaml:2:1: not valid YAML'),
        ('mass: 1\n\tmain: 2\n', r'machine\.yaml:2:1: not valid YAML'),
        ('? [1, 2]\n: 3\n', r'machine\.yaml:1:3: .*a key must be a name'),
        ('mass: !!python/name:os.system\n', r'machine\.yaml:1:7: not valid YAML'),
        ('mass: *nowhere\n', r'machine\.yaml:1:7: not valid YAML'),
        ('mass: \x00\n', r'machine\.yaml: not valid YAML'),
        ('- 1\n- 2\n', r'machine\.yaml: the top of the file must be a mapping'),
        ('', r'machine\.yaml: the top of the file must be a mapping'),
        ('mass: 1\n---\nmass: 2\n', r'machine\.yaml:2:1: not valid YAML'),
        (b'\xff\xfe\x00\x80\x81', r'machine\.yaml cannot be read: not a text file'),
        ('[' * 5000, r'machine\.yaml: not valid YAML'),
        ('mass: !!float abc', r'machine\.yaml: not valid YAML'),
        ('mass: ' + '9' * 5000, r'machine\.yaml: not valid YAML'),
    ],
)
def test_bad_files_are_refused(text: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_yaml(write(tmp_path, text))


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'nothing\.yaml cannot be read: No such file'):
        load_yaml(tmp_path / 'nothing.yaml')
    with pytest.raises(InputError, match=r'cannot be read: Is a directory'):
        load_yaml(tmp_path)


@pytest.mark.parametrize(
    ('rule', 'text'),
    [
        (Rule('', 'm', at_least=0.0, below=5.0), '[0, 5) m'),
        (Rule('', '1', above=-1.5, at_most=2.0), '(-1.5, 2]'),
        (Rule('', 'N'), '(-inf, inf) N'),
        (Rule('', choices=('a', 'b')), 'a | b'),
    ],
)
def test_range_text(rule: Rule, text: str) -> None:
    assert rule.range_text() == text


def laughs(levels: int) -> str:
    """Return a YAML file whose aliases stand for 10 to the power of ``levels`` values."""
    lines = ['a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]']
    for k in range(1, levels):
        lines.append(f'a{k}: &a{k} [{", ".join([f"*a{k - 1}"] * 10)}]')
    return '\n'.join(lines) + '\n'


def test_aliases_are_bounded_by_what_they_repeat(tmp_path: Path) -> None:
    file = tmp_path / 'machine.yaml'
    file.write_text(laughs(3))
    assert len(load_yaml(file)['a2']) == 10
    file.write_text(laughs(9))
    with pytest.raises(InputError, match=r'machine\.yaml:6:.*: more than 200000 values, counting'):
        load_yaml(file)
    file.write_text('a: &a [1, *a]\n')
    with pytest.raises(InputError, match=r'machine\.yaml:1:11: .*an alias contains itself'):
        load_yaml(file)


def test_a_large_value_is_shown_in_part(tmp_path: Path) -> None:
    file = tmp_path / 'machine.yaml'
    file.write_text(laughs(5) + 'mass: *a4\n')
    with pytest.raises(InputError) as caught:
        from_mapping(Machine, values(mass=load_yaml(file)['mass']))
    assert len(str(caught.value)) < 1500


def test_devices_and_large_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='/dev/zero cannot be read: a device'):
        load_yaml('/dev/zero')
    file = tmp_path / 'large.yaml'
    with file.open('wb') as stream:
        stream.truncate(10**9)
    with pytest.raises(InputError, match=r'large\.yaml cannot be read: more than 4000000 char'):
        load_yaml(file)


def test_a_file_gives_what_differs_from_its_base(tmp_path: Path) -> None:
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
    (tmp_path / 'third.yaml').write_text('base: own.yaml\n')
    with pytest.raises(InputError, match=r'third.yaml: base = .own.yaml. has a base itself'):
        load(Machine, tmp_path / 'third.yaml')
    (tmp_path / 'fourth.yaml').write_text('base: 3\n')
    with pytest.raises(InputError, match=r'fourth.yaml: base = 3, allowed: the name of a file'):
        load(Machine, tmp_path / 'fourth.yaml')
    (tmp_path / 'fifth.yaml').write_text('base: none.yaml\n')
    with pytest.raises(InputError, match=r'fifth.yaml: base = .none.yaml.: .* cannot be'):
        load(Machine, tmp_path / 'fifth.yaml')


@pytest.mark.parametrize(
    ('entries', 'error'),
    [
        (
            '[{name: b, x: 1}, {name: b, x: 2}]',
            r'own\.yaml: .* b, b, allowed: each name once',
        ),
        ('[{name: [1], x: 1}]', r'own\.yaml: '),
    ],
)
def test_names_that_match_no_entry_of_the_base_for_sure_are_refused(
    tmp_path: Path, entries: str, error: str
) -> None:
    base = {'machine': {'count': 1}, 'parts': [{'name': 'b', 'x': 2}]}
    (tmp_path / 'base.yaml').write_text(yaml.safe_dump(base))
    (tmp_path / 'own.yaml').write_text(f'base: base.yaml\nparts: {entries}\n')
    with pytest.raises(InputError, match=error):
        load(Machine, tmp_path / 'own.yaml')


def test_a_mapping_of_parameters_gives_them_back_through_yaml(tmp_path: Path) -> None:
    machine = from_mapping(Machine, values(mass=1e-5, poles=[[-1.0, 7.9e-5]], locked=True))
    assert 'weights' not in machine.as_mapping()
    assert load(Machine, write(tmp_path, yaml.safe_dump(machine.as_mapping()))) == machine
