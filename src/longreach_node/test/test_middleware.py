"""Settings that are made before rclpy starts: profile, domain, range of discovery."""

import os
from pathlib import Path

import pytest

from longreach_dynamics.errors import InputError
from longreach_node.middleware import check_middleware, limit_discovery, use_dds_profile

PROFILES = 'FASTRTPS_DEFAULT_PROFILES_FILE'


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The directory of profiles of an installed package."""
    config = tmp_path / 'share' / 'longreach_node' / 'config'
    config.mkdir(parents=True)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    return config


@pytest.mark.parametrize(
    ('before', 'name', 'after'),
    [
        ('', 'fastdds.xml', 'fastdds.xml'),
        ('', 'other.xml', 'other.xml'),
        ('fastdds.xml', 'other.xml', 'other.xml'),
        ('other.xml', 'fastdds.xml', 'other.xml'),
        ('/home/me/mine.xml', 'other.xml', '/home/me/mine.xml'),
    ],
)
def test_only_the_usual_profile_gives_way(config, monkeypatch, before, name, after):
    monkeypatch.setenv(PROFILES, str(config / before) if before else '')
    use_dds_profile(name)
    assert os.environ[PROFILES] == str(config / after)


@pytest.mark.parametrize(
    ('chosen', 'after'), [('', 'fastdds_images_v3.xml'), ('/home/me/mine.xml', '')]
)
def test_fast_dds_3_has_profiles_of_its_own(config, monkeypatch, chosen, after):
    (config.parents[1] / 'fastdds').mkdir()
    # The user's own profile may still be under the old name.
    monkeypatch.setenv(PROFILES, chosen)
    monkeypatch.setenv('FASTDDS_DEFAULT_PROFILES_FILE', '')
    use_dds_profile('fastdds_images.xml')
    assert os.environ[PROFILES] == chosen
    assert os.environ['FASTDDS_DEFAULT_PROFILES_FILE'] == (str(config / after) if after else '')


@pytest.mark.parametrize(
    ('chosen', 'refused'), [('', False), ('rmw_two', False), ('rmw_on', True)]
)
def test_an_rmw_that_is_not_installed_is_refused(tmp_path, monkeypatch, chosen, refused):
    prefixes = [tmp_path / 'a', tmp_path / 'b']
    for prefix, name in zip(prefixes, ('rmw_one', 'rmw_two'), strict=True):
        index = prefix / 'share' / 'ament_index' / 'resource_index' / 'rmw_typesupport'
        index.mkdir(parents=True)
        (index / name).touch()
        (index / 'rmw_implementation').touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', os.pathsep.join(map(str, prefixes)))
    monkeypatch.setenv('RMW_IMPLEMENTATION', chosen)
    if not refused:
        check_middleware()
        return
    text = f'RMW_IMPLEMENTATION = {chosen}, allowed: rmw_one, rmw_two; correct or unset'
    with pytest.raises(InputError, match=text):
        check_middleware()


@pytest.mark.parametrize('name', ['fastdds', 'fastdds_images'])
def test_profiles_of_fast_dds_3_say_the_same(name):
    config = Path(__file__).parent.parent / 'config'
    text = (config / f'{name}.xml').read_text()
    renamed = text.replace('heartbeatPeriod', 'heartbeat_period')
    assert renamed != text
    assert (config / f'{name}_v3.xml').read_text() == renamed


def test_without_the_package_no_profile_is_chosen(monkeypatch):
    monkeypatch.setenv('AMENT_PREFIX_PATH', '')
    monkeypatch.setenv(PROFILES, '')
    use_dds_profile()
    assert os.environ[PROFILES] == ''


# rclpy takes -1 for 0 and 5x for 5; at 233 the middleware ends the process.
@pytest.mark.parametrize(
    ('text', 'allowed'),
    [(text, True) for text in ('', '0', ' 5', '232', '0x10')]
    + [(text, False) for text in ('abc', '-1', '5x', '1.0', '233', '0x1000')],
)
def test_domains(monkeypatch, text, allowed):
    monkeypatch.setenv('ROS_DOMAIN_ID', text)
    if allowed:
        check_middleware()
        return
    with pytest.raises(InputError, match=f'ROS_DOMAIN_ID = {text}, allowed: whole numbers from 0'):
        check_middleware()


RANGE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'


@pytest.fixture
def no_choice(monkeypatch):
    """Leave the choice to Longreach."""
    for name in (RANGE, 'ROS_LOCALHOST_ONLY', 'ROS_STATIC_PEERS'):
        # Set in any case: what was not there would not be taken away again.
        monkeypatch.setenv(name, '')
        monkeypatch.delenv(name)


@pytest.mark.usefixtures('no_choice')
def test_only_this_machine_unless_told_otherwise():
    assert 'only nodes on this machine' in limit_discovery()
    assert os.environ[RANGE] == 'LOCALHOST'
    # A command that another one has started says nothing more.
    assert limit_discovery() == ''


@pytest.mark.usefixtures('no_choice')
def test_network_holds_for_what_a_command_starts():
    assert limit_discovery(network=True) == ''
    assert limit_discovery() == ''
    assert os.environ[RANGE] == 'SUBNET'


@pytest.mark.usefixtures('no_choice')
@pytest.mark.parametrize(
    ('name', 'value', 'local'),
    [
        (RANGE, 'SUBNET', False),
        ('ROS_LOCALHOST_ONLY', '0', False),
        ('ROS_STATIC_PEERS', '192.168.0.7', False),
        (RANGE, 'LOCALHOST', True),
        (RANGE, 'OFF', True),
        ('ROS_LOCALHOST_ONLY', '1', True),
    ],
)
def test_setting_of_the_user_is_respected_or_contradicts_network(monkeypatch, name, value, local):
    monkeypatch.setenv(name, value)
    before = dict(os.environ)
    assert limit_discovery() == ''
    if not local:
        assert limit_discovery(network=True) == ''
        assert os.environ == before
        return
    with pytest.raises(InputError, match=f'{name} = {value}; unset it'):
        limit_discovery(network=True)
