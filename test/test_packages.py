"""Packages: what they depend on, what they say they depend on, and how they call themselves."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = sorted(path.parent for path in ROOT.glob('src/*/package.xml'))
PYTHON_PACKAGES = [path for path in PACKAGES if (path / 'setup.py').exists()]
# Module -> rosdep key. ROS packages have their own names.
KEYS = {
    'PIL': 'python3-pil',
    'argcomplete': 'python3-argcomplete',
    'cv2': 'python3-opencv',
    'matplotlib': 'python3-matplotlib',
    'numpy': 'python3-numpy',
    'pytest': 'python3-pytest',
    'scipy': 'python3-scipy',
    'sympy': 'python3-sympy',
    'tqdm': 'python3-tqdm',
    'yaml': 'python3-yaml',
}
# Imported by name, where they are installed.
BY_NAME = {
    'longreach_node': {'control_msgs', 'simulation_interfaces', 'tf2_msgs'},
    'longreach_vision': {'vision_msgs'},
}


def names(paths):
    return [path.name for path in paths]


def load_script(name):
    spec = importlib.util.spec_from_file_location(f'scripts_{name}', ROOT / f'scripts/{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CONTRACTS = load_script('import_contracts')
MACHINES = [path for path in PYTHON_PACKAGES if path.name not in CONTRACTS.SHARED]
WORKSPACE = load_script('workspace')
PIP_ONLY = set(WORKSPACE.PIP_ONLY)
PIP_ONLY_TESTS = set(WORKSPACE.PIP_ONLY_TESTS)
ALL_OF_PIP = WORKSPACE.PIP_ONLY + WORKSPACE.PIP_ONLY_TESTS + WORKSPACE.PIP_ONLY_COMPARISONS


def imports(directory):
    """Return what the files below a directory import beyond Python's standard library."""
    return CONTRACTS.imported(directory) - set(sys.stdlib_module_names)


def manifest(package):
    return ElementTree.parse(package / 'package.xml').getroot()


def declared(package, *tags):
    return {element.text for tag in tags for element in manifest(package).iter(tag)}


def keys(modules):
    return {KEYS.get(module, module) for module in modules}


def setup_keywords(package):
    """Return the constant keywords of the call of setup(), and NAME."""
    tree = ast.parse((package / 'setup.py').read_text())
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    (call,) = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == 'setup']
    values = {k.arg: k.value for k in call.keywords}
    constants = {k: v.value for k, v in values.items() if isinstance(v, ast.Constant)}
    lists = {k: ast.literal_eval(v) for k, v in values.items() if k == 'install_requires'}
    return constants | lists


# --- directions -----------------------------------------------------------------------------


def test_contracts_hold_every_package_and_module():
    by_name = {contract['name']: contract for contract in CONTRACTS.contracts(ROOT)}
    sources = {m for contract in by_name.values() for m in contract['source_modules']}
    assert sources >= set(CONTRACTS.SHARED)
    modules = {m for package in MACHINES for m in CONTRACTS.modules_of(ROOT, package.name)}
    files = [p for package in MACHINES for p in (package / package.name).rglob('*.py')]
    # Generated code is kept beside compiled code.
    files = [p for p in files if '__pycache__' not in p.parts]
    assert len(modules) == len(files) - len(MACHINES)
    assert {m for m in modules - sources if not CONTRACTS.is_of_ros(m)} == set()
    assert 'longreach_vision.simulator.scene' in sources
    assert 'longreach_boom.motion' in sources
    library = by_name['the library of a machine knows neither ROS nor plotting']
    assert {'rclpy', 'std_msgs', 'longreach_msgs', 'matplotlib'} <= set(
        library['forbidden_modules']
    )


@pytest.mark.slow
def test_library_modules_load_neither_ros_nor_plotting():
    (library,) = [c for c in CONTRACTS.contracts(ROOT) if c['name'].startswith('the library')]
    modules = list(library['source_modules'])
    for shared in ('longreach_dynamics', 'longreach_markers'):
        modules += CONTRACTS.modules_of(ROOT, shared)
    forbidden = library['forbidden_modules']
    program = (
        'import importlib, sys\n'
        f'for name in {[m.removesuffix(".__init__") for m in modules]}:\n'
        '    importlib.import_module(name)\n'
        f'    loaded = sys.modules.keys() & set({forbidden})\n'
        '    assert not loaded, f"{name} loads {loaded}"\n'
    )
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- declared dependencies ------------------------------------------------------------------


