"""Item texts on their way to the sink, in blocks: only where the user asked to keep them."""

from __future__ import annotations

from collections.abc import Iterable

from benchwright.logs.record import Run, Sink

BLOCK_CHARACTERS = 8 * 2**20


class ItemTexts:
    """Gathers the item texts of one task of one run; does nothing unless ``sink.options.keep_text``.

    Attributes
    ----------
    kept
        Whether texts are kept; a reader need not build them where not.
    """

    def __init__(self, run: Run, task: str, sink: Sink) -> None:
        self.kept = sink.options.keep_text
        self._run, self._task, self._sink = run, task, sink
        self._last: tuple[str, str | None] | None = None
        self._start()

    def _start(self) -> None:
        self._doc_ids: list[str] = []
        self._hashes: list[str | None] = []
        self._texts: list[str] = []
        self._characters = 0

    def add(self, doc_id: str, item_hash: str | None, texts: Iterable[str]) -> None:
        """Add an item's texts (question, choices, ...), one below the other; the same item again is passed over."""
        if not self.kept or self._last == (doc_id, item_hash):
            return
        text = "\n".join(texts).encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be written
        if not text:
            return
        self._last = doc_id, item_hash
        self._doc_ids.append(doc_id)
        self._hashes.append(item_hash)
        self._texts.append(text)
        self._characters += len(text)
        if self._characters >= BLOCK_CHARACTERS:
            self.put()

    def put(self) -> None:
        """Put what was gathered into the sink."""
        if self._texts:
            columns = {"doc_id": self._doc_ids, "item_hash": self._hashes, "text": self._texts}
            self._sink.items(self._run, columns | {"task": self._task})
        self._start()
