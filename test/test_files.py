"""Files of the tree: each can be read by what reads it, and nothing points to nowhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
MADE = {'.git', '.venv', 'build', 'install', 'log', 'out'}
LARGEST = 400 * 1024


def tree(*suffixes):
    """Return the tree's own files with one of the suffixes."""
    found = []
    for directory, directories, files in os.walk(ROOT):
        if Path(directory) == ROOT:
            directories[:] = [d for d in directories if d not in MADE]
        directories[:] = [d for d in directories if not d.startswith(('.', '__'))]
        found += [Path(directory) / name for name in files if name.endswith(suffixes)]
    return sorted(found)


def label(path):
    return str(path.relative_to(ROOT))


YAML = tree('.yaml', '.yml', '.rviz')
VIEWS = tree('.rviz')
MARKDOWN = tree('.md')


def test_there_are_files_of_each_kind():
    assert all((YAML, VIEWS, MARKDOWN))


@pytest.mark.parametrize('path', YAML, ids=label)
def test_yaml_can_be_read(path):
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def entries(tree, name):
    """Yield the values of all keys of some name."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == name:
                yield value
            yield from entries(value, name)
    elif isinstance(tree, list):
        for item in tree:
            yield from entries(item, name)


@pytest.mark.parametrize('path', VIEWS, ids=label)
def test_a_view_works_in_any_namespace_and_leaves_room_for_the_machine(path):
    view = yaml.safe_load(path.read_text())
    # The Time panel docks left with a width of 1000 pixels.
    assert [panel['Class'] for panel in view['Panels']] == ['rviz_common/Displays']
    geometry = view['Window Geometry']
    assert (geometry['Width'], geometry['Height']) == (1200, 800)
    # RViz reads these into a variable that it does not set otherwise.
    assert (geometry['Hide Left Dock'], geometry['Hide Right Dock']) == (False, False)
    manager = view['Visualization Manager']
    topics = [
        d[k]['Value']
        for d in manager['Displays']
        for k in ('Topic', 'Description Topic')
        if k in d
    ]
    assert 'robot_description' in topics
    assert not [topic for topic in topics if topic.startswith('/')]
    frames = [*entries(view, 'Reference Frame'), *entries(view, 'Target Frame')]
    assert frames
    assert set(frames) == {'<Fixed Frame>'}
    assert set(entries(view, 'TF Prefix')) == {''}


def anchors(path):
    """Return the anchors that a page's headings have on the web."""
    outside = re.sub(r'^```.*?^```', '', path.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r'^#+ +(.*)$', outside, re.MULTILINE)
    plain = [re.sub(r'[^\w\- ]', '', heading.strip().lower()) for heading in headings]
    return {heading.replace(' ', '-') for heading in plain}


def links(path):
    """Return the targets of a page's links and pictures within the tree."""
    text = re.sub(r'^```.*?^```', '', path.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r'`[^`\n]*`', '', text)
    found = re.findall(r'\]\(\s*<?([^)\s>]+)', text)
    found += re.findall(r'(?:src|href)="([^"]+)"', text)
    return [link for link in found if not re.match(r'[a-z]+:', link)]


@pytest.mark.parametrize('path', MARKDOWN, ids=label)
def test_links_of_pages_lead_somewhere(path):
    for link in links(path):
        name, _, anchor = link.partition('#')
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f'{label(path)} links to {link}'
        assert target.is_relative_to(ROOT)
        if anchor and target.suffix == '.md':
            assert anchor in anchors(target), f'{label(path)} links to {link}'


def tracked():
    git = shutil.which('git')
    done = git and subprocess.run(
        [git, 'ls-files', '-z'], cwd=ROOT, capture_output=True, text=True
    )
    if not done or done.returncode:
        pytest.skip('not a git checkout')
    return [ROOT / name for name in done.stdout.split('\0') if name and (ROOT / name).exists()]


def test_no_file_is_large():
    large = {label(path): path.stat().st_size for path in tracked()}
    assert large
    large = {name: size for name, size in large.items() if size > LARGEST}
    assert not large


def test_nothing_that_was_made_is_tracked():
    made = [
        label(path)
        for path in tracked()
        if path.relative_to(ROOT).parts[0] in MADE or '__pycache__' in path.parts
    ]
    assert not made


@pytest.mark.parametrize('name', ['.ci/run', 'docker/entrypoint.sh'])
def test_programs_can_be_executed(name):
    assert os.access(ROOT / name, os.X_OK)
    assert (ROOT / name).read_text().startswith('#!/usr/bin/env bash\n')
