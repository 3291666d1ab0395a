# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables that data frames take without a copy, and pages in notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from . import _native

SHOWN = 10


class Table:
    """A table of columns: `polars.DataFrame(table)`, `pyarrow.table(table)`, `pandas.DataFrame.from_arrow(table)`, and duckdb
    take it through Arrow's C stream. Without any of them, `to_dict()` and iteration give Python values."""

    def __init__(self, batch: _native.Batch) -> None:
        self._batch = batch

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._batch.columns

    def __len__(self) -> int:
        return len(self._batch)

    def __getitem__(self, column: str) -> list[Any]:
        """A column as a list."""
        return self._batch.column(column)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each a dict."""
        columns = self.columns
        step = 1024
        for start in range(0, len(self), step):
            parts = [self._batch.column(name, start, start + step) for name in columns]
            for row in zip(*parts, strict=True):
                yield dict(zip(columns, row, strict=True))

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, each a list."""
        return self._batch.to_dict()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._batch.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._batch.__arrow_c_schema__()

    def _head(self) -> list[list[str]]:
        """The names of the columns, then the first rows; a column that is empty in all of them is left out."""
        columns = [[name, *map(_text, self._batch.column(name, 0, SHOWN))] for name in self.columns]
        shown = [column for column in columns if any(column[1:])] or columns
        return [list(row) for row in zip(*shown, strict=True)]

    def __repr__(self) -> str:
        rows = self._head()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join(lines + [note for note in [self._more()] if note])

    def _more(self) -> str:
        more = len(self) - SHOWN
        return f"... and {more} more rows" if more > 0 else ""

    def _repr_html_(self) -> str:
        def cells(row: list[str], tag: str) -> str:
            return "".join(f"<{tag} style='white-space:nowrap'>{html.escape(text)}</{tag}>" for text in row)

        head, *rows = self._head()
        body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
        return (
            f"<div style='overflow-x:auto'><table><tr>{cells(head, 'th')}</tr>{body}</table></div><p>{self._more()}</p>"
        )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def framed(page: str, height: int = 640) -> str:
    """A page with a style of its own, as a part of a notebook."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" '
        f'style="width:100%;height:{height}px;border:0;resize:vertical;overflow:auto"></iframe>'
    )
