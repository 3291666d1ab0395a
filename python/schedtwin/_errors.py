# SPDX-License-Identifier: GPL-2.0-or-later
"""What can go wrong."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CrashWarning", "Error", "Fault", "InputError", "PolicyError"]


class Error(Exception):
    """Something that schedtwin refuses, or that failed."""


class Fault(NamedTuple):
    """One fault: what is wrong, where, and what to do."""

    file: str
    """The file, or `<command line>` for a name."""
    line: int | None
    """The line, from 1; None: the fault is of the whole file."""
    column: int | None
    """The column, in characters, from 1."""
    message: str
    help: str | None


class InputError(Error, ValueError):
    """Names, settings, files or selectors are wrong: all faults at once, each with its place in `faults`."""

    faults: list[Fault]

    def __init__(
        self,
        text: str,
        faults: list[tuple[str, int | None, int | None, str, str | None]],
    ) -> None:
        super().__init__(text, faults)
        self.faults = [Fault(*fault) for fault in faults]
        self._text = text

    def __str__(self) -> str:
        return "\n" + self._text if "\n" in self._text else self._text


class PolicyError(Error):
    """A policy written in Python raised something, or returned what is no decision. The exception itself is its `__cause__`."""

    policy: str
    """The class of the policy."""
    method: str
    """The method that was called."""

    def __init__(self, policy: str, method: str, what: str) -> None:
        super().__init__(policy, method, what)
        self.policy, self.method, self._what = policy, method, what

    def __str__(self) -> str:
        return f"{self.policy}.{self.method}: {self._what}"


class CrashWarning(UserWarning):
    """A run panicked and counts in no number: a bug of schedtwin."""
