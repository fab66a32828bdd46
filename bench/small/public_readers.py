"""Public readers of tool calls, for comparison. Runs by itself in an environment with `requirements-bench.txt`.

`python bench/small/public_readers.py < lines > lines`: a line in is `{"id", "format", "raw", "tools"}`, a line out
`{"id", "calls": {reader: [[name, arguments], …] | null}}`; null: the reader has no parser for this format.

SGLang and mlx-lm are whole engines; only their parsers are loaded, without the engine's own start-up. A parser that
raises has read nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import sys
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

Calls = list[tuple[str, Any]]
Reader = Callable[[str, str, list[dict[str, Any]]], "Calls | None"]

SGLANG = {
    # our name of a format: module and class of SGLang's detector
    "apertus": ("apertus2509_detector", "Apertus2509Detector"),
    "atem": ("muse_glimmer_detector", "MuseGlimmerDetector"),
    "deepseek-dsml": ("deepseekv32_detector", "DeepSeekV32Detector"),
    "deepseek-r1": ("deepseekv3_detector", "DeepSeekV3Detector"),
    "deepseek-v31": ("deepseekv31_detector", "DeepSeekV31Detector"),
    "dots": ("dots_detector", "DotsToolDetector"),
    "gemma4": ("gemma4_detector", "Gemma4Detector"),
    "gigachat3": ("gigachat3_detector", "GigaChat3Detector"),
    "glm45": ("glm4_moe_detector", "Glm4MoeDetector"),
    "harmony": ("gpt_oss_detector", "GptOssDetector"),
    "hermes": ("hermes_detector", "HermesDetector"),
    "hunyuan": ("hunyuan_detector", "HunyuanDetector"),
    "internlm2": ("internlm_detector", "InternlmDetector"),
    "kimi-k2": ("kimik2_detector", "KimiK2Detector"),
    "lfm2-pythonic": ("lfm2_detector", "Lfm2Detector"),
    "ling3": ("ling3_detector", "Ling3Detector"),
    "llama3-json": ("llama32_detector", "Llama32Detector"),
    "minicpm5-xml": ("minicpm5_detector", "MiniCPM5Detector"),
    "minimax-m2": ("minimax_m2", "MinimaxM2Detector"),
    "minimax-m3": ("minimax_m3", "MinimaxM3Detector"),
    "mistral": ("mistral_detector", "MistralDetector"),
    "mistral-args": ("mistral_detector", "MistralDetector"),
    "pythonic": ("pythonic_detector", "PythonicDetector"),
    "qwen": ("qwen25_detector", "Qwen25Detector"),
    "qwen3-xml": ("qwen3_coder_detector", "Qwen3CoderDetector"),
    "spark": ("spark25_detector", "Spark25Detector"),
    "step3": ("step3_detector", "Step3Detector"),
}
MLX = {
    "atem": "muse_spark",
    "functiongemma": "function_gemma",
    "gemma4": "gemma4",
    "glm45": "glm47",
    "hermes": "json_tools",
    "kimi-k2": "kimi_k2",
    "kimi-k3": "kimi_k3",
    "lfm2-pythonic": "pythonic",
    "longcat": "longcat",
    "minicpm5-xml": "minicpm5",
    "minimax-m2": "minimax_m2",
    "mistral": "mistral",
    "mistral-args": "mistral",
    "qwen": "json_tools",
    "qwen3-xml": "qwen3_coder",
}


def _bare_packages(root: str, *inner: str) -> None:
    """Packages without what their `__init__` would load, so that a module inside them can be imported alone."""
    spec = importlib.util.find_spec(root)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    place = Path(next(iter(spec.submodule_search_locations)))
    for name in (root, *(f"{root}.{each}" for each in inner)):
        module = types.ModuleType(name)
        module.__path__ = [str(place.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = module


@cache
def _sglang() -> type[Any]:
    """SGLang's `Tool`, with the fields that its detectors read, in the place of its module of the HTTP protocol."""
    pydantic = importlib.import_module("pydantic")
    _bare_packages("sglang", "srt", "srt.function_call", "srt.parser", "srt.entrypoints", "srt.entrypoints.openai")
    protocol: Any = types.ModuleType("sglang.srt.entrypoints.openai.protocol")
    fields = {"name": (str, ...), "description": (str, ""), "parameters": (dict, {}), "strict": (bool, False)}
    function = pydantic.create_model("Function", **fields)
    protocol.Tool = pydantic.create_model("Tool", type=(str, "function"), function=(function, ...))
    protocol.Function = function
    for name in ("ToolChoice", "ToolCallConstraint", "StructuralTagResponseFormat", "StructuresResponseFormat"):
        setattr(protocol, name, type(name, (), {}))
    sys.modules[protocol.__name__] = protocol
    made: type[Any] = protocol.Tool
    return made


