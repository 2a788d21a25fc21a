"""A parameter class as the parameters of a node."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import rclpy
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, choice, quantity
from longreach_node.parameters import declare, file_table, table
from longreach_node.testing import bench, setting


@dataclasses.dataclass(frozen=True)
class Table(Parameters):
    """One field of each kind."""

    mass: float = quantity('mass of the load', 'kg', above=0.0, default=10.0)
    low: float = quantity('lower end', 'm', default=-1.0, read_only=False)
    high: float = quantity('upper end', 'm', above=-5.0, at_most=5.0, default=1.0, read_only=False)
    count: int = quantity('number of turns', at_least=1, default=3, read_only=False)
    wet: bool = quantity('with rain', default=False, read_only=False)
    name: str = quantity('what to call it', '', default='')
    model: str = choice('equations', ('linear', 'nonlinear'), default='linear')

    def check(self) -> None:
        if not self.low < self.high:
            raise InputError(f'low = {self.low} m, allowed: below high = {self.high} m')


@dataclasses.dataclass(frozen=True)
class Required(Parameters):
    """A field without a default."""

    length: float = quantity('length of the cable', 'm')


def declared(*arguments: str, cls: type[Any] = Table) -> Any:
    with bench(*arguments) as b:
        return declare(b.add(lambda: Node('toy')), cls)


def test_what_is_not_given_comes_from_elsewhere() -> None:
    # What a file says, for example, whose name is a parameter itself.
    with bench(*setting('toy', mass='3.0', name='blue')) as b:
        node = b.add(lambda: Node('toy'))
        found = declare(
            node, Table, otherwise=lambda own: {'mass': 7.0, 'high': float(len(own.name))}
        )
        assert found == Table(mass=3.0, high=4.0, name='blue')
        assert node.get_parameter('high').value == 4.0


def test_overrides() -> None:
    assert declared() == Table()
    words = setting('toy', mass='2', count='7', wet='true', name='red', model='nonlinear')
    found = declared(*words)
    assert found == Table(mass=2.0, count=7, wet=True, name='red', model='nonlinear')
    # An integer is right for a number.
    assert isinstance(found.mass, float)


@pytest.mark.parametrize(
    ('override', 'error'),
    [
        ({'mass': '0.0'}, r'mass = 0.0, allowed: \(0, inf\) kg'),
        ({'mass': '.nan'}, r'mass = nan, allowed: \(0, inf\) kg'),
        ({'mass': 'heavy'}, r"mass = 'heavy', allowed: a number in \(0, inf\) kg"),
        ({'mass': '[1.0, 2.0]'}, r'mass = .*, allowed: a number'),
        ({'high': '5.5'}, r'high = 5.5, allowed: \(-5, 5\] m'),
        ({'count': '1.5'}, r'count = 1.5, allowed: an integer'),
        ({'wet': '1'}, r'wet = 1, allowed: true \| false'),
        ({'model': 'cubic'}, r"model = 'cubic', allowed: linear \| nonlinear"),
        ({'low': '3.0'}, r'low = 3.0 m, allowed: below high = 1.0 m'),
        ({'mas': '1.0'}, r"parameter 'mas' is unknown to node /toy, allowed: mass, low, high"),
    ],
)
def test_refusals_at_start(override: dict[str, str], error: str) -> None:
    with pytest.raises(InputError, match=error):
        declared(*setting('toy', **override))


def test_a_required_parameter() -> None:
    with pytest.raises(InputError, match="parameter 'length' is required: length of the cable"):
        declared(cls=Required)
    assert declared('-p', 'toy:length:=2', cls=Required).length == 2.0


def test_what_ros_itself_sets_is_no_unknown_name(tmp_path: Path) -> None:
    file = tmp_path / 'all.yaml'
    file.write_text(
        '/**:\n  ros__parameters:\n    use_sim_time: true\n    mass: 3.0\n'
        '    qos_overrides./parameter_events.publisher.depth: 10\n'
    )
    assert declared('--params-file', str(file)).mass == 3.0


def test_descriptors() -> None:
    with bench() as b:
        node = b.add(lambda: Node('toy'))
        declare(node, Table)
        mass, low, high, model, wet, name = (
            node.describe_parameter(n) for n in ('mass', 'low', 'high', 'model', 'wet', 'name')
        )
    assert mass.description == 'mass of the load [kg]'
    assert mass.type == ParameterType.PARAMETER_DOUBLE
    assert mass.additional_constraints == '(0, inf) kg'
    assert mass.read_only
    assert not low.read_only
    # For sliders, which need both ends.
    assert not mass.floating_point_range
    (ends,) = high.floating_point_range
    assert (ends.from_value, ends.to_value) == (-5.0, 5.0)
    assert model.additional_constraints == 'linear | nonlinear'
    assert model.description == 'equations'
    assert wet.additional_constraints == 'true | false'
    assert name.additional_constraints == 'a text'


def test_changes_at_run_time() -> None:
    changes: list[Table] = []
    with bench('-p', 'toy:high:=2.0') as b:
        node = b.add(lambda: Node('toy'))
        declare(node, Table, changes.append)
        (result,) = node.set_parameters([Parameter('low', value=-3.0)])
        assert result.successful
        assert changes[-1] == Table(low=-3.0, high=2.0)
        # Each alone contradicts the other; together they are right.
        result = node.set_parameters_atomically(
            [Parameter('low', value=3.0), Parameter('high', value=4.0)]
        )
        assert result.successful
        assert changes[-1] == Table(low=3.0, high=4.0)
        # ROS's own parameters are not our business.
        (result,) = node.set_parameters([Parameter('use_sim_time', value=True)])
        assert result.successful
        assert len(changes) == 2


def test_a_change_over_ros_is_refused_as_at_start() -> None:
    changes: list[Table] = []
    with bench() as b:
        node = b.add(lambda: Node('toy'))
        declare(node, Table, changes.append)

        def set_to(name: str, value: object) -> str:
            request = SetParameters.Request()
            request.parameters = [Parameter(name, value=value).to_parameter_msg()]
            result = b.call(SetParameters, 'toy/set_parameters', request).results[0]
            assert result.successful == (not result.reason)
            return str(result.reason)

        assert set_to('high', 7.0) == 'high = 7.0, allowed: (-5, 5] m'
        assert set_to('high', 'tall') == "high = 'tall', allowed: a number in (-5, 5] m"
        assert set_to('low', 4.0) == 'low = 4.0 m, allowed: below high = 1.0 m'
        assert set_to('count', 0) == 'count = 0, allowed: [1, inf)'
        assert set_to('mass', 3.0) == 'mass is read-only: set it when the node starts'
        assert changes == []
        # An integer is right for a number, as at start.
        assert set_to('high', 3) == ''
        assert changes == [Table(high=3.0)]
        assert node.get_parameter('high').type_ is Parameter.Type.DOUBLE


def test_table() -> None:
    lines = table(Table).splitlines()
    assert lines[0] == '| name | type | default | allowed | meaning |'
    assert lines[2] == '| `mass` | float | `10.0` | (0, inf) kg | mass of the load |'
    assert lines[3].endswith('| (-inf, inf) m | lower end (can be changed at run time) |')
    assert lines[6].split(' | ')[3] == 'true \\| false'
    assert len(lines) == 2 + len(dataclasses.fields(Table))
    assert '| `length` | float | `required` |' in table(Required)


@dataclasses.dataclass(frozen=True)
class Wheel(Parameters):
    """An entry of a list."""

    name: str = quantity('name')
    radius: float | None = quantity('radius', 'm', above=0.0, default=None)
    stops_deg: tuple[float, ...] = quantity('stops', 'deg', default=())


@dataclasses.dataclass(frozen=True)
class Tread(Parameters):
    """Numbers with the unit of what holds them."""

    inner: float = quantity('inside', '')
    kind: str = choice('shape', ('smooth', 'rough'), default='rough')
    points: tuple[tuple[float, float], ...] = quantity('pairs', '', default=())


@dataclasses.dataclass(frozen=True)
class Cart(Parameters):
    """A whole file."""

    wheels: tuple[Wheel, ...] = quantity('wheels')
    tread: Tread = quantity('tread', 'mm')
    brake: bool = quantity('with a brake', default=True)
    label: str = quantity('label', '', default='')
    tags: tuple[str, ...] = quantity('tags', default=())


def test_table_of_a_file() -> None:
    assert file_table(Cart).splitlines() == [
        '| name | unit | default | allowed | meaning |',
        '| --- | --- | --- | --- | --- |',
        '| `wheels.NAME.name` |  | required | a name | name |',
        '| `wheels.NAME.radius` | m | none | (0, inf) | radius |',
        '| `wheels.NAME.stops_deg` | deg | `[]` | list of (-inf, inf) | stops |',
        '| `tread.inner` | mm | required | (-inf, inf) | inside |',
        '| `tread.kind` |  | `rough` | smooth \\| rough | shape |',
        '| `tread.points` |  | `[]` | list of pairs | pairs |',
        '| `brake` |  | `true` | true \\| false | with a brake |',
        '| `label` |  | empty | a name | label |',
        '| `tags` |  | `[]` | list of names | tags |',
    ]


def test_nothing_is_left_of_a_bench() -> None:
    declared()
    assert not rclpy.ok()
