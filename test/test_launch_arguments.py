"""What all launch files have in common, as files and as they are evaluated."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from longreach_tools import cli

LAUNCH = Path(__file__).resolve().parent.parent / 'launch'
FILES = sorted(LAUNCH.glob('*.launch.xml'))
MACHINES = [path for path in FILES if path.name != 'site.launch.xml']


def declared(path: Path) -> dict[str, str | None]:
    """Return the arguments of a file with their defaults."""
    arguments = ElementTree.parse(path).getroot().findall('arg')
    return {arg.attrib['name']: arg.get('default') for arg in arguments}


@pytest.fixture
def printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What a launch file would run, with packages that are not on PyPI in name only."""
    for name in ('robot_state_publisher', 'rviz2'):
        program = tmp_path / 'lib' / name / name
        program.parent.mkdir(parents=True)
        program.touch(0o755)
        index = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages' / name
        index.parent.mkdir(parents=True, exist_ok=True)
        index.touch()
    prefixes = os.pathsep.join((str(tmp_path), os.environ['AMENT_PREFIX_PATH']))
    monkeypatch.setenv('AMENT_PREFIX_PATH', prefixes)

    def text(machine: str, *words: str) -> str:
        code, (shown, said) = cli.main(['launch', machine, '--print', *words]), capsys.readouterr()
        assert code == 0, said
        return shown

    return text


@pytest.mark.parametrize(
    ('words', 'realistic'),
    [
        (('scenario:=none',), True),
        (('operator:=true',), True),
        (('scenario:=none', 'model:=reduced'), False),
        (('scenario:=none', 'file:='), False),
        ((), False),
    ],
)
def test_a_harvester_that_is_driven_has_relief_and_make_up_valves(
    printed: Callable[..., str], words: tuple[str, ...], realistic: bool
) -> None:
    assert ('/config/harvester_realistic.yaml' in printed('harvester', *words)) == realistic


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_every_file_has_the_common_arguments_and_starts_controllers_again(path: Path) -> None:
    common = {'real_time_factor', 'duration', 'paused', 'record', 'description', 'rviz', 'view'}
    assert declared(path).keys() >= common
    assert declared(path)['view'] == 'false'
    if path in MACHINES:
        names = {'namespace', 'frame_prefix', 'publish_clock', 'companions', 'rviz_config'}
        assert declared(path).keys() >= names
    for node in ElementTree.parse(path).getroot().iter('node'):
        # Those without which a machine stands are started again.
        again = node.attrib['exec'] in ('controller', 'operator', 'damping')
        assert (node.get('respawn') == 'true') is again
    # An expression of $(eval) would run what a user writes after := as Python.
    assert '$(eval' not in path.read_text()


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_an_included_file_takes_nothing_from_an_argument_of_the_same_name(path: Path) -> None:
    for include in ElementTree.parse(path).getroot().iter('include'):
        other = LAUNCH / include.attrib['file'].rpartition('/')[2]
        given = {arg.attrib['name'] for arg in include.findall('arg')}
        assert given <= declared(other).keys()
        # Included files see the configurations of the file that includes them.
        assert declared(path).keys() & declared(other).keys() <= given


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('machine', ['crane', 'boom', 'excavator', 'harvester', 'links', 'vision'])
def test_a_slash_before_the_namespace_makes_no_difference(
    printed: Callable[..., str], machine: str
) -> None:
    plain, slashed = (
        printed(machine, f'namespace:={name}', 'record:=bag', 'description:=true')
        for name in ('north', '/north')
    )
    assert '--namespace /north ' in plain
    assert '//' not in slashed.replace('://', '')
    # Nodes and robot_description leave out the slash before the prefix of frames.
    assert slashed.replace('/north/', 'north/') == plain.replace('/north/', 'north/')


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('machine', ['crane', 'boom', 'excavator', 'harvester', 'links', 'vision'])
def test_without_a_namespace_frames_have_no_prefix(
    printed: Callable[..., str], machine: str
) -> None:
    # Cameras alone have no description: that of the boom is shown.
    words = ('boom:=true', 'boom_namespace:=/') if machine == 'vision' else ()
    text = printed(machine, 'namespace:=/', 'rviz:=true', *words)
    assert 'longreach view' not in text
    assert "frame_prefix: ''" in text
    assert not re.search("frame_prefix: '?[^' ]", text)
    assert 'robot_state_publisher' in text
    # tf2 refuses frames with a leading slash, and RViz removes only one. Of several windows each
    # has a title of its own.
    assert re.search(r"rviz2 -d \S+ -t 'RViz:{NAMESPACE}' -f \w", text)


def test_the_boom_of_the_cameras_may_have_a_slash_before_its_namespace(
    printed: Callable[..., str],
) -> None:
    words = ('boom:=true', 'record:=bag', 'description:=false')
    plain, slashed = (
        printed('vision', f'boom_namespace:={name}', *words) for name in ('north', '/north')
    )
    assert 'marker_truth:=/north/marker_truth' in plain
    assert slashed.replace('/north/', 'north/') == plain.replace('/north/', 'north/')


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('machine', ['crane', 'boom', 'excavator', 'harvester', 'links'])
def test_arguments_have_their_values(printed: Callable[..., str], machine: str) -> None:
    for word in ('plant:=0', 'plant:=FALSE'):
        assert 'plant-' not in printed(machine, word)
    words = ('paused:=true', 'publish_clock:=false', 'frame_prefix:=', 'duration:=3.0')
    text = printed(machine, *words, 'record:=bag')
    assert 'longreach bag record --out bag' in text
    assert 'recorder' not in printed(machine, *words)
    assert 'duration: 3.0' in text
    assert 'start_paused: true' in text
    assert 'publish_clock: false' in text
    assert "frame_prefix: ''" in text


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('machine', ['crane', 'boom', 'excavator', 'harvester', 'links'])
def test_the_description_needs_no_viewer(printed: Callable[..., str], machine: str) -> None:
    assert 'robot_state_publisher' not in printed(machine)
    text = printed(machine, 'description:=true', 'namespace:=north')
    assert 'rviz2' not in text
    assert r'<link name=\"north/' in text
    # At 20 Hz, its default, motion is not smooth.
    assert 'publish_frequency: 60.0' in text


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_every_file_shows_what_runs_in_a_browser_once(
    printed: Callable[..., str], path: Path
) -> None:
    name = path.name.partition('.')[0]
    words = ('boom:=true',) if name == 'vision' else ()
    shown = printed(name, *words, 'view:=true', 'view_port:=8081')
    assert '--ros-args' in shown
    assert shown.count('longreach view --port 8081') == 1


@pytest.mark.slow
def test_the_cameras_view_shows_the_boom_of_another_namespace(printed: Callable[..., str]) -> None:
    text = printed('vision', 'boom:=true', 'rviz:=true', 'boom_namespace:=north')
    assert '-f north/boom_base' in text
    assert 'robot_description:=/north/robot_description' in text
    assert text.count('rviz2') == printed('crane', 'rviz:=true').count('rviz2')
