"""Pages that a reader walks through: files that a page prints, commands as typed, and what they must print."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

FENCE = re.compile(r"^```(\w+)(?: title=\"([\w./-]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OUT = re.compile(r" -o (\S+)/")
CHECKER = OutputChecker()


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page: its language, the file that it is to be saved as, and its text."""

    language: str
    title: str | None
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a console block; a line that ends in a backslash goes on."""
        if self.language != "console":
            return []
        return [line for line in self.text.replace("\\\n", " ").splitlines() if line.strip()]


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page in their order."""
    for language, title, text in FENCE.findall(page.read_text(encoding="utf-8")):
        yield Block(language, title or None, text)


def run(command: str, folder: Path, *, warnings: str = "error") -> str:
    """Run a command as a shell would, and return what it prints; it must succeed and print something or write."""
    words, into = shlex.split(command, comments=True), None
    if ">" in words:
        words, into = words[: words.index(">")], words[-1]
    program = {"python": [sys.executable], "benchwright": [sys.executable, "-m", "benchwright.cli"]}[words[0]]
    environment = dict(os.environ, PYTHONWARNINGS=warnings)
    done = subprocess.run(
        [*program, *words[1:]], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    if into is not None:
        (folder / into).write_text(done.stdout, encoding="utf-8")
    return done.stdout


def walk(page: Path, folder: Path, not_run: tuple[str, ...] = ()) -> int:
    """Do what a page says in a folder, hold what it prints against what the page shows; return how many commands.

    Commands that begin like one of ``not_run`` are left out. A folder that a command would write is not there yet, as
    it would not be for a reader of that page.
    """
    printed, count = "", 0
    for block in blocks_of(page):
        if block.title is not None:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        for command in block.commands:
            if command.startswith(not_run):
                continue
            out = OUT.search(command)
            if out is not None:
                shutil.rmtree(folder / out.group(1), ignore_errors=True)
            printed, count = run(command, folder), count + 1
        if block.language == "text" and printed:
            shown = CHECKER.check_output(block.text, printed, ELLIPSIS | NORMALIZE_WHITESPACE)
            assert shown, f"{page.name} shows\n{block.text}\nand the command prints\n{printed}"
    return count