@pytest.mark.parametrize('package', PYTHON_PACKAGES, ids=names(PYTHON_PACKAGES))
def test_manifest_declares_what_the_package_imports(package):
    used = imports(package / package.name) - {package.name} | BY_NAME.get(package.name, set())
    declared_keys = declared(package, 'exec_depend', 'depend')
    missing = keys(used - PIP_ONLY) - declared_keys
    assert not missing, f'package.xml of {package.name} lacks <exec_depend> of {missing}'
    unused = declared_keys - keys(used)
    assert not unused, f'package.xml of {package.name} has <exec_depend> of {unused}, not imported'


@pytest.mark.parametrize('package', PYTHON_PACKAGES, ids=names(PYTHON_PACKAGES))
def test_manifest_declares_what_the_tests_import(package):
    # Those of longreach_vision also import helpers of longreach_markers.
    local = {path.stem for path in ROOT.glob('src/*/test/*.py')}
    used = imports(package / 'test') - {package.name} - local - PIP_ONLY - PIP_ONLY_TESTS
    known = declared(package, 'exec_depend', 'depend', 'test_depend')
    missing = keys(used) - known
    assert not missing, f'package.xml of {package.name} lacks <test_depend> of {missing}'


def test_bringup_depends_on_what_its_launch_files_start():
    started = {
        node.get('pkg')
        for path in ROOT.glob('launch/*.launch.xml')
        for node in ElementTree.parse(path).getroot().iter('node')
    }
    commands = {
        element.get('cmd').split()[0]
        for path in ROOT.glob('launch/*.launch.xml')
        for element in ElementTree.parse(path).getroot().iter('executable')
    }
    assert commands <= {'longreach'}
    started |= {'longreach_tools'} if commands else set()
    assert started <= declared(ROOT / 'src/longreach_bringup', 'exec_depend')


def test_messages_declare_the_packages_of_their_fields():
    package = ROOT / 'src/longreach_msgs'
    used = {
        match[1]
        for path in package.glob('*/*.*')
        if path.suffix in ('.msg', '.srv', '.action')
        for match in re.finditer(r'^\s*(\w+)/\w+', path.read_text(), re.MULTILINE)
    }
    assert used <= declared(package, 'depend')
    cmake = (package / 'CMakeLists.txt').read_text()
    for name in used:
        assert f'find_package({name} REQUIRED)' in cmake
    listed = set(re.findall(r'^\s*((?:msg|srv|action)/\w+\.\w+)', cmake, re.MULTILINE))
    files = {
        str(path.relative_to(package))
        for path in package.glob('*/*.*')
        if path.suffix in ('.msg', '.srv', '.action')
    }
    assert listed == files


@pytest.mark.parametrize('package', PYTHON_PACKAGES, ids=names(PYTHON_PACKAGES))
def test_setup_requires_what_the_package_imports(package):
    installed = {'PIL': 'pillow', 'cv2': 'opencv-contrib-python-headless', 'yaml': 'pyyaml'}
    ros = declared(package, 'exec_depend', 'depend')
    used = imports(package / package.name) - {package.name}
    wanted = {installed.get(name, name) for name in used if KEYS.get(name, '') in ros}
    wanted |= used & PIP_ONLY
    missing = wanted - set(setup_keywords(package)['install_requires'])
    assert not missing, f'setup.py of {package.name}: install_requires lacks {missing}'


# --- pinned packages ------------------------------------------------------------------------


def normal(name):
    return re.sub(r'[-_.]+', '-', name).lower()


LOCKS = ['requirements', 'comparisons']


def locked(lock='requirements'):
    """Return {package: [versions]} of a lock file."""
    versions = {}
    for name, version in re.findall(
        r'^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)',
        (ROOT / f'{lock}.lock').read_text(),
        re.MULTILINE,
    ):
        versions.setdefault(normal(name), []).append(version)
    return versions


@pytest.mark.parametrize('lock', LOCKS)
def test_lock_has_hashes_for_everything_and_nothing_else(lock):
    text = (ROOT / f'{lock}.lock').read_text()
    blocks = re.split(r'^(?=\S)', text, flags=re.MULTILINE)
    requirements = [block for block in blocks if block.strip() and not block.startswith('#')]
    assert len(requirements) > {'requirements': 50, 'comparisons': 10}[lock]
    for block in requirements:
        first = block.splitlines()[0]
        assert re.match(r'[a-z0-9-]+(\[[\w,-]+\])?==\S+ ', first), first
        assert re.search(r'--hash=sha256:[0-9a-f]{64}', block), first


