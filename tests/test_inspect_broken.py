"""Inspect logs that are broken, hostile or changed: a clear fault each, and no crash."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from backports import zstd
from backports.zstd import zipfile as zstd_zipfile
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.logs import inspect_values, inspect_zip
from test_inspect_logs import (
    HEADER,
    SAMPLES,
    members,
    public_logs,
    read,
    read_json,
    reasons,
    sample,
    sniffed,
    write,
)


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (HEADER | {"version": 4}, "log format (4) is newer than supported"),
        (HEADER | {"version": "new"}, "version is no number"),
        (HEADER | {"eval": {"task": "t"}}, "names no model"),
        (HEADER | {"eval": {"model": "m", "task": " "}}, "names no task"),
        (HEADER | {"eval": []}, "no `eval` object"),
        (HEADER | {"samples": {"a": 1}}, "`samples` is no list"),
        (HEADER | {"samples": [3]}, "sample 1 is no JSON object"),
        (HEADER | {"samples": [sample(None, 1)]}, "no id"),
        (HEADER | {"samples": [sample(1, 1, epoch=0)]}, "epoch of sample `1`"),
        (HEADER | {"samples": [sample(1, 1, scores=[1])]}, "no dictionary of scorers"),
        (json.dumps(HEADER)[:-40], "is no JSON from line 1"),
        ('{"version": 2, "eval": {"a": ' + "[" * 200_000, "nested too deeply"),
    ],
)
def test_broken_documents(tmp_path: Path, log: Any, reason: str) -> None:
    assert reason in reasons(read_json(tmp_path, log))


def test_a_viewers_list_of_logs_is_passed_over(tmp_path: Path) -> None:
    sink = read_json(tmp_path, {"a.eval": HEADER, "b.eval": HEADER})
    assert sink.faults == []
    assert sink.notes == ["log.json: a list of other logs, passed over"]


def test_one_broken_sample_does_not_stop_the_others(tmp_path: Path) -> None:
    content = members()
    content["samples/b_epoch_1.json"] = b'{"id": "b", "epoch": 1, "scores": {"match": '
    sink = read(write(tmp_path / "log.eval", content))
    assert sink.table("rows")["doc_id"].to_list() == ["a", "c"]
    assert "member `samples/b_epoch_1.json` is no JSON" in reasons(sink)
    assert sink.faults[0].line == 2


def test_names_that_lead_out_and_members_that_repeat(tmp_path: Path) -> None:
    path = write(tmp_path / "log.eval", members())
    names = ("samples/../../x_epoch_1.json", "/samples/y_epoch_1.json", "samples/a_epoch_1.json")
    with zipfile.ZipFile(path, "a") as archive:
        for name in names[:2]:
            archive.writestr(name, json.dumps(sample("a", "I")))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(names[2], json.dumps(sample("a", "I")))
    sink = read(path)
    assert sink.table("rows").filter(doc_id="a")["value"].to_list() == [0.0]
    assert reasons(sink).count("leads out of the archive") == 2
    assert "`samples/a_epoch_1.json` is there more than once" in reasons(sink)
    assert len(sink.table("rows")) == 3


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zstd_zipfile.ZIP_ZSTANDARD])
def test_bombs_are_not_unpacked(tmp_path: Path, method: int) -> None:
    packed = (
        zlib.compress(bytes(70 * 2**20), wbits=-15)
        if method == zipfile.ZIP_DEFLATED
        else zstd.compress(bytes(70 * 2**20))
    )
    path = write(tmp_path / "log.eval", members() | {"samples/z_epoch_1.json": bytes(70 * 2**20)}, method)
    sink = read(path)
    assert "member `samples/z_epoch_1.json` unpacks from" in reasons(sink)
    assert len(sink.table("rows")) == 3
    # the same bytes, declared as 100: no more than that comes out
    small = write(tmp_path / "lies.eval", {"header.json": b"x" * 100}, zipfile.ZIP_STORED)
    lies = _forge(small.read_bytes(), packed, method)
    small.write_bytes(lies)
    assert "more than the 100 bytes it declares" in reasons(read(small))


def _forge(archive: bytes, packed: bytes, method: int) -> bytes:
    """Replace the content of an archive's only member, keeping the size that is declared."""
    name = b"header.json"
    start = 30 + len(name)
    local, table = bytearray(archive[:start]), bytearray(archive[start + 100 :])
    local[8:10] = table[10:12] = struct.pack("<H", method)
    local[18:22] = table[20:24] = struct.pack("<I", len(packed))
    end = table.rindex(b"PK\x05\x06")
    table[end + 16 : end + 20] = struct.pack("<I", start + len(packed))
    return bytes(local) + packed + bytes(table)


