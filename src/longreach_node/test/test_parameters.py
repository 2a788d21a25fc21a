"""A parameter class as the parameters of a node."""

import dataclasses

import pytest
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, choice, quantity
from longreach_node.parameters import declare
from longreach_node.testing import bench, setting


@dataclasses.dataclass(frozen=True)
class Table(Parameters):
    mass: float = quantity('mass of the load', 'kg', above=0.0, default=10.0)
    low: float = quantity('lower end', 'm', default=-1.0, read_only=False)
    high: float = quantity('upper end', 'm', above=-5.0, at_most=5.0, default=1.0, read_only=False)
    count: int = quantity('number of turns', at_least=1, default=3, read_only=False)
    wet: bool = quantity('with rain', default=False, read_only=False)
    name: str = quantity('what to call it', '', default='')
    model: str = choice('equations', ('linear', 'nonlinear'), default='linear')

    def check(self):
        if not self.low < self.high:
            raise InputError(f'low = {self.low} m, allowed: below high = {self.high} m')


@dataclasses.dataclass(frozen=True)
class Required(Parameters):
    length: float = quantity('length of the cable', 'm')


def declared(*arguments, cls=Table):
    with bench(*arguments) as b:
        return declare(b.add(lambda: Node('toy')), cls)


def test_what_is_not_given_comes_from_elsewhere():
    # What a file says, for example, whose name is a parameter itself.
    with bench(*setting('toy', mass='3.0', name='blue')) as b:
        node = b.add(lambda: Node('toy'))
        found = declare(
            node, Table, otherwise=lambda own: {'mass': 7.0, 'high': float(len(own.name))}
        )
        assert found == Table(mass=3.0, high=4.0, name='blue')
        assert node.get_parameter('high').value == 4.0


def test_overrides():
    assert declared() == Table()
    words = setting('toy', mass='2', count='7', wet='true', name='red', model='nonlinear')
    found = declared(*words)
    assert found == Table(mass=2.0, count=7, wet=True, name='red', model='nonlinear')
    # An integer is right for a number.
    assert isinstance(found.mass, float)


@pytest.mark.parametrize(
    ('override', 'error'),
    [
        ({'mass': 'heavy'}, r"mass = 'heavy', allowed: a number in \(0, inf\) kg"),
        ({'low': '3.0'}, r'low = 3.0 m, allowed: below high = 1.0 m'),
        ({'mas': '1.0'}, r"parameter 'mas' is unknown to node /toy, allowed: mass, low, high"),
    ],
)
def test_refusals_at_start(override, error):
    with pytest.raises(InputError, match=error):
        declared(*setting('toy', **override))


def test_a_required_parameter():
    with pytest.raises(InputError, match="parameter 'length' is required: length of the cable"):
        declared(cls=Required)
    assert declared('-p', 'toy:length:=2', cls=Required).length == 2.0


def test_what_ros_itself_sets_is_no_unknown_name(tmp_path):
    file = tmp_path / 'all.yaml'
    file.write_text(
        '/**:\n  ros__parameters:\n    use_sim_time: true\n    mass: 3.0\n'
        '    qos_overrides./parameter_events.publisher.depth: 10\n'
    )
    assert declared('--params-file', str(file)).mass == 3.0


def test_descriptors():
    with bench() as b:
        node = b.add(lambda: Node('toy'))
        declare(node, Table)
        mass, low, high, model, wet, name = (
            node.describe_parameter(n) for n in ('mass', 'low', 'high', 'model', 'wet', 'name')
        )
    assert (mass.description, model.description) == ('mass of the load [kg]', 'equations')
    assert mass.type == ParameterType.PARAMETER_DOUBLE
    assert (mass.read_only, low.read_only) == (True, False)
    # For sliders, which need both ends.
    assert not mass.floating_point_range
    (ends,) = high.floating_point_range
    assert (ends.from_value, ends.to_value) == (-5.0, 5.0)
    allowed = [one.additional_constraints for one in (mass, model, wet, name)]
    assert allowed == ['(0, inf) kg', 'linear | nonlinear', 'true | false', 'a text']


def test_changes_at_run_time():
    changes = []
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


def test_a_change_over_ros_is_refused_as_at_start():
    changes = []
    with bench() as b:
        node = b.add(lambda: Node('toy'))
        declare(node, Table, changes.append)

        def set_to(name, value):
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
