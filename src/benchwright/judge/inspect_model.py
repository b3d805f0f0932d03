"""A model through Inspect AI, which knows the providers: only its model interface is used, not its evaluations.

Its log and cache are not needed: the journal holds every answer before the next call starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.metadata import version
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from benchwright.errors import UsageError
from benchwright.judge.asking import NoAnswerError, Reply
from benchwright.judge.budget import Tokens
from benchwright.judge.settings import JudgeSettings

if TYPE_CHECKING:
    from inspect_ai.model import Model

IN_PROCESS = frozenset({"hf", "llama-cpp-python", "mockllm", "none", "transformer_lens"})  # no server at all
FATAL = frozenset({401, 402, 404})  # no key, no credit, no such model: alike for every item; 403 may be of one text
ELSEWHERE = frozenset({301, 302, 303, 307, 308})  # redirects: alike for every item, too
MOST_TOKENS = 10**12  # a server that reports more, or less than none, has not counted
_MARKUP = re.compile(r"\[/?[a-z ]*\]")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")


class InspectModel:
    """A model that can be asked; ``destination`` is the host that texts go to, None where they stay on this machine."""

    def __init__(self, model: Model, destination: str | None) -> None:
        self.destination = destination
        self._model = model

    @classmethod
    def open(cls, name: str, settings: JudgeSettings, schema: Mapping[str, Any]) -> InspectModel:
        """Make the provider's client; sends nothing.

        Raises
        ------
        UsageError
            Inspect AI or the provider's library is not installed, the provider is unknown, or its key is not set.
        """
        try:
            from inspect_ai._util.error import PrerequisiteError
            from inspect_ai.model import GenerateConfig, ResponseSchema, get_model
            from inspect_ai.util import JSONSchema
        except ImportError:
            raise UsageError(
                f"--model {name} needs Inspect AI, which is not installed",
                hint="pip install 'benchwright[judge]', or use the offline baseline: --model baseline/tfidf",
            ) from None
        response = ResponseSchema(name="ranked_activities", json_schema=JSONSchema.model_validate(schema), strict=True)
        config = GenerateConfig(
            max_connections=settings.connections,
            max_retries=settings.retries,
            attempt_timeout=settings.timeout,
            temperature=settings.temperature,
            max_tokens=settings.max_output_tokens,
            response_schema=response if settings.schema else None,
        )
        try:
            model = get_model(name, base_url=settings.base_url, config=config, memoize=False)
        except PrerequisiteError as error:
            raise _not_ready(name, _MARKUP.sub("", str(error.message))) from None
        except (ValueError, ImportError) as error:
            raise _not_ready(name, str(error)) from None
        _follow_no_redirect(model.api)
        return cls(model, _destination(name, model.api))

    @property
    def versions(self) -> Mapping[str, str]:
        """The version of the library that talks to providers."""
        return {"inspect_ai": version("inspect_ai")}

    async def ask(self, system: str, user: str) -> Reply:
        """Return the model's reply; Inspect repeats what the server turned down for the moment."""
        from inspect_ai.model import ChatMessageSystem, ChatMessageUser

        try:
            output = await self._model.generate([ChatMessageSystem(content=system), ChatMessageUser(content=user)])
        except Exception as error:  # every provider's library has its own
            raise _no_answer(error) from None
        if output.error is not None or not output.choices:
            raise NoAnswerError("the provider gave no choice")
        if output.stop_reason == "content_filter":
            raise NoAnswerError("the provider's content filter")
        used = output.usage
        return Reply(
            output.completion,
            output.stop_reason in ("max_tokens", "model_length"),
            None if used is None else _tokens(used),
        )

    async def close(self) -> None:
        """Close the provider's client."""
        await self._model.api.aclose()


def _tokens(used: Any) -> Tokens | None:
    """Return tokens sent, those that the provider's cache wrote or read included, and received; None for nonsense."""
    sent = used.input_tokens + (used.input_tokens_cache_write or 0) + (used.input_tokens_cache_read or 0)
    counted = 0 <= sent <= MOST_TOKENS and 0 <= used.output_tokens <= MOST_TOKENS
    return Tokens(int(sent), int(used.output_tokens)) if counted else None


def _follow_no_redirect(api: Any) -> None:
    """Keep the texts with the host that the user agreed to, where the provider's client says that it would go on."""
    client = getattr(api, "client", None)
    for one in (client, getattr(client, "_client", None), getattr(api, "http_client", None)):
        if one is not None and getattr(one, "follow_redirects", None) is True:
            one.follow_redirects = False


def _destination(name: str, api: Any) -> str | None:
    """Return the host that texts go to, None for this machine."""
    provider = name.split("/")[0]
    if provider in IN_PROCESS:
        return None
    address = getattr(getattr(api, "client", None), "base_url", None) or getattr(api, "base_url", None)
    target = urlsplit(str(address or ""))
    if target.hostname is None:
        return f"the servers of {provider}"
    try:
        here = target.hostname == "localhost" or ip_address(target.hostname).is_loopback
    except ValueError:
        here = False
    proxy = getproxies().get(target.scheme)
    if here and proxy and not proxy_bypass(target.hostname):
        return f"the proxy {urlsplit(proxy).hostname}"
    return None if here else target.hostname


def _not_ready(name: str, why: str) -> UsageError:
    """Return the error for a client that cannot be made, with the variable or the package that it lacks."""
    text = " ".join(why.split()).removeprefix("ERROR: ")
    variable = re.search(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", text)
    command = re.search(r"pip install .*", text)
    if variable is not None:
        hint = f"set {variable[0]} in the environment; benchwright writes no key down"
    elif command is not None:
        hint, text = command[0], text.removesuffix(command[0]).removesuffix("Install with: ")
    else:
        hint = "name a model as provider/name, e.g. openai/gpt-4o-mini, or use --model baseline/tfidf"
    return UsageError(f"--model {name}: {text.strip()}", hint=hint)


def _no_answer(error: BaseException) -> NoAnswerError:
    """Return what a failed call comes to; the server's words are kept out of files and, of secrets, clean."""
    last = getattr(error, "last_attempt", None)  # of tenacity's RetryError
    cause = last.exception() if last is not None else error
    status = getattr(cause, "status_code", None)
    reason = type(cause).__name__ + (f" (HTTP {status})" if status is not None else "")
    if status in ELSEWHERE:
        reason += ", which points to another address and is not followed"
    return NoAnswerError(reason, fatal=status in FATAL | ELSEWHERE, detail=f": {_clean(str(cause))}")


def _clean(text: str) -> str:
    """Return the first words of a server's message without any value of a variable that holds a secret."""
    for name, value in os.environ.items():
        if len(value) >= 4 and _SECRET.search(name.upper()):
            text = text.replace(value, "***")
    return " ".join(text.split())[:200]
