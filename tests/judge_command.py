"""Runs ``benchwright`` commands in forks of one process that has the judge's library loaded, which takes seconds.

A line of JSON on standard input starts a command: ``argv``, the files ``out`` and ``err``, and ``room``, the bytes that
a file may have (None: any). Answers are two lines, the process's id and at its end its exit code, -9 for one killed.
Benchwright itself loads in the fork.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from typing import Any


def serve() -> None:
    """Run the commands that come in, one at a time."""
    from inspect_ai.model import get_model

    get_model("openai-api/local/model", base_url="http://127.0.0.1:9/v1", memoize=False)  # loads the provider's library
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            command(**json.loads(line))
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def command(argv: list[str], out: str, err: str, room: int | None) -> Any:
    """Run one command as ``python -m benchwright.cli`` does, and end the process."""
    for number, name in ((0, os.devnull), (1, out), (2, err)):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
    if room is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    code: Any = 1
    try:
        from benchwright.cli import main

        sys.argv = ["benchwright", *argv]
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if code is None else int(code))


if __name__ == "__main__":
    serve()
