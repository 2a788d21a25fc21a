"""
Equations of motion of N flexible links in a vertical plane, Yu and Chen (2019), corrected.

``links``            files of links and states; which quantities stay symbols
``basis``            the functions that describe deflections, and their integrals
``equations``        the equations, and the reduced form of them
``trace``            the form of the paper, with traces of 3 x 3 matrices
``code``, ``latex``  the equations as Python, numba, C, CasADi, JSON, LaTeX, Markdown
``generated``        the equations as functions: evaluation, compiled code that is kept in files
``commands``         the command ``longreach symbolic``
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
