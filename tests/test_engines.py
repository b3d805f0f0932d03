"""One panel, three engines: the same rows, the same numbers; what cannot be read or started says so."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from benchwright.errors import DataError, UsageError
from benchwright.estimating import engines
from benchwright.estimating.cells import (
    CELL,
    ITEM,
    KEYS,
    Frame,
    cell_values,
    noise_statistics,
    offered,
    slope_statistics,
    trial_statistics,
)
from benchwright.estimating.engines import ENGINES, Engine, local_files, open_engine
from benchwright.panel.ingest import read_logs
from benchwright.panel.panel import IDENTITY, Panel
from test_cells import agree, exact_cells, exact_noise, exact_slopes, exact_trials

FULL = [
    pytest.param("duckdb", marks=pytest.mark.engines),
    pytest.param("spark", marks=[pytest.mark.engines, pytest.mark.slow]),
]
AXIS = (*ITEM, "axis")


def long_rows(rng: random.Random) -> list[dict[str, Any]]:
    """Two models, three seeds of which one is not told, three checkpoints, of which one has no dose; holes, two
    metrics, means of four trials, repeats, and samples that failed."""
    rows = []
    for model in ("org/a", "org/b"):
        for seed in (0, 1, None):
            for step, dose in ((1, 1e12), (2, 1e12 + 3), (3, None)):
                for item in range(6):
                    if rng.random() < 0.2:
                        continue
                    known: dict[str, Any] = {"model": model, "seed": seed, "step": step, "axis": "size", "dose": dose}
                    known |= {"task": f"t{item % 2}", "item_id": str(item)}
                    rows.append(known | {"metric": "acc", "score": rng.randint(0, 4) / 4, "n_trials": 4})
                    for repeat in range(rng.randint(1, 3)):
                        failed = rng.random() < 0.2
                        score = {"score": None if failed else rng.random()}
                        status = {"status": "error" if failed else "ok", "n_trials": rng.choice([1, 1, 1, 3])}
                        rows.append(known | {"metric": "f1", "repeat": repeat} | score | status)
    return rows


def ingested(folder: Path, *tables: list[dict[str, Any]]) -> Panel:
    (folder / "logs").mkdir(parents=True)
    for place, rows in enumerate(tables):
        lines = (json.dumps({name: value for name, value in row.items() if value is not None}) for row in rows)
        (folder / "logs" / f"{place}.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    read_logs(folder / "logs", folder / "panel")
    return Panel.open(folder / "panel")


@dataclass(frozen=True, slots=True)
class Example:
    """A panel of three logs, one of them a copy that does not count; its exported rows in a folder of odd name."""

    panel: Panel
    exported: Path

    @property
    def rows(self) -> pl.DataFrame:
        return self.panel.rows().collect()

    def tables(self, metric: str) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """The selection of a metric, the checkpoint of each run, and the grid: runs stand on two axes."""
        facts = [name for name in IDENTITY if name != "run_name"]
        chosen = self.rows.filter(metric=metric).select(KEYS).unique()
        runs = chosen.select(facts).unique().sort(facts).with_row_index("run_no")
        selection = chosen.join(runs, on=facts, nulls_equal=True)
        checkpoints = runs.select("run_no", checkpoint=pl.struct("model", "step").rank("dense"))
        sizes = runs.select("run_no", axis=pl.lit("size"), x="dose")
        steps = runs.filter(pl.col("model") == "org/a").select("run_no", axis=pl.lit("step"), x=pl.col("step") * 1.0)
        return selection, checkpoints, pl.concat([sizes, steps])


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    folder = tmp_path_factory.mktemp("engines")
    rows = long_rows(random.Random(7))
    first, second = ([row for row in rows if (row["model"] == "org/a") is own] for own in (True, False))
    panel = ingested(folder, first, second, second)
    assert not panel.cells()["active"].all()
    panel.export("rows", folder / "rows.parquet")
    exported = folder / "rows [1] {x}" / "of b" / "rows 0.parquet"
    exported.parent.mkdir(parents=True)
    (folder / "rows.parquet").rename(exported)
    return Example(panel, exported)


@pytest.fixture(scope="module", params=["polars", *FULL])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    conf = tmp_path_factory.mktemp("conf")
    (conf / "spark-defaults.conf").write_text("spark.master local[2]\nspark.sql.shuffle.partitions 2\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(conf))
        patch.setenv(
            "SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1"
        )  # half the time: little runs long enough to compile
        with open_engine(request.param) as opened:
            yield opened
    if request.param == "spark":
        assert active_session() is None


def active_session() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def whole_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    return engines.plain(frame).sort("part", "run", "task", "doc_id", "metric", "repeat")


def test_an_engine_gives_the_rows_of_the_panel(engine: Engine, example: Example) -> None:
    rows = engine.panel_rows(example.panel)
    assert rows.collect_schema().names() == list(engines.COLUMNS)
    assert_frame_equal(whole_numbers(engine.collect(rows)), whole_numbers(example.rows))


def sources(example: Example) -> list[Path | str]:
    file = example.exported
    return [file, file.parent.parent, file.as_uri(), f"{file.parent.parent.parent}/rows ?1? *x*/*/*.parquet"]


@pytest.mark.parametrize("kind", range(4))
def test_an_engine_reads_exported_rows_from_a_file_folder_uri_or_pattern(
    engine: Engine, example: Example, kind: int
) -> None:
    rows = engine.parquet_rows(sources(example)[kind])
    assert_frame_equal(whole_numbers(engine.collect(rows)), whole_numbers(example.rows), check_column_order=False)


@pytest.mark.parametrize("metric", ["acc", "f1"])
def test_statistics_are_the_same_on_all_engines(engine: Engine, example: Example, metric: str) -> None:
    selection, checkpoints, grid = example.tables(metric)
    rows = example.rows.to_dicts()
    from_panel = metric == "acc"
    frame = engine.panel_rows(example.panel) if from_panel else engine.parquet_rows(example.exported)
    cells = engine.keep(cell_values(frame, engine.table(selection)))
    on_runs, on_grid = engine.table(checkpoints), engine.table(grid)
    found = {
        CELL: engine.collect(cells),
        ITEM: engine.collect(noise_statistics(cells, on_runs)),
        ("trials",): engine.collect(trial_statistics(cells, on_runs)),
        AXIS: engine.collect(slope_statistics(cells, on_grid)),
        KEYS: engine.collect(offered(frame)),
    }
    cells_seen = found[CELL].to_dicts()
    assert found[CELL].height > 50
    agree(found[CELL], exact_cells(rows, selection.to_dicts()), CELL)
    agree(found[ITEM], exact_noise(cells_seen, checkpoints.to_dicts()), ITEM)
    agree(found["trials",], exact_trials(cells_seen, checkpoints.to_dicts()), ITEM)
    lines = exact_slopes(cells_seen, grid.to_dicts())
    agree(found[AXIS], lines, AXIS, 1e-3)  # the intercepts at doses of 1e12
    agree(found[AXIS].drop("intercept"), [{n: v for n, v in line.items() if n != "intercept"} for line in lines], AXIS)
    with open_engine("polars") as polars:
        frame = polars.panel_rows(example.panel)
        cells = cell_values(frame, polars.table(selection))
        here = (polars.table(checkpoints), polars.table(grid))
        expected: dict[Any, Frame] = {
            CELL: cells,
            ITEM: noise_statistics(cells, here[0]),
            ("trials",): trial_statistics(cells, here[0]),
            AXIS: slope_statistics(cells, here[1]),
            KEYS: offered(frame),
        }
        for key, table in expected.items():
            here_found = polars.collect(table)
            assert found[key].schema == here_found.schema
            agree(found[key], here_found.to_dicts(), ITEM if key == ("trials",) else key, 1e-15, 1e-12)


def test_a_kept_frame_and_a_table_of_odd_types(engine: Engine) -> None:
    frame = pl.DataFrame(
        {"n": [1, None], "x": [0.5, None], "b": [True, None], "word": ["a'\"\\", None], "nothing": [None, None]},
        schema_overrides={"n": pl.UInt8, "x": pl.Float32},
    ).with_columns(kind=pl.col("word").cast(pl.Categorical))
    kept = engine.keep(engine.table(frame))
    assert_frame_equal(engine.collect(kept).sort("n"), engines.plain(frame).sort("n"))
    empty = engine.collect(engine.table(frame.clear()))
    assert_frame_equal(empty, engines.plain(frame.clear()))


def test_equal_values_have_no_spread_exactly(engine: Engine) -> None:
    cells = pl.DataFrame({"run_no": range(17), "task": "t", "doc_id": "1", "value": 0.1})
    runs = pl.DataFrame({"run_no": range(17), "checkpoint": 1})
    found = engine.collect(noise_statistics(engine.table(cells), engine.table(runs)))
    assert found["sigma2"].to_list() == [0.0]


def test_a_panel_without_item_rows(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "t.csv").write_text("model,task,score\nm,t1,0.5\nm,t2,0.25\n")
    read_logs(tmp_path / "logs", tmp_path / "panel")
    panel = Panel.open(tmp_path / "panel")
    rows = engine.panel_rows(panel)
    assert rows.collect_schema().names() == list(engines.COLUMNS)
    assert engine.collect(offered(rows)).height == 0


def test_items_that_a_run_has_twice(engine: Engine, tmp_path: Path) -> None:
    row = {"model": "m", "task": "t", "item_id": "1", "metric": "acc"}
    panel = ingested(tmp_path, [row | {"score": 1.0}, row | {"score": 0.0}])
    if engine.name == "polars":
        assert engine.collect(engine.panel_rows(panel))["value"].to_list() == [0.0]
    else:
        with pytest.raises(DataError, match="twice in one run") as raised:
            engine.panel_rows(panel)
        assert "polars" in str(raised.value.hint)


def test_what_cannot_be_read_says_so(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not at all")
    pl.DataFrame({"task": ["t"], "value": [1.0]}).write_parquet(tmp_path / "other.parquet")
    for name in ("nothing.parquet", "nothing", "empty", "broken.parquet"):
        with pytest.raises(UsageError, match=name):
            engine.parquet_rows(tmp_path / name)
    with pytest.raises(UsageError, match="no Parquet file at file:"):
        engine.parquet_rows((tmp_path / "nothing.parquet").as_uri())
    with pytest.raises(UsageError, match="cannot read nosuch://"):
        engine.parquet_rows("nosuch://place/rows.parquet")
    with pytest.raises(UsageError, match=r"lacks the columns model, .*doc_id") as raised:
        engine.parquet_rows(tmp_path / "other.parquet")
    assert "panel export" in str(raised.value.hint)


def test_where_local_files_are(tmp_path: Path) -> None:
    names = ["a.parquet", "b/c d.parquet", "b/x.txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    both = [tmp_path / name for name in names[:2]]
    for folder in (str(tmp_path), tmp_path.as_uri(), f"file:{tmp_path}", f"file://localhost{tmp_path}"):
        assert local_files(folder) == both
    assert local_files(both[1].as_uri()) == both[1:]
    assert local_files(f"{tmp_path}/*.parquet") == both[:1]
    assert local_files(f"{tmp_path}/**/*.parquet") == both
    assert local_files("s3://bucket/rows") is None


def test_the_names_of_engines() -> None:
    assert list(ENGINES) == ["polars", "duckdb", "spark"]
    with pytest.raises(UsageError, match="`engine` must be one of polars, duckdb, spark, got 'dask'"):
        open_engine("dask")


@pytest.mark.parametrize(("name", "module"), [("duckdb", "duckdb"), ("spark", "pyspark.sql")])
def test_a_missing_library_is_told(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=f"the {name} engine needs {module.split('.')[0]}") as raised:
        open_engine(name)
    assert raised.value.hint == f"pip install 'benchwright[{name}]'"


def test_an_import_loads_no_engine() -> None:
    code = (
        "import sys, benchwright; print([m for m in ('duckdb', 'pyspark', 'narwhals', 'polars') if m in sys.modules])"
    )
    code += "; import benchwright.estimating.engines; print([m for m in ('duckdb', 'pyspark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


@pytest.mark.parametrize("engine", FULL[1:], indirect=True)
def test_a_new_spark_session_keeps_to_itself_and_takes_what_the_user_sets(engine: Engine) -> None:
    context = active_session().sparkContext
    names = ("driver.host", "driver.bindAddress", "ui.enabled", "sql.session.timeZone", "sql.shuffle.partitions")
    found = [context.getConf().get(f"spark.{name}") for name in names]
    assert [context.master, *found] == ["local[2]", "127.0.0.1", "127.0.0.1", "false", "UTC", "2"]


@pytest.mark.parametrize("engine", FULL[1:], indirect=True)
def test_an_active_spark_session_is_used_and_left_running(engine: Engine) -> None:
    session = active_session()
    with open_engine("spark") as second:
        kept = second.keep(second.table(pl.DataFrame({"n": [1]})))
        assert second.collect(kept).rows() == [(1,)]
        assert active_session() is session
    assert not kept.to_native().is_cached
    assert session.range(3).count() == 3


@pytest.mark.engines
def test_spark_without_java(tmp_path: Path) -> None:
    code = """
from benchwright.estimating.engines import open_engine
try:
    open_engine("spark")
except ValueError as error:
    print(error)
"""
    where = os.environ | {"JAVA_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=where, check=True)
    assert "Spark does not start" in done.stdout
    assert "Hint: it needs Java" in done.stdout