@pytest.mark.parametrize('lock', LOCKS)
def test_lock_covers_all_requirements(lock):
    wanted = {
        normal(re.match(r'[A-Za-z0-9._-]+', line)[0])
        for line in (ROOT / f'{lock}.in').read_text().splitlines()
        if line.strip() and not line.startswith('#')
    }
    assert len(wanted) > {'requirements': 20, 'comparisons': 3}[lock]
    assert wanted <= locked(lock).keys(), 'run: make lock'
    blocks = WORKSPACE.lock_blocks(ROOT / f'{lock}.lock')
    assert {normal(name) for name in blocks} == locked(lock).keys()


def test_comparisons_change_no_package_that_longreach_runs_with():
    assert not locked('comparisons').keys() & locked().keys(), 'run: make lock'


def test_packages_for_pip_are_in_the_locks():
    packages = {normal(r.partition('==')[0]): r for r in WORKSPACE.requirements(ALL_OF_PIP)}
    known = locked() | locked('comparisons')
    assert packages == {name: f'{name}=={known[name][-1]}' for name in packages}


@pytest.mark.parametrize('module', WORKSPACE.PIP_ONLY_COMPARISONS)
def test_comparisons_that_were_installed_can_be_imported(module):
    """Tests that need one are skipped without it: here it shows that it should be there."""
    if not (WORKSPACE.VENV / 'comparisons.json').exists():
        pytest.skip('without `workspace.py setup --comparisons`')
    done = subprocess.run([sys.executable, '-c', f'import {module}'], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


# --- names ----------------------------------------------------------------------------------


def test_packages_have_one_version_and_the_changelog_begins_with_it():
    versions = {package.name: manifest(package).findtext('version') for package in PACKAGES}
    assert len(set(versions.values())) == 1, versions
    (version,) = set(versions.values())
    changelog = (ROOT / 'CHANGELOG.rst').read_text()
    newest = re.search(r'^(\d+\.\d+\.\d+)\b.*\n[-=~^]{3,}$', changelog, re.MULTILINE)
    assert newest is not None, 'CHANGELOG.rst has no heading with a version'
    assert newest[1] == version


@pytest.mark.parametrize('package', PACKAGES, ids=names(PACKAGES))
def test_manifest_names_package_maintainer_and_licence_and_nothing_twice(package):
    root = manifest(package)
    assert root.get('format') == '3'
    assert root.findtext('name') == package.name
    assert root.find('maintainer').get('email')
    assert root.findtext('license') == 'Apache-2.0'
    assert root.findtext('description').strip()
    depends = [element.text for element in root if element.tag.endswith('depend')]
    assert len(depends) == len(set(depends))


@pytest.mark.parametrize('package', PYTHON_PACKAGES, ids=names(PYTHON_PACKAGES))
def test_setup_says_the_same_as_the_manifest(package):
    root = manifest(package)
    keywords = setup_keywords(package)
    for keyword in ('version', 'description', 'license'):
        assert keywords[keyword] == root.findtext(keyword)
    maintainer = root.find('maintainer')
    assert keywords['maintainer'] == maintainer.text
    assert keywords['maintainer_email'] == maintainer.get('email')
    assert (package / 'resource' / package.name).exists()
    assert (package / package.name / 'py.typed').exists()
    assert f"NAME = '{package.name}'" in (package / 'setup.py').read_text()


# --- what packages export -------------------------------------------------------------------


STUBS = sorted(ROOT.glob('src/*/longreach_*/**/__init__.pyi'))


@pytest.mark.parametrize('stub', STUBS, ids=lambda stub: stub.parent.name)
def test_exported_names_are_documented(stub):
    nodes = [n for n in ast.parse(stub.read_text()).body if isinstance(n, ast.ImportFrom)]
    for module, name in [(n.module, alias.name) for n in nodes for alias in n.names]:
        found = getattr(importlib.import_module(module), name)
        # As an attribute, the module would hide the name, or the name the module.
        assert not (stub.parent / f'{name}.py').exists(), name
        if inspect.isroutine(found) or inspect.isclass(found):
            assert inspect.getdoc(found), f'{module}.{name}'
