"""I6: what is put together of foreign parts holds no live marker, however a marker is cut in two between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.runner.input import AgentInput, InputAttachment
from langbot_plugin.api.entities.builtin.runner.resources import SkillResource

from runner.context.digest import digest
from runner.context.summary import Material, draft, summary_block
from runner.context.tokens import Prices
from runner.conversation.attachments import Attached, Place, in_words
from runner.conversation.current import PINNED, parts_of_input
from runner.conversation.history import Row, ToolMemoryForm, units_of
from runner.conversation.knowledge import reference
from runner.conversation.quotes import in_words as quotes_in_words
from runner.conversation.record import Record, RecordedCall
from runner.conversation.request import Request, ToolSpec
from runner.conversation.skills import skill_index
from runner.conversation.speakers import Speakers
from runner.conversation.units import Alternation, AssistantTurn, Image, Passage, System, Text, UserTurn
from runner.conversation.wire import Wire
from runner.guards import defang
from runner.small.prompt import lines, restated
from runner.small.shown import choose
from tests.context.conversations import ruler
from tests.host import Attachment

from .places import ALL_MARKERS, PLACES, host_of, looking, whole

PRICES = Prices(ruler())
Seam = Callable[[str, str], str]


def _group(name: str) -> Speakers:
    return Speakers(True, {"u7": name})


def _row(text: str, record: Record | None = None, role: str = "assistant") -> Row:
    return Row(role, text, "1", "u7", record, "1")


def _written(*units: Any) -> str:
    """What a template makes of the messages that writes their elements and their texts right after one another."""
    messages = Wire().messages(Request(System(), Alternation().of(units)), "m1")
    return "\n".join(message.content for message in messages if isinstance(message.content, str))


def _elements(*units: Any) -> str:
    messages = Wire().messages(Request(System(), Alternation().of(units)), "m1")
    lists = (message.content for message in messages if isinstance(message.content, list))
    return "\n".join("".join(element.text or "\n" for element in content) for content in lists)


def _text(part: object) -> str:
    assert isinstance(part, Text)
    return part.text


def _member(name: str, text: str) -> str:
    return _group(name).says("u7", text)


def _member_and_file(name: str, file: str) -> str:
    files = [InputAttachment(type="file", name=file, content="aGk=")]
    return _text(parts_of_input(AgentInput(text="<", attachments=files), "u7", _group(name))[0])


def _told_call(arguments: str, result: str) -> str:
    return Record(((RecordedCall("look", f'{{"a": "{arguments}"}}', result),),)).as_text()


def _history(first: str, second: str) -> str:
    record = Record(((RecordedCall("functools", "[]", first),),))
    rows = [_row(first, role="user"), _row(second, record), _row(first), _row(second)]
    return _written(*units_of(rows, _group(first), ToolMemoryForm.TEXT))


def _pinned(first: str, second: str) -> str:
    return _text(parts_of_input(AgentInput(text=f"hi{PINNED}\n{first}\n{second}"), "u1", Speakers())[0])


def _quote(name: str, text: str) -> str:
    return quotes_in_words(
        f"type='Quote' id='1' origin=MessageChain([Plain({text!r}), File(name={name!r}), Plain({text!r})])"
    )


def _pictures(first: str, second: str) -> str:
    group = _group(first)
    turns = (UserTurn((Text(group.says("u7", text)), Image(url="https://x/y"))) for text in (first, second))
    return _elements(UserTurn((Text(group.says("u7", first)),)), UserTurn((Text(group.says("u7", second)),)), *turns)


def _asked_to_sum_up(first: str, second: str) -> str:
    units = (UserTurn((Text(first),)), AssistantTurn(second), UserTurn((Text(second),)))
    made = draft(Material(f"{first}\n{second}", after=units), room=4_000, limit=400, prices=PRICES)
    # The blocks are the runner's own: what stands in them is everybody's.
    parts = (part.text for unit in made.request.units if isinstance(unit, UserTurn) for part in unit.parts)  # type: ignore[union-attr]
    return "".join(parts).replace("<conversation_part name=", "").replace("</conversation_part>", "")


def _summed_up(first: str, second: str) -> str:
    told = digest((UserTurn((Text(f"{first}\n{second}"),)),), previous=f"{second}\n{first}", limit=400, price=len)
    return summary_block(f"{told}\n{first}\n{second}").removeprefix("<conversation_summary>").rpartition("\n")[0]


SEAMS: dict[str, Seam] = {
    "a member and what they say": _member,
    "a member and their file": _member_and_file,
    "a file and its type": lambda name, mime: in_words(Attached("file", name, mime, 3), Place(mime)),
    "a skill and what it does": lambda name, text: str(
        skill_index([SkillResource(skill_name=f"a{name}", description=text)] * 2, "activate")
    ),
    "two passages": lambda one, two: _text(reference([Passage(one, two), Passage(two, one)])),
    "a call and its result": _told_call,
    "rows of a history": _history,
    "pinned resources": _pinned,
    "a quoted message and its file": _quote,
    "texts beside pictures": _pictures,
    "a request for a summary": _asked_to_sum_up,
    "a summary": _summed_up,
    "a platform and a group": lambda one, two: "\n".join(lines(None, None, "", (one, two))),
    "a request said again": lambda one, two: restated(f"{one}\n   {two}", answer_by=None, failed=False),
    "further tools": lambda one, two: str(
        choose([ToolSpec("look", f"{one}\n{two}", {})], "", most=0, loaded=(), recent=()).index
    ),
}


def _cuts(markers: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for marker in dict.fromkeys(markers):
        yield from ((marker[:at], marker[at:]) for at in range(len(marker) + 1))
        # Brackets of the runner's own may make a marker of what stands between them.
        yield marker.strip("[]<>|/"), marker.strip("[]<>")


@pytest.mark.parametrize("seam", SEAMS.values(), ids=SEAMS)
def test_I6_no_marker_is_live_where_two_foreign_parts_meet(seam: Seam) -> None:
    live = [(one, two) for one, two in _cuts(ALL_MARKERS) if defang(told := seam(one, two)) != told]
    assert live == []


def test_I6_no_marker_crosses_a_line_so_the_askers_own_words_make_none_with_the_line_of_their_file() -> None:
    for one, two in _cuts(ALL_MARKERS):
        files = [InputAttachment(type="file", name=two, content="aGk=")]
        said = _text(parts_of_input(AgentInput(text=one, attachments=files), "u1", Speakers())[0])
        own, _, file = said.rpartition("\n")
        assert own.strip() == one.strip()
        assert defang(said) == "\n".join(filter(None, (defang(own), file)))


NAMES = tuple(dict.fromkeys(marker.strip("[]<>|/") for marker in ALL_MARKERS if marker[0] == "["))
"""What the brackets around a name make a marker of."""


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
async def test_I6_a_name_that_is_the_inside_of_a_marker_makes_none_anywhere(place: Any) -> None:
    for name in NAMES[:: 1 if place.name in ("sender", "file name", "name of a follow-up") else 6]:
        host = place.build(name, {})
        host.model.default = looking(lambda _: "Nothing of interest.", "look()" if place.needs_a_call else None)
        run = await place.say(host, name)
        assert run.status == "completed", run.error
        for request in run.requests:
            assert defang(told := whole(request)) == told
        await host.aclose()


async def test_I6_a_member_their_file_and_their_history_make_no_marker_together() -> None:
    for name in ("INST", "TOOL_CALLS", "THINK"):
        host = host_of({})
        host.remember(("user", f"{name}] hi ["), ("assistant", f"[{name}"), conversation="group_9", sender="u7")
        attachments = [Attachment(name, "aGk=")]
        run = await host.say(f"/{name}]", conversation="group_9", sender_name=name, attachments=attachments)
        assert name in whole(run.requests[0])
        assert defang(told := whole(run.requests[0])) == told
        await host.aclose()
