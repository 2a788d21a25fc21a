"""
Make the pictures of README.md and docs/ again; called by ``make pictures``.

The commands are read from the pages: each ``longreach ... docs/pictures/NAME`` between backquotes,
and each line of an indented block of commands that names a picture.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = 'docs/pictures/'
# Directory for intermediate files of these commands; emptied before they run.
SCRATCH = 'out/pictures_of_docs'


def commands(root: Path) -> Iterator[list[str]]:
    """Yield the commands of all pages as words, each once, in order of appearance."""
    seen = set()
    for page in (root / 'README.md', *sorted((root / 'docs').glob('*.md'))):
        text = page.read_text(encoding='utf-8')
        blocks = re.findall(r'(?:^    \S.*\n)+', text, re.MULTILINE)
        lines = [line for block in blocks if PICTURE in block for line in block.splitlines()]
        lines += [found for found in re.findall(r'`(longreach [^`]*)`', text) if PICTURE in found]
        for line in map(str.strip, lines):
            if line not in seen:
                seen.add(line)
                yield shlex.split(line, comments=True)


def main() -> int:
    """Run the commands of the pages and return the exit code of the first that fails, or 0."""
    (ROOT / PICTURE).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(ROOT / SCRATCH, ignore_errors=True)
    for words in commands(ROOT):
        print(shlex.join(words), flush=True)
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            print(done.stdout + done.stderr, file=sys.stderr)
            return done.returncode
    print(f'{PICTURE} is up to date')
    return 0


if __name__ == '__main__':
    sys.exit(main())
