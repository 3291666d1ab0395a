# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables reach data frames through Arrow's C stream, and hold what Python sees."""

from __future__ import annotations

import math
from typing import Any

import pytest

import schedtwin as st


@pytest.fixture(scope="module")
def runs() -> st.Table:
    return st.compare("pixel6", "w1", "linux-7.3:hz={250,1000}", seeds=2, duration="20ms", progress=False).runs


def same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(x == y or (x is None and (y is None or math.isnan(y))) for x, y in zip(a, b, strict=True))


def test_python_alone(runs: st.Table) -> None:
    rows = list(runs)
    assert len(rows) == len(runs) and list(rows[0]) == runs.columns
    assert runs.to_dict()["seed"] == [row["seed"] for row in rows]


def test_polars(runs: st.Table) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(runs)
    assert frame.shape == (len(runs), len(runs.columns))
    assert same(runs["value"], frame["value"].to_list()) and same(runs["metric"], frame["metric"].to_list())


def test_pyarrow(runs: st.Table) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(runs)
    assert same(runs["label.domain"], table["label.domain"].to_pylist())
    assert pyarrow.schema(runs) == table.schema


def test_pandas(runs: st.Table) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    if not hasattr(pandas.DataFrame, "from_arrow"):
        pytest.skip("pandas 3.0 has from_arrow")
    frame = pandas.DataFrame.from_arrow(runs)
    assert len(frame) == len(runs) and same(runs["value"], frame["value"].tolist())


def test_duckdb(runs: st.Table) -> None:
    duckdb = pytest.importorskip("duckdb")
    measured = runs
    (count,) = duckdb.connect().execute("select count(*) from measured where metric = 'power' and kind = 'one'").fetchone()
    assert count == sum(1 for row in runs if row["metric"] == "power" and row["kind"] == "one")
