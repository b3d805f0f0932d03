"""Asking a judge: ``python benchmarks/bench_judge.py`` (needs the extra ``judge``).

A server in a process of its own answers after a fixed time. Targets: 400 calls at 500 ms over 10 connections, once
the client is made, within 1.5 times the 20 s that the answers alone take; and at most 5 ms of processor time a call
beyond what Inspect AI's model interface takes for the same requests (median of five). Exit status 1 on a miss.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import polars as pl

from benchwright.judge.asking import Call
from benchwright.judge.plan import JudgePlan, plan_judging
from benchwright.judge.run import carry_out, open_model
from benchwright.judge.settings import JudgeSettings

CALLS, CONNECTIONS, LATENCY, SHORT = 400, 10, 0.5, 0.02
MODEL = "openai-api/local/model"
WALL_RATIO, OWN_MS = 1.5, 5.0
REPEATS = 5


def serve(latency: float) -> None:
    """Answer every request with the same list after ``latency`` seconds; print the port first."""
    answer = {"sub_steps": ["read", "think"], "ranked_activities": ["analyzing_data", "getting_information"]}
    choice = {"index": 0, "message": {"role": "assistant", "content": json.dumps(answer)}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
    reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "model", "choices": [choice]}
    body = json.dumps(reply | {"usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                lengths = [line for line in request.split(b"\r\n") if line.lower().startswith(b"content-length")]
                await reader.readexactly(int(lengths[0].split(b":")[1]))
                await asyncio.sleep(latency)
                writer.write(head + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(run())


def timed(task: Callable[[], object]) -> tuple[float, float]:
    """Return seconds on the wall and of this processor."""
    wall, own = perf_counter(), process_time()
    task()
    return perf_counter() - wall, process_time() - own


def ours(plan: JudgePlan) -> tuple[float, float]:
    """Judge everything into a new folder."""
    model = open_model(plan)
    with tempfile.TemporaryDirectory() as folder:
        return timed(lambda: carry_out(plan, model, out=Path(folder) / "out"))


def library(plan: JudgePlan) -> tuple[float, float]:
    """Send the same requests through Inspect AI alone."""
    model = open_model(plan)
    assert model is not None

    async def ask(calls: list[Call]) -> None:
        waiting = iter(calls)

        async def work() -> None:
            for call in waiting:
                await model.ask(plan.prompts.system[call.perspective], plan.prompts.user(call.item.text))

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
        await model.close()

    return timed(lambda: asyncio.run(ask(plan.calls())))


def measure(latency: float, task: Callable[[JudgePlan], tuple[float, float]], repeats: int) -> tuple[float, float]:
    """Return median seconds, wall and processor, against a server of that latency."""
    server = subprocess.Popen([sys.executable, __file__, str(latency)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        texts = [f"How many of the {number} marbles are red, if a third is blue?" for number in range(CALLS // 2)]
        items = pl.DataFrame({"task": "marbles", "doc_id": range(CALLS // 2), "question": texts})
        plan = plan_judging(items, model=MODEL, settings=JudgeSettings(base_url=url, connections=CONNECTIONS))
        runs = [task(plan) for _ in range(repeats)]
    finally:
        server.kill()
        server.wait()
    return median(wall for wall, _ in runs), median(own for _, own in runs)


def main() -> int:
    """Print seconds, and say whether the targets are met."""
    os.environ.setdefault("LOCAL_API_KEY", "none")
    measure(0.0, library, 1)  # libraries load and warm up
    bound = CALLS * LATENCY / CONNECTIONS
    wall, _ = measure(LATENCY, ours, 1)
    print(
        f"{CALLS} calls at {LATENCY:g} s over {CONNECTIONS} connections: {wall:.1f} s, bound {bound:g} s, "
        f"a ratio of {wall / bound:.2f}"
    )
    _, whole = measure(SHORT, ours, REPEATS)
    _, theirs = measure(SHORT, library, REPEATS)
    each, alone = 1000 * whole / CALLS, 1000 * theirs / CALLS
    own = each - alone
    print(f"processor time a call: {each:.1f} ms, the library alone {alone:.1f} ms, own {own:.1f} ms")
    return int(wall > WALL_RATIO * bound or own > OWN_MS)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(float(sys.argv[1]))
    else:
        sys.exit(main())
