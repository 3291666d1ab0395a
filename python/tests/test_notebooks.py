# SPDX-License-Identifier: GPL-2.0-or-later
"""Notebooks run from the first cell to the last, and show their tables and pictures."""

from __future__ import annotations

import pathlib

import pytest

NOTEBOOKS = pathlib.Path(__file__).parent.parent.parent / "docs/notebooks"


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook(path: pathlib.Path) -> None:
    for module in ("nbclient", "nbformat", "ipykernel", "polars", "matplotlib"):
        pytest.importorskip(module)
    import nbclient
    import nbformat

    book = nbformat.read(path, as_version=4)
    assert len(book.cells) == 20
    assert all(not cell.get("outputs") for cell in book.cells), "the repository has it without outputs"
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    kinds = [kind for cell in book.cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
    assert kinds.count("image/png") >= 2 and kinds.count("text/html") >= 4