def test_archives_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "log.eval", members())
    whole = path.read_bytes()
    for content in (whole[:-200], b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(3), b"\x00" * 50):
        path.write_bytes(content)
        assert sniffed(path)
        assert "zip archive" in reasons(read(path))
    bare = write(path, {"header.json": members()["header.json"]}).read_bytes()
    table = bare.index(b"PK\x01\x02")
    for offset, value, reason in (
        (8, b"\x01\x00", "is encrypted"),
        (10, b"\x0c\x00", "method 12"),
        (16, b"abcd", "checksum"),
    ):
        path.write_bytes(bare[: table + offset] + value + bare[table + offset + len(value) :])
        assert reason in reasons(read(path))
    write(path, {"samples/a_epoch_1.json": b"{}"})
    assert "neither header.json nor" in reasons(read(path))
    monkeypatch.setattr(inspect_zip, "LARGE_ARCHIVE", 1000)
    write(path, {"header.json": bytes(2**20)})
    assert "unpacks from" in reasons(read(path))
    assert "cannot be read" in reasons(read(tmp_path))  # a folder


def test_blocks_are_put_out_as_they_fill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchwright.logs.inspect_rows.BLOCK", 2)
    sink = read_json(tmp_path, HEADER | {"samples": SAMPLES})
    assert sink.table("rows")["doc_id"].to_list() == ["a", "b", "c"]


def test_items_are_told_by_their_text() -> None:
    message = [{"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "image", "image": "i1"}]}]
    other = [{"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "image", "image": "i2"}]}]
    hashes = [inspect_values.item_hash(*item) for item in ((message, None), (other, None), ("q", ["a"]), ("q", None))]
    assert len(set(hashes)) == 4
    assert inspect_values.item_hash(None, None) is None
    assert inspect_values.item_hash([{"role": "user", "content": "q"}], None) == hashes[3]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=400, deadline=2000)
@given(
    place=st.sampled_from(["version", "status", "eval", "results", "samples", "error"]),
    field=st.sampled_from(["id", "epoch", "input", "choices", "scores", "score", "error", "metrics", "scorer", "name"]),
    value=ANYTHING,
    inside=st.sampled_from(["top", "eval", "sample", "score", "results"]),
)
def test_wrong_types_anywhere(
    tmp_path_factory: pytest.TempPathFactory, place: str, field: str, value: Any, inside: str
) -> None:
    log = json.loads(json.dumps(HEADER | {"samples": SAMPLES}))
    target = {
        "top": (log, place),
        "eval": (
            log["eval"],
            {"id": "model", "epoch": "task", "input": "dataset", "choices": "config"}.get(field, "scorers"),
        ),
        "sample": (log["samples"][1], field),
        "score": (log["samples"][1]["scores"]["match"], "value"),
        "results": (log["results"]["scores"][0], field),
    }[inside]
    target[0][target[1]] = value
    path = tmp_path_factory.mktemp("types") / "log.json"
    path.write_text(json.dumps(log))
    sink = read(path)
    assert sink.table("rows")["status"].is_in(["scored", "unscored", "refused", "error", "unreadable"]).all()
    assert set(sink.table("rows").filter(pl.col("value").is_not_null())["status"]) <= {"scored"}


@pytest.mark.slow
@settings(max_examples=400, deadline=5000)
@given(data=st.data())
def test_changed_bytes_of_public_logs(
    shared: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    small = [path for path in public_logs(shared) if path.stat().st_size < 20_000]
    path = data.draw(st.sampled_from(small))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content) - 1) | st.integers(max(0, len(content) - 400), len(content) - 1))
        content[at : at + data.draw(st.integers(1, 4))] = data.draw(st.binary(min_size=1, max_size=4))
    changed = tmp_path_factory.mktemp("bytes") / path.name
    changed.write_bytes(content[: data.draw(st.integers(1, len(content)) | st.just(len(content)))])
    sniffed(changed)
    sink = read(changed)
    assert sink.faults or sink.notes or len(sink.table("rows"))
