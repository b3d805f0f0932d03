"""Lines of OLMES (oe-eval) files: predictions and requests, decoded only as far as the panel needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from benchwright.logs.item_texts import ItemTexts
from benchwright.logs.log_file import LogFile, parse_json
from benchwright.logs.record import MemorySink, Run, Sink, text_hash
from benchwright.logs.score_values import text_or_none

UNCONDITIONAL = 1_000_000  # added to doc_id where the request asks for the choice without its question


class Output(msgspec.Struct):
    """What the model gave to one request, as far as the panel needs it."""

    sum_logits: Any = None
    num_chars: Any = None
    num_bytes: Any = None
    num_tokens: Any = None


class Prediction(msgspec.Struct):
    doc_id: Any = None
    native_id: Any = None
    metrics: Any = None
    model_output: list[Output] = []
    label: Any = None
    task_hash: Any = None
    model_hash: Any = None


class Request(msgspec.Struct):
    doc_id: Any = None
    task_name: Any = None
    doc: Any = None


PREDICTION = msgspec.json.Decoder(Prediction)
REQUEST = msgspec.json.Decoder(Request)


def item_hashes(file: LogFile, sink: Sink) -> dict[str, str]:
    """Return the hash of each item's text by doc_id, without the unconditional requests."""
    hashes: dict[str, str] = {}
    raised: list[tuple[int, str]] = []
    for line, content in file.lines(sink.options.max_line, on_fault(sink, file)):
        request = decoded(content, REQUEST, Request, file, line, sink)
        if request is None:
            continue
        doc_id = text_or_none(request.doc_id)
        if doc_id is None or not isinstance(request.doc, dict):
            column = "doc_id" if doc_id is None else "doc"
            sink.fault(file.name, f"has no {column}", line=line, column=column)
        elif doc_id not in hashes:
            hashes[doc_id] = text_hash(*_texts(request.doc))
            if isinstance(request.doc_id, int) and request.doc_id >= UNCONDITIONAL:
                raised.append((request.doc_id - UNCONDITIONAL, doc_id))
    for below, doc_id in raised:
        if str(below) in hashes:
            del hashes[doc_id]
    return hashes


def put_texts(file: LogFile, hashes: dict[str, str], run: Run, task: str, sink: Sink) -> None:
    """Put the texts that ``hashes`` was made of into the sink, where texts are kept: a second pass over requests."""
    texts = ItemTexts(run, task, sink)
    if not texts.kept:
        return
    quiet = MemorySink(sink.options)  # the first pass has told the faults
    seen: set[str] = set()
    for line, content in file.lines(sink.options.max_line, on_fault(quiet, file)):
        request = decoded(content, REQUEST, Request, file, line, quiet)
        doc_id = None if request is None else text_or_none(request.doc_id)
        if doc_id is None or doc_id in seen or doc_id not in hashes or not isinstance(request.doc, dict):
            continue
        found = _texts(request.doc)
        if text_hash(*found) == hashes[doc_id]:
            seen.add(doc_id)
            texts.add(doc_id, hashes[doc_id], found)
    texts.put()


def _texts(doc: dict[str, Any]) -> list[str]:
    """Return question and choices of an item; all its texts where it names neither."""
    question = next((doc[name] for name in ("query", "question") if isinstance(doc.get(name), str)), None)
    choices = doc.get("choices")
    if question is None:
        return [f"{name}={doc[name]}" for name in sorted(map(str, doc)) if isinstance(doc.get(name), str)]
    return [question, *(one for one in (choices if isinstance(choices, list) else ()) if isinstance(one, str))]


def decoded(content: bytes, decoder: Any, kind: Any, file: LogFile, line: int, sink: Sink) -> Any:
    """Decode a line; one with NaN tokens or odd types is read the slow way; None and a fault where it is no record."""
    try:
        return decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        record = parse_json(content)
    except ValueError as error:
        sink.fault(file.name, str(error), line=line)
        return None
    if not isinstance(record, dict):
        sink.fault(file.name, "is no JSON object", line=line)
        return None
    known = {name: record[name] for name in kind.__struct_fields__ if name in record}
    if kind is Prediction:
        outputs = known.get("model_output")
        known["model_output"] = [
            Output(*(one.get(name) for name in Output.__struct_fields__)) if isinstance(one, dict) else Output()
            for one in (outputs if isinstance(outputs, list) else ())
        ]
    return kind(**known)


def on_fault(sink: Sink, file: LogFile) -> Callable[[int, str], None]:
    """Return what reports a fault of a line."""
    return lambda line, reason: sink.fault(file.name, reason, line=line)
