"""A server on 127.0.0.1 that speaks the OpenAI chat protocol and misbehaves as a test wants it to."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from benchwright.judge.definitions import read_activities

IDS = tuple(activity.id for activity in read_activities())
ITEM = re.compile(r"\A<(item-[0-9a-f]+)>\n(.*)\n</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came: instructions, item text, whether an earlier answer was refused, the whole body."""

    system: str
    item: str
    again: bool
    body: dict[str, Any]
    authorization: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What to answer: status, what the model says, seconds to wait, tokens to report (None: none), where to go."""

    text: str = ""
    status: int = 200
    delay: float = 0.0
    usage: tuple[int, int] | None = (1000, 50)
    finish: str = "stop"
    location: str | None = None


def ranked(ids: list[str] | tuple[str, ...]) -> Answer:
    """Answer with a list."""
    return Answer(json.dumps({"sub_steps": ["read", "think"], "ranked_activities": list(ids)}))


def sensible(asked: Asked, number: int) -> Answer:
    """Answer with five activities that depend on framing and item alone."""
    return ranked(sensible_ids(asked.system, asked.item))


def sensible_ids(system: str, item: str) -> list[str]:
    """Return the five ids of :func:`sensible`."""
    return sorted(IDS, key=lambda name: hashlib.sha256(f"{system[:400]}{item}{name}".encode()).digest())[:5]


class QuietServer(ThreadingHTTPServer):
    """Says nothing of clients that are killed."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@dataclass
class OpenAIServer:
    """Serves while its block runs; ``answer`` gets a request and its number from 0. ``asked`` lists all requests."""

    answer: Callable[[Asked, int], Answer] = sensible
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> Self:
        serving = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                serving.reply(self, body)

            def log_message(self, *_: Any) -> None:
                pass

        self._lock = threading.Lock()
        self._server = QuietServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The address that clients are given."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def reply(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        """Note the request, and answer it."""
        system, user = (message["content"] for message in body["messages"])
        found = ITEM.match(user)
        item = user if found is None else found[2]
        asked = Asked(system, item, "earlier answer" in user, body, handler.headers["Authorization"])
        with self._lock:
            number = len(self.asked)
            self.asked.append(asked)
        answer = self.answer(asked, number)
        time.sleep(answer.delay)
        payload: dict[str, Any]
        if answer.status == 200:
            message = {"role": "assistant", "content": answer.text}
            choice = {"index": 0, "message": message, "finish_reason": answer.finish}
            payload = {"id": str(number), "object": "chat.completion", "created": 1, "model": body["model"]}
            payload["choices"] = [choice]
            if answer.usage is not None:
                sent, received = answer.usage
                tokens = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
                payload["usage"] = tokens
        else:
            payload = {"error": {"message": answer.text, "type": "error", "code": str(answer.status)}}
        content = json.dumps(payload).encode()
        try:
            handler.send_response(answer.status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(content)))
            if answer.location is not None:
                handler.send_header("Location", answer.location)
            handler.end_headers()
            handler.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client was killed
