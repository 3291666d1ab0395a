# SPDX-License-Identifier: GPL-2.0-or-later
"""A bar in a terminal or a notebook, for work that takes more than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeAlias

Told: TypeAlias = Callable[[int, int, float], None]
ProgressLike: TypeAlias = bool | Told | None

APPEARS_AFTER_S = 1.0
WIDTH = 40


class Progress:
    """Tells how far runs are: with `True` or `None` where somebody watches, with `False` nobody, else by calling it."""

    def __init__(self, wanted: ProgressLike) -> None:
        self._started = time.monotonic()
        self._shown = False
        self._handle: Any = None
        self.told: Told | None
        if callable(wanted):
            self.told = wanted
        elif wanted is False:
            self.told = None
        elif _in_notebook():
            self.told = self._notebook
        elif sys.stderr is not None and sys.stderr.isatty():
            self.told = self._terminal
        else:
            self.told = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown and self._handle is None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        elif self._handle is not None:
            self._handle.update(_Html(""))

    def _message(self, done: int, expected: int, fraction: float) -> str | None:
        elapsed = time.monotonic() - self._started
        if elapsed < APPEARS_AFTER_S:
            return None
        eta = f"{elapsed * (1 - fraction) / fraction:.0f}s" if fraction > 0.001 else "unknown"
        return f"{100 * fraction:3.0f}%  {done}/{expected} runs  ETA {eta}"

    def _terminal(self, done: int, expected: int, fraction: float) -> None:
        message = self._message(done, expected, fraction)
        if message is not None:
            filled = round(WIDTH * fraction)
            sys.stderr.write(f"\r\x1b[K{'█' * filled}{'░' * (WIDTH - filled)} {message}")
            sys.stderr.flush()
            self._shown = True

    def _notebook(self, done: int, expected: int, fraction: float) -> None:
        message = self._message(done, expected, fraction)
        if message is None:
            return
        bar = _Html(f'<progress max="1" value="{fraction:.4f}"></progress> {message}')
        if self._handle is None:
            display: Any = sys.modules["IPython"].display.display
            self._handle = display(bar, display_id=True)
        else:
            self._handle.update(bar)


class _Html:
    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
