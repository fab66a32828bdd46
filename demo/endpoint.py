"""The model behind the demo: the user's own OpenAI-compatible endpoint, or a GGUF file served by llama.cpp."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from demo import wanted
from demo.bootstrap import ROOT
from demo.errors import DemoError
from demo.ports import LOOPBACK
from demo.processes import Children, wait_until
from weights.catalogue import Gguf, cache_folder
from weights.engine import CONTEXT_TOKENS
from weights.errors import one_line
from weights.fetch import Watcher, fetch

ENGINE_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a chat model answers. `context_tokens` is 0 where nobody said it."""

    base_url: str
    name: str
    api_key: str
    context_tokens: int = 0


def from_environment(env: Mapping[str, str]) -> Endpoint | None:
    """The endpoint of MODEL_BASE_URL, checked by asking it; None when the variable is not set.

    Raises DemoError with one line for an address, key or name that does not work.
    """
    address = wanted.address(env)
    if not address:
        return None
    key = env.get("MODEL_API_KEY", "").strip() or "none"
    name = env.get("MODEL_NAME", "").strip()
    offered = _offered(address, key)
    if not name:
        if len(offered) != 1:
            raise DemoError(f"set MODEL_NAME to a model of {address}" + (_examples(offered) or _often_v1(address)))
        name = offered[0]
    _try_out(address, key, name)
    return Endpoint(address, name, key)


def _examples(offered: list[str]) -> str:
    return f" (it offers {', '.join(offered[:5])}{', …' if len(offered) > 5 else ''})" if offered else ""


def _often_v1(address: str) -> str:
    """The commonest slip: servers show their own page at the bare address and answer chats below /v1."""
    return "" if "/v1" in address else " (the address of an OpenAI-compatible endpoint often ends in /v1)"


def _offered(address: str, key: str) -> list[str]:
    """The model names that the endpoint lists; empty when it does not list any."""
    answer = _ask("GET", f"{address}/models", key)
    if answer.status_code != 200:
        return []
    try:
        return [str(row["id"]) for row in answer.json()["data"]]
    except (ValueError, KeyError, TypeError):
        return []


def _try_out(address: str, key: str, name: str) -> None:
    """One token from the model: an address that answers pages, but no chat, is found here and not in the chat."""
    body = {"model": name, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    answer = _ask("POST", f"{address}/chat/completions", key, body)
    if answer.status_code != 200:
        raise DemoError(
            f"the model {name} at MODEL_BASE_URL={address} does not answer: HTTP {answer.status_code} "
            f"{one_line(answer.text, 160)}{_often_v1(address)}"
        )
    try:
        answer.json()["choices"][0]
    except (ValueError, KeyError, IndexError, TypeError):
        raise DemoError(f"MODEL_BASE_URL={address} is no OpenAI-compatible endpoint; it often ends in /v1") from None


def _ask(method: str, url: str, key: str, body: object = None) -> httpx.Response:
    try:
        answer = httpx.request(
            method, url, json=body, headers={"Authorization": f"Bearer {key}"}, timeout=120 if body else 20
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise DemoError(f"cannot reach the model at MODEL_BASE_URL ({url}): {error or type(error).__name__}") from error
    if answer.status_code in (401, 403):
        raise DemoError(f"the model's endpoint refused the key (HTTP {answer.status_code}); check MODEL_API_KEY")
    return answer


def serve_gguf(children: Children, chosen: Gguf, port: int, logs: Path, say: Callable[[str], None]) -> Endpoint:
    """Fetch the model if needed, start llama.cpp on it, and wait until it answers."""
    file = fetch(chosen, cache_folder(), Watcher(say))
    say(f"loading {chosen.name} into llama.cpp")
    # Two busy OpenMP pools on few cores starve each other; a passive wait keeps the speed.
    env = {**os.environ, "OMP_WAIT_POLICY": "passive", "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "demo.engine_server", str(file), str(port), chosen.name]
    child = children.start("the model server", argv, ROOT, env, logs / "model.log")
    base_url = f"http://{LOOPBACK}:{port}/v1"
    wait_until("the model server", lambda: _answers(base_url), ENGINE_SECONDS, child)
    return Endpoint(base_url, chosen.name, "none", CONTEXT_TOKENS)


def _answers(base_url: str) -> bool:
    try:
        return httpx.get(f"{base_url}/models", timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
