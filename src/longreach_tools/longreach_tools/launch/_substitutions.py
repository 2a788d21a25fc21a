r"""
Substitutions in launch files: their syntax.

``$(name argument ...)`` may stand anywhere in an attribute. Arguments are separated by one space.
An argument with spaces, parentheses or quotes is put in single or double quotes, inside which
further substitutions are replaced; inside these, quotes are ordinary characters. A backslash
takes the next character as it stands, so ``\$(`` is no substitution. Outside of a substitution
quotes have no meaning and stay.
"""

from __future__ import annotations

import re

from ._model import Call, Template

__all__ = ['SubstitutionError', 'parse_template', 'remove_escapes']

_NAME = re.compile(r'[A-Za-z][A-Za-z0-9_-]*')
_ESCAPE = re.compile(r'\\(.)', re.DOTALL)


class SubstitutionError(ValueError):
    """A substitution cannot be read or has no value; the reader of the file adds the place."""


def remove_escapes(text: str) -> str:
    """Return a literal text without the backslashes that protect characters."""
    return _ESCAPE.sub(r'\1', text)


def parse_template(text: str) -> Template:
    """Return the pieces of a text with substitutions."""
    parser = _Parser(text)
    parts = parser.pieces(stop='')
    return Template(text, parts)


class _Parser:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def peek(self, length: int = 1) -> str:
        """Return the next characters without taking them."""
        return self.text[self.position : self.position + length]

    def pieces(self, stop: str, refuse: str = '', quote: str = '') -> tuple[str | Call, ...]:
        """
        Read literal text and calls up to a character of ``stop`` or to the end.

        ``refuse`` are characters that must be escaped here, ``quote`` is the quote around.
        """
        parts: list[str | Call] = []
        literal: list[str] = []
        while self.position < len(self.text) and self.peek() not in tuple(stop):
            if self.peek(2) == '$(':
                if literal:
                    parts.append(''.join(literal))
                    literal.clear()
                parts.append(self.call(quote))
                continue
            character = self.peek()
            if character in refuse:
                raise SubstitutionError(
                    f'{character!r} at column {self.position + 1} inside a substitution; '
                    'put the argument in quotes or a backslash before the character'
                )
            if character == '\\' and self.position + 1 < len(self.text):
                self.position += 1
                character = self.peek()
            literal.append(character)
            self.position += 1
        if literal:
            parts.append(''.join(literal))
        return tuple(parts)

    def call(self, quote: str) -> Call:
        """Read ``$(name argument ...)``."""
        start = self.position
        self.position += 2
        match = _NAME.match(self.text, self.position)
        if match is None:
            raise SubstitutionError(f'no name after "$(" at column {start + 1}')
        self.position = match.end()
        arguments: list[Template] = []
        while self.peek() == ' ':
            self.position += 1
            arguments.append(self.argument(quote))
        if self.peek() != ')':
            found = f'{self.peek()!r} at column {self.position + 1}' if self.peek() else 'the end'
            raise SubstitutionError(
                f'"$({match.group()}" at column {start + 1} is not closed: expected ")", '
                f'found {found}'
            )
        self.position += 1
        return Call(match.group(), tuple(arguments))

    def argument(self, quote: str) -> Template:
        """Read one argument, quoted or not; inside of quotes there is no second level."""
        start = self.position
        mark = self.peek()
        if not quote and mark and mark in '\'"':
            self.position += 1
            parts = self.pieces(stop=mark, quote=mark)
            if self.peek() != mark:
                raise SubstitutionError(f'the quote {mark} at column {start + 1} is not closed')
            self.position += 1
            return Template(self.text[start + 1 : self.position - 1], parts)
        parts = self.pieces(stop=' )', refuse='(' + (quote or '\'"'), quote=quote)
        if not parts:
            raise SubstitutionError(
                f'empty argument at column {start + 1}; arguments are separated by one space'
            )
        return Template(self.text[start : self.position], parts)
