"""How a judge is asked: every setting with its default, unit and reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from benchwright._choice import Checked, choice
from benchwright.errors import UsageError


@dataclass(frozen=True, slots=True)
class JudgeSettings(Checked):
    """Settings of a judge's run; none of them holds a key."""

    prefix: ClassVar[str] = "judge setting "
    ranked: int = choice(5, unit="activities", low=1, high=10, why="most activities a list may have; welfare counts 5")
    tries: int = choice(3, unit="answers", low=1, high=20, why="asked again where an answer cannot be used")
    connections: int = choice(10, unit="calls", low=1, high=1000, why="calls in flight at once")
    retries: int = choice(5, unit="requests", low=0, high=50, why="repeats of a request that the server turned down")
    timeout: int = choice(
        120, unit="seconds", low=1, high=3600, why="a request without an answer counts as turned down"
    )
    temperature: float | None = choice(0.0, unit="temperature", low=0, high=2, why="0 asks for the likeliest answer")
    max_output_tokens: int = choice(1500, unit="tokens", low=16, high=1_000_000, why="a longer answer is cut off")
    max_characters: int = choice(20_000, unit="characters", low=1, high=10_000_000, why="a longer item is not sent")
    schema: bool = choice(True, unit="flag", why="ask for structured output; the answer is checked either way")
    base_url: str | None = choice(None, unit="address", why="of a server other than the provider's own")
    price_in: float | None = choice(None, unit="US dollars per 10^6 tokens", low=0, high=1e6, why="of what is sent")
    price_out: float | None = choice(None, unit="US dollars per 10^6 tokens", low=0, high=1e6, why="of answers")
    max_usd: float | None = choice(None, unit="US dollars", low=0, high=1e9, why="the folder's run costs no more")
    max_tokens: int | None = choice(None, unit="tokens", low=0, high=10**15, why="the folder's run uses no more")

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.max_usd is not None and self.usd(0, 0) is None:
            raise UsageError(
                "`max_usd` needs the model's prices", hint="give price_in and price_out, US dollars per million tokens"
            )

        if self.base_url is not None:
            address = urlsplit(self.base_url)
            if address.scheme not in ("http", "https") or not address.hostname or address.username or address.query:
                raise UsageError(
                    "`base_url` must be http(s)://HOST:PORT/PATH without a password or a query",
                    hint="keys belong into the provider's variable in the environment, e.g. OPENAI_API_KEY",
                )

    def usd(self, input_tokens: float, output_tokens: float) -> float | None:
        """Return what tokens cost, None where the prices are not known.

        >>> JudgeSettings(price_in=2.0, price_out=8.0).usd(1e6, 1e5)
        2.8
        """
        if self.price_in is None or self.price_out is None:
            return None
        return (self.price_in * input_tokens + self.price_out * output_tokens) / 1e6
