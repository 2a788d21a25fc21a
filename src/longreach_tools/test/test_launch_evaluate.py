import os
from pathlib import Path

import pytest
import yaml

from longreach_dynamics.errors import InputError
from longreach_tools.launch import find_launch_file, survey
from longreach_tools.launch._evaluate import ParameterFile, evaluate_launch_file

FILES = Path(__file__).parent / 'launch_files'


@pytest.fixture
def evaluate(prefix):
    environment = {'PATH': os.environ['PATH'], 'AMENT_PREFIX_PATH': str(prefix)}

    def evaluate(file, **arguments):
        path = FILES / f'{file}.launch.xml' if isinstance(file, str) else file
        return evaluate_launch_file(path, arguments, environment)

    return evaluate


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a launch file and returns its path."""

    def write(text):
        path = tmp_path / 'written.launch.xml'
        path.write_text(text)
        return path

    return write


def parameters(process):
    """Return all parameters in the files of a process, the later one wins."""
    found = {}
    for word in process.command:
        if isinstance(word, ParameterFile):
            (content,) = yaml.safe_load(word.text).values()
            found.update(content['ros__parameters'])
    return found


@pytest.mark.parametrize(
    ('file', 'arguments', 'expected'),
    [
        ('arguments', {'needed': 'a'}, ['a a_too fast']),
        ('arguments', {'needed': 'a', 'optional': '', 'mode': 'slow'}, ['a  slow']),
        ('let', {}, ['x=12']),
        ('conditions', {}, ['if']),
        ('conditions', {'on': 'False', 'only_when_off': 'y'}, ['unless', 'off y']),
        # An argument of a part that is left out is known.
        ('conditions', {'only_when_off': 'x'}, ['if']),
        ('groups', {}, ['in scoped: inner', 'after scoped: outer']),
        (
            'include',
            {},
            [
                f'hello arg plain seen in {FILES}',
                f'hello again loud seen in {FILES}',
                f'left behind: yes arg plain in {FILES}',
            ],
        ),
    ],
)
def test_values_and_scopes(evaluate, file, arguments, expected):
    found = [process.command[1:] for process in evaluate(file, **arguments)]
    assert [' '.join(map(str, words)) for words in found] == expected


@pytest.mark.parametrize(
    ('file', 'arguments', 'complaint'),
    [
        ('arguments', {}, r"xml:2: argument 'needed' \(must be given\) is not set; add needed:=V"),
        ('arguments', {'needed': 'a', 'mode': 'x'}, "'mode' is 'x'; allowed: fast, slow"),
        ('arguments', {'need': 'a', 'needed': 'a'}, "no argument 'need'; allowed: mode, needed"),
        # What is unknown is named before what it causes.
        ('arguments', {'need': 'a'}, "no argument 'need'; allowed: mode, needed, optional"),
        ('conditions', {'on': '0'}, r":6: argument 'only_when_off' is not set"),
        ('include_itself', {}, ':3: file: .*include_itself.launch.xml. includes itself'),
    ],
)
def test_refused_arguments(evaluate, file, arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        evaluate(file, **arguments)


def test_namespaces(evaluate):
    remaps = [
        [word for word in process.command if isinstance(word, str) and word.startswith('__')]
        for process in evaluate('namespaces')
    ]
    assert remaps == [
        ['__node:=plain'],
        ['__node:=own', '__ns:=/own'],
        ['__node:=pushed', '__ns:=/a'],
        ['__node:=twice', '__ns:=/a/b/c'],
        ['__node:=absolute', '__ns:=/d'],
    ]


def test_parameters(evaluate):
    (process,) = evaluate('parameters')
    expected = {
        'int': 10,
        'float': 10.0,
        'bool': True,
        'str': 'hello',
        'quoted': '10',
        'ints': [1, 2],
        'var': 10,
        'vars': [10, 11],
        'as_str': '10',
    }
    found = parameters(process)
    assert found == expected
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in expected.items()
    }


def test_processes(evaluate, written, prefix):
    path = written(
        """<launch>
        <let name="two words" value="x y"/>
        <node pkg="demo" exec="talk" args="--one 'two three' $(var 'two words')-z"
              respawn="$(not false)" respawn_delay="0.5" respawn_max_retries="3"/>
        <executable cmd="echo a 'b c'" name="named" output="screen" on_exit="shutdown"/>
        </launch>"""
    )
    node, named = evaluate(path)
    assert node.command == (
        *(str(prefix / 'lib' / 'demo' / 'talk'), '--one', 'two three', 'x y-z'),
        '--ros-args',
    )
    assert (node.name, node.ends_all) == ('talk-1', False)
    assert (node.respawn, node.respawn_delay, node.respawn_max_retries) == (True, 0.5, 3)
    assert named.command == ('echo', 'a', 'b c')
    assert (named.name, named.ends_all) == ('named-2', True)
    assert (named.respawn, named.respawn_max_retries) == (False, -1)


VALUES = '<let name="a" value="b"/><let name="b" value="value of b"/><let name="s p" value="s"/>'


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('plain text', 'plain text'),
        ("it's &quot;quoted&quot;", 'it\'s "quoted"'),
        ('100$ and $x (y)', '100$ and $x (y)'),
        ('&lt;$(var a)-$(var b)&gt;', '<b-value of b>'),
        ('$(var $(var a))', 'value of b'),
        ('$(var &quot;s p&quot;)', 's'),
        ("$(if 1 'x $(var a) (z)')", 'x b (z)'),
        ("$(if 1 &quot;it's&quot;)", "it's"),
        ('$(not true)', 'false'),
        ('$(and TRUE $(not False))', 'true'),
        ('$(or false 0)', 'false'),
        ('$(equals $(var a) b)', 'true'),
        ('$(equals 1.0 1)', 'true'),
        ('$(equals TRUE 1)', 'true'),
        ('$(not $(equals x y))', 'true'),
        ('$(if true first)', 'first'),
        ('$(if 0 first)', ''),
        ("$(command 'echo one two')", 'one two\n'),
        ('$(dirname)', 'DIR'),
        ('$(find-pkg-share demo)/x', 'DIR/prefix/share/demo/x'),
    ],
)
def test_substitution(text, value, evaluate, written, tmp_path):
    path = written(f'<launch>{VALUES}<let name="x" value="{text}"/>{SHOW}</launch>')
    (process,) = evaluate(path)
    assert process.command == ('echo', value.replace('DIR', str(tmp_path)))


SHOW = '<executable cmd="echo $(var x)"/>'


def test_arguments_after_an_include_that_cannot_be_evaluated_are_known(written, tmp_path):
    (tmp_path / 'sub').mkdir()
    (tmp_path / 'sub' / 'b.launch.xml').write_text('<launch><arg name="needed"/></launch>')
    (tmp_path / 'c.launch.xml').write_text('<launch><arg name="foo" default="1"/></launch>')
    files = ('sub/b', 'c')
    includes = [f'<include file="$(dirname)/{file}.launch.xml"/>' for file in files]
    path = written(f'<launch>{"".join(includes)}</launch>')
    assert survey(path, {}, {}).keys() == {'needed', 'foo'}


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('  a   b ', ['a', 'b']),
        ('--x=$(var b) z', ['--x=value of b', 'z']),
        ('$(var a) $(var b)', ['b', 'value of b']),
        ("x $(if 1 '') y", ['x', '', 'y']),
        ("'$(var b) $(var a)'", ['value of b b']),
    ],
)
def test_words_of_a_command_line(text, words, evaluate, written):
    (process,) = evaluate(written(f'<launch>{VALUES}<executable cmd="echo {text}"/></launch>'))
    assert list(process.command[1:]) == words


NODE = '<node pkg="demo" exec="talk"'
INNER = f'<include file="{FILES}/include_inner.launch.xml"/>'


@pytest.mark.parametrize(
    ('body', 'complaint'),
    [
        ('<nodes/>', ':2: <nodes> inside <launch> is not known here .allowed: arg, .*use ros2 l'),
        ('<let name="a" value="b"><arg name="x"/></let>', '<arg> inside <let> .*allowed: none'),
        ('<group scoped="false"/>', "attribute 'scoped' of <group> .*allowed: if, unless"),
        ('<executable cmd="$(find-exec sh)"/>', r':2: cmd=.* \$\(find-exec\) is .*allowed: and'),
        ('<let name="a"/>', "<let> needs the attribute 'value'"),
        ('<executable cmd="echo a" if="1" unless="1"/>', "both 'if' and 'unless'"),
        ('<executable cmd="echo a" if="yes"/>', ':2: if="yes": .* allowed: true, false, 1, 0'),
        ('<executable cmd="$(var x)"/>', r":2: cmd=\"\$\(var x\)\": .* 'x' is not set here"),
        ('text', "text 'text' inside <launch>"),
        ('<include file="/nowhere.launch.xml"/>', ':2: file: there is no launch file'),
        (INNER, "include_inner.launch.xml:2: argument 'who' is not set; add who:=VALUE"),
        (f'<include file="{__file__}"/>', 'is not a launch file in XML; use ros2 launch'),
        ('<node pkg="nothing" exec="talk"/>', ":2: .*package 'nothing' is not found"),
        ('<node pkg="demo" exec="shout"/>', ":2: .*'demo' has no executable 'shout' .*talk"),
        (f'{NODE} name="a-b"/>', "'a-b' is not a node name"),
        (f'{NODE} namespace="1x"/>', "namespace: '/1x' is not a namespace"),
        (f'{NODE} output="paper"/>', "output: 'paper'; allowed: screen, log$"),
        (f'{NODE} respawn_delay="$(var x)"/>', 'respawn_delay=.*; allowed: a number >= 0'),
        (f'{NODE} respawn_delay="-1"/>', 'respawn_delay="-1"; allowed: a number >= 0'),
        (f'{NODE} respawn_max_retries="1.5"/>', 'allowed: a whole number'),
        (f'{NODE} on_exit="restart"/>', 'on_exit="restart"; allowed: shutdown'),
        (f'{NODE}><param name="a" value="1" type="int"/></node>', "'int' of .*allowed: yaml, str"),
        (f'{NODE}><param name="a" value="[1, x]"/></node>', "param 'a': .*no list of one of"),
        ('<executable cmd=""/>', 'cmd is empty'),
        ('<executable cmd="no-such-program"/>', "no executable 'no-such-program' on PATH"),
        ('<push_ros_namespace namespace="a//b"/>', ":2: namespace: '/a//b' is not a namespace"),
        (f'{NODE}><param name="a" value=""/></node>', "param 'a': '' is no bool, int"),
        (f'{NODE}><param name="a" value="@x"/></node>', 'param .*; type="str" makes a text'),
        (f'{NODE}><param name="a" value="\'$(dirname)\'"/></node>', 'quotes beside a substit'),
        (f'{NODE} name="n" namespace="/"/>' * 2, ':2: two nodes have the name /n; give one'),
        ('<executable cmd="a" cmd="b"/>', ':2: not well-formed XML: duplicate attribute'),
        ('<group>', r':3: not well-formed XML: mismatched tag, column \d+'),
    ],
)
def test_refused_file(body, complaint, evaluate, written):
    with pytest.raises(InputError, match=complaint):
        evaluate(written(f'<launch>\n{body}\n</launch>\n'))


@pytest.mark.parametrize(
    ('text', 'complaint'),
    [
        ('$(var a', r"'\$\(var a' is no substitution that is known here: .*use ros2 launch"),
        ('x $(var  a)', r"'\$\(var  a\)' is no substitution"),
        ('$()', r"'\$\(\)' is no substitution"),
        ('$(var x(y)', 'is no substitution .*, arguments with spaces, parentheses or quotes in q'),
        (r'\$(var a)', r"'\\\\b' is no substitution"),
        ('$(var)', r'\$\(var\) got 0 arguments, allowed: 1; one with spaces needs quotes'),
        ('$(if 1)', r'\$\(if\) got 1 arguments, allowed: 2 or 3'),
        ('$(var a b)', r'\$\(var\) got 2 arguments, allowed: 1;'),
        ('$(var c)', "'c' is not set here; set are: a, b, s p$"),
        ("$(var 'a)", 'is no substitution'),
        ("$(var 'a'b)", 'is no substitution'),
        ('$(not maybe)', "'maybe' is neither true nor false"),
        ("$(command 'false')", 'ended with exit code 1'),
        ("$(command 'no-such-program')", 'cannot be run'),
        ("$(command '')", 'cannot be run'),
        ('$(command "sh -c \'echo oh >&2\'")', 'ended with exit code 0: oh'),
        ('$(find-pkg-share nothing)', "package 'nothing' is not found in AMENT_PREFIX_PATH"),
    ],
)
def test_refused_substitution(text, complaint, evaluate, written):
    text = text.replace('&', '&amp;').replace('"', '&quot;').replace('>', '&gt;')
    with pytest.raises(InputError, match=complaint):
        evaluate(written(f'<launch>{VALUES}<let name="x" value="{text}"/></launch>'))


def test_refused_root(evaluate, written, tmp_path):
    with pytest.raises(InputError, match=r':1: <robot> inside <file> is not .*allowed: launch'):
        evaluate(written('<robot/>'))
    with pytest.raises(InputError, match=r':1: not well-formed XML: no element found'):
        evaluate(written(''))
    with pytest.raises(InputError, match='cannot be read: No such file'):
        evaluate(tmp_path / 'none.launch.xml')


def test_launch_file_by_name(prefix, tmp_path):
    environment = {'AMENT_PREFIX_PATH': f'{tmp_path / "other"}'}
    with pytest.raises(InputError, match="package 'longreach_bringup' is not found"):
        find_launch_file('crane', environment)
    environment['AMENT_PREFIX_PATH'] += f'{os.pathsep}{prefix}'
    directory = prefix / 'share' / 'longreach_bringup' / 'launch'
    directory.mkdir(parents=True)
    (directory / 'crane.launch.xml').write_text('<launch/>')
    assert find_launch_file('crane', environment) == directory / 'crane.launch.xml'
    with pytest.raises(
        InputError, match=r'AMENT_PREFIX_PATH is empty; nodes need ROS 2: source install/setup.b'
    ):
        find_launch_file('crane', {})
