"""The container's files, as far as they can be checked without building it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCKER = ROOT / 'docker'


def instructions():
    """Return [(instruction, rest)] of the Dockerfile, with continued lines joined."""
    text = (DOCKER / 'Dockerfile').read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith('#')]
    joined = '\n'.join(lines).replace('\\\n', ' ')
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines()]


def test_shell_scripts_and_commands_can_be_parsed():
    commands = [['-c', rest] for name, rest in instructions() if name == 'RUN']
    assert commands
    scripts = [[str(DOCKER / name)] for name in ('entrypoint.sh', 'environment.sh')]
    for words in commands + scripts:
        done = subprocess.run(['bash', '-n', *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_everything_that_is_copied_exists():
    stages = {rest.split()[-1] for name, rest in instructions() if name == 'FROM'}
    copies = [shlex.split(rest) for name, rest in instructions() if name == 'COPY']
    assert copies
    ignored = (DOCKER / 'Dockerfile.dockerignore').read_text().splitlines()
    assert {'.git', '.venv', 'build', 'install', 'log', 'out'} <= {*ignored}
    for words in copies:
        if words[0].startswith('--from='):
            assert words[0].removeprefix('--from=') in stages
        else:
            for source in words[:-1]:
                assert (ROOT / source).exists(), source
                assert source.partition('/')[0] not in ignored


def test_packages_of_apt_exist():
    command = ' '.join(rest for name, rest in instructions() if name == 'RUN')
    lists = re.findall(r'apt-get install ([^&|;]*)', command)
    packages = {word for words in lists for word in words.split() if not word.startswith('-')}
    assert packages
    known = set()
    if shutil.which('apt-cache'):
        done = subprocess.run(['apt-cache', 'pkgnames'], capture_output=True, text=True)
        known = set(done.stdout.split())
    if 'bash-completion' not in known:
        pytest.skip('apt has no package lists here')
    assert packages <= known


def test_packages_of_pip_come_from_the_one_list():
    """Run the Dockerfile's own command that prints what pip installs."""
    (command,) = [rest for name, rest in instructions() if 'pip-only' in rest]
    words = re.search(r'python3 scripts/[^|]*', command)[0].split()
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    requirements = done.stdout.split()
    assert all(re.fullmatch(r'[\w-]+==[\w.]+', requirement) for requirement in requirements)
    assert {r.split('==')[0] for r in requirements} >= {'numba', 'rosbags', 'casadi', 'ruff'}


def test_paths_in_the_container_agree():
    text = (DOCKER / 'Dockerfile').read_text()
    workdir = dict(instructions())['WORKDIR']
    assert workdir == '/longreach'
    for path in re.findall(r'/longreach/(docker/[\w.]+)', text):
        assert (ROOT / path).exists()
    assert f'{workdir}/install/setup.bash' in (DOCKER / 'environment.sh').read_text()
    assert f'{workdir}/docker/environment.sh' in (DOCKER / 'entrypoint.sh').read_text()


def test_entrypoint_hands_command_and_exit_code_on(tmp_path):
    environment = tmp_path / 'environment.sh'
    environment.write_text('export SOURCED=yes\n')
    text = (DOCKER / 'entrypoint.sh').read_text()
    script = tmp_path / 'entrypoint.sh'
    script.write_text(text.replace('/longreach/docker/environment.sh', str(environment)))
    command = ['bash', str(script), 'bash', '-c', 'echo "$SOURCED $1"; exit 5', 'name', 'a b']
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (5, 'yes a b\n')


def test_services_share_one_image_that_can_be_built():
    compose = yaml.safe_load((DOCKER / 'compose.yaml').read_text())
    assert set(compose['services']) == {'demo', 'crane', 'shell', 'test'}
    for service in compose['services'].values():
        assert service['image'] == 'longreach:jazzy'
        context = (DOCKER / service['build']['context']).resolve()
        assert context == ROOT
        assert (context / service['build']['dockerfile']).exists()
        assert service['init'] is True
    assert all(
        isinstance(value, str)
        for service in compose['services'].values()
        for value in service.get('environment', {}).values()
    )


def test_services_call_commands_that_exist():
    services = yaml.safe_load((DOCKER / 'compose.yaml').read_text())['services']
    targets = re.findall(r'^(\w+):', (ROOT / 'Makefile').read_text(), re.MULTILINE)
    for service in services.values():
        words = service['command'].split()
        if words[0] == 'make':
            assert words[1] in targets
        elif words[:2] == ['longreach', 'launch']:
            text = (ROOT / 'launch' / f'{words[2]}.launch.xml').read_text()
            for word in words[3:]:
                assert f'<arg name="{word.partition(":=")[0]}"' in text
        else:
            assert words[0] in ('longreach', 'bash')