def sglang(text: str, form: str, tools: list[dict[str, Any]]) -> Calls | None:
    """The detector that `--tool-call-parser` would choose for models of this format."""
    if form not in SGLANG:
        return None
    tool = _sglang()
    module, name = SGLANG[form]
    detector = getattr(importlib.import_module(f"sglang.srt.function_call.{module}"), name)()
    offered = [tool(function=each) for each in tools]
    found = detector.detect_and_parse(text, offered).calls
    return [(call.name, json.loads(call.parameters)) for call in found]


def mlx(text: str, form: str, tools: list[dict[str, Any]]) -> Calls | None:
    """The parser that mlx-lm's server would choose, on what stands between its markers."""
    if form not in MLX:
        return None
    if "mlx_lm" not in sys.modules:
        _bare_packages("mlx_lm", "tool_parsers")
    parser = importlib.import_module(f"mlx_lm.tool_parsers.{MLX[form]}")
    calls: Calls = []
    for body in _between(text, parser.tool_call_start, parser.tool_call_end):
        try:
            parsed = parser.parse_tool_call(body, [{"type": "function", "function": each} for each in tools])
        except ValueError:  # as the server itself does: "likely truncated"
            continue
        calls += [(call["name"], call["arguments"]) for call in (parsed if isinstance(parsed, list) else [parsed])]
    return calls


def _between(text: str, start: str, end: str) -> list[str]:
    if not end:
        return text.split(start)[1:]
    return [piece.partition(end)[0] for piece in text.split(start)[1:]]


def json_repaired(text: str, form: str, tools: list[dict[str, Any]]) -> Calls | None:
    """The usual few lines around json_repair: whatever JSON it makes of the reply, where it names a tool."""
    value = importlib.import_module("json_repair").loads(text)
    names = {tool["name"] for tool in tools}
    calls: Calls = []
    for each in value if isinstance(value, list) else [value]:
        each = each["function"] if isinstance(each, dict) and isinstance(each.get("function"), dict) else each
        if isinstance(each, dict) and each.get(_name_key(form)) in names:
            calls.append((each[_name_key(form)], each.get("arguments", each.get("parameters", {}))))
    return calls


def _name_key(form: str) -> str:
    return "tool" if form == "inline" else "name"


def smolagents(text: str, form: str, tools: list[dict[str, Any]]) -> Calls | None:
    """What smolagents does with a reply without structured calls (`Model.parse_tool_calls`)."""
    models = importlib.import_module("smolagents.models")
    call = models.get_tool_call_from_text(text, _name_key(form), "arguments").function
    return [(call.name, call.arguments)]


READERS: dict[str, Reader] = {
    "SGLang": sglang,
    "mlx-lm": mlx,
    "json_repair": json_repaired,
    "smolagents": smolagents,
}


def read_all(line: dict[str, Any]) -> dict[str, Calls | None]:
    # Engines take the thought out before they look for calls.
    text = re.sub(r"^.*?</think>", "", line["raw"], flags=re.S)
    read: dict[str, Calls | None] = {}
    for name, reader in READERS.items():
        try:
            read[name] = reader(text, line["format"], line["tools"])
        except ImportError:  # not installed is not "cannot read"
            raise
        except Exception:  # noqa: BLE001 - foreign parsers raise whatever they like at a broken text
            read[name] = []
    return read


def main() -> None:
    for text in sys.stdin:
        line = json.loads(text)
        print(json.dumps({"id": line["id"], "calls": read_all(line)}, ensure_ascii=False, default=str))


if __name__ == "__main__":
    main()
