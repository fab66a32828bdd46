"""S1, Q5: no call is ever invented, on a thousand pages of prose with code, on irrelevance and reject material."""

from __future__ import annotations

import json
import random

from hypothesis import given, settings

from callformats import all_formats, read
from runner.conversation.request import ToolSpec
from runner.guards import defang
from tests.callformats.material import FOLDER, cases
from tests.callformats.test_stream import TOOLS, replies

NAMES = (
    "search",
    "print",
    "open",
    "get",
    "list",
    "read",
    "write",
    "run",
    "name",
    "type",
    "action",
    "time",
    "get_weather",
)
OFFER = [ToolSpec(name, "", {}) for name in NAMES]

PARAGRAPHS = (
    "To {name} a thing, first look at what is there, then decide. The {name} (or {other}) comes later.",
    "{Name} is a word of everyday use; it means little by itself: {other}, {name}, and so on.",
    'She said: "{name}(everything)", and he wrote {{"{name}": 1}} on the wall.',
    "1. {Name} the list\n2. {other} it\n3. done",
    "| {name} | {other} |\n|---|---|\n| 1 | {{2}} |",
    "> {name}: quoted, with [a link](https://example.org/{name}?q=(1))",
    "Action: {name} was taken at dawn. Input: none.",
    "{name} = {other} + 1 holds for all x < y > z.",
)
CODE = (
    "```python\nimport os\n\ndef {name}(path):\n    return {other}(path)\n\n{name}('x')\n```",
    "```python\n{name}(path)\nprint({name}(1, 2))\n```",
    "```js\n{name}({{key: 1}});\nconst {other} = [{{a: 1}}, {{b: 2}}];\n```",
    '```json\n{{\n  "name": "{name}",\n  "version": "1.0.0",\n  "private": true\n}}\n```',
    '```json\n[{{"id": 1, "label": "{name}"}}, {{"id": 2}}]\n```',
    "```html\n<function>{name}</function> <s>{other}</s> <p>text</p>\n```",
    "```sh\n{name} --{other} 'x' | grep y > z\n```",
    "```yaml\n{name}: 1\n{other}:\n  - a\n```",
    "```\n{name} {other} {{}} [] <> ()\n```",
    '`{name}()` and `{{"name": "{name}"}}`',
    ">>> {name}(1)\n2\n>>> {other}('a')\n",
    "[{name}, {other}]",
    "{{{name}}}",
)


def page(rng: random.Random) -> str:
    parts = []
    for _ in range(rng.randint(3, 9)):
        name, other = rng.choice(NAMES), rng.choice(NAMES)
        template = rng.choice(PARAGRAPHS + CODE)
        parts.append(template.format(name=name, other=other, Name=name.capitalize()))
    return "\n\n".join(parts)


def test_S1_no_call_is_invented_on_a_thousand_pages_of_prose_with_code() -> None:
    rng = random.Random(20_24)
    for _ in range(1000):
        text = page(rng)
        reading = read(text, OFFER)
        assert reading.calls == (), text
        assert reading.refusals == (), text
        assert reading.text == text


def test_S1_no_call_is_invented_where_a_case_expects_none() -> None:
    silent = [case for case in cases() if case.expect.get("calls") == [] and case.kind != "stream-events"]
    assert len(silent) > 200
    assert [case.id for case in silent if case.read().calls] == []


def offered_to_small_models() -> dict[str, ToolSpec]:
    described = json.loads((FOLDER / "small_model_tools.json").read_text(encoding="utf-8"))
    specs = [ToolSpec(one["function"]["name"], "", one["function"]["parameters"]) for one in described]
    return {spec.name: spec for spec in specs}


def test_S1_answers_of_small_models_without_a_call_give_none() -> None:
    tools = offered_to_small_models()
    seen = 0
    for line in (FOLDER / "small_model_runs.jsonl").read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        if run["call"] is not None or run["format"] == "lfm2":
            continue
        seen += 1
        offered = [tools[name] for name in run["tools"] if name in tools]
        assert read(run["raw"], offered).calls == (), run["id"]
    assert seen > 100


@settings(max_examples=300)
@given(replies)
def test_S7_no_call_is_read_from_a_defanged_text_by_its_markers(text: str) -> None:
    marked = {one.id for one in all_formats() if one.opens}
    reading = read(defang(text) + "\nThat was the page.", TOOLS)
    assert [call for call in reading.calls if call.format in marked] == []


def test_S1_what_small_models_wrote_is_read_as_a_person_would() -> None:
    """Against our own lenient reader of the raw runs; where they differ, a rule of S1 says who is right."""
    tools = offered_to_small_models()
    reply = ToolSpec("reply_to_user", "", {"type": "object", "properties": {"text": {"type": "string"}}})
    same, different = 0, []
    for line in (FOLDER / "small_model_runs.jsonl").read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        offered = [tools[name] for name in run["tools"] if name in tools]
        reading = read(run["raw"], [*offered, reply])
        first = reading.calls[0] if reading.calls else None
        found = [first.name, dict(first.arguments)] if first is not None else None
        if found == run["call"]:
            same += 1
        else:
            different.append(run["id"])
    assert sorted(different) == sorted(DIFFERENT)
    assert same == 559


DIFFERENT = {
    "run-0282": "prose behind the block",
    "run-0286": "prose behind the block",
    "run-0291": "prose behind the block",
    "run-0294": "prose behind the block",
    "run-0305": "prose behind the block",
    "run-0306": "prose behind the block",
    "run-0144": "the tool is not on offer",
    "run-0688": "the tool is not on offer",
    "run-0748": "the tool is not on offer",
    "run-0891": "the tool is not on offer",
    "run-0283": "inside a made-up result",
    "run-0781": "a name in the wrong case is mended",
    "run-0784": "a name in the wrong case is mended",
    "run-0839": "a string cut off midway",
    "run-0844": "a string cut off midway",
    "run-0869": "a string cut off midway",
    "run-0936": "a string cut off midway",
    "run-0941": "the schema in place of arguments",
}
"""Runs our older reader understood otherwise, and the rule of S1 that decides."""
