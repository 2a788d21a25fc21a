"""What contributors use: hooks, workflow, citation and guide name what exists."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
TARGETS = set(re.findall(r'^([a-z-]+):', (ROOT / 'Makefile').read_text(), re.MULTILINE))


def read(name):
    return yaml.safe_load((ROOT / name).read_text())


def check_command(words):
    if words[0] == 'make':
        assert set(words[1:]) <= TARGETS, words
    elif words[0].startswith('python3'):
        assert (ROOT / words[1]).is_file(), words
    elif words[0].startswith('.'):
        assert (ROOT / words[0]).is_file(), words


def test_hooks_run_tools_that_are_here():
    (repository,) = read('.pre-commit-config.yaml')['repos']
    # Hooks of other repositories would be fetched, and their versions differ from the lock's.
    assert repository['repo'] == 'local'
    for hook in repository['hooks']:
        assert hook['language'] == 'system'
        words = shlex.split(hook['entry'])
        check_command(words)
        if '--' in words:
            tool, action = words[words.index('--') + 1 :][:2]
            done = subprocess.run([tool, action, '--help'], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert '--force-exclude' in done.stdout


def steps():
    jobs = read('.github/workflows/ci.yml')['jobs']
    assert set(jobs) == {'bare', 'jazzy'}
    return [step for job in jobs.values() for step in job['steps']]


@pytest.mark.parametrize('script', [step['run'] for step in steps() if 'run' in step])
def test_scripts_of_the_workflow_name_what_exists(script):
    done = subprocess.run(['bash', '-n', '-c', script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line in re.split(r'\n|&&', script.replace('\\\n', ' ')):
        words = line.split()
        if words:
            check_command(words)
        for match in re.findall(r'python3 (scripts/\S+)', line):
            assert (ROOT / match).is_file()
        if match := re.search(r'ros2 launch longreach_bringup (\S+)(.*)', line):
            tree = ElementTree.parse(ROOT / 'launch' / match[1])
            known = {argument.get('name') for argument in tree.getroot().iter('arg')}
            assert set(re.findall(r'(\w+):=', match[2])) <= known


def test_the_citation_has_what_its_format_wants():
    citation = read('CITATION.cff')
    assert {'cff-version', 'message', 'title', 'authors'} <= set(citation)
    manifest = ElementTree.parse(ROOT / 'src/longreach_crane/package.xml').getroot()
    assert citation['version'] == manifest.findtext('version')
    assert citation['license'] == manifest.findtext('license')


def test_the_guide_names_targets_that_exist():
    text = (ROOT / 'CONTRIBUTING.md').read_text()
    assert {'lint', 'setup', 'test', 'test-all'} <= (
        named := set(re.findall(r'(?:`|^ +)make ([a-z-]+)', text, re.MULTILINE))
    )
    assert named <= TARGETS
