"""LangBot's web page in a real browser: select the runner, fill and save its form, chat.

With LOCALAGENT_SCREENSHOTS=. the pictures of the README and of the owners' pages are made anew; else they go to a
temporary folder.
"""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect, sync_playwright

from demo import package
from demo.processes import wait_until
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import ScriptedModel, say
from tests.e2e.toolbox import call, calls, tool_texts

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("ours")]

PASS_THROUGH = Path(__file__).parent / "plugins" / "passthrough"
SECONDS = 60
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Guided tours and the assistant's panel would cover the page.
SETTLED = """
for (const tour of ["sidebar", "pipeline_setup", "runner_setup"])
    localStorage.setItem(`langbot_${tour}_guide_v1`, "completed");
localStorage.setItem("langbot-assistant-panel-open", "false");
localStorage.setItem("langbot_language", "en-US");
"""


def chromium() -> str:
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not found:
        pytest.skip("Chromium is not installed (Debian, Ubuntu: apt install chromium; or set CHROMIUM)")
    return found


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("LOCALAGENT_SCREENSHOTS") or tmp_path)
    for name in ("assets", "docs/images"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def page(bed: Bed) -> Iterator[Page]:
    """The web page of the bed's LangBot, logged in."""
    program = chromium()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        context = browser.new_context(viewport={"width": 1360, "height": 900}, locale="en-US")
        context.add_init_script(SETTLED)
        page = context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        expect.set_options(timeout=SECONDS * 1000)
        page.goto(f"{bed.langbot.api.base_url}/login")
        page.locator("input[name=email]").fill(bed.account.user)
        page.locator("input[type=password]").fill(bed.account.password)
        page.get_by_role("button", name="Login with password").click()
        page.wait_for_url("**/home/**")
        yield page
        browser.close()


def field(page: Page, label: str) -> Locator:
    return page.locator("[data-slot=form-item]").filter(has=page.locator("label", has_text=label))


class Film:
    """A moving picture of the debug chat: one frame each time something changed, at most seven a second.

    Made only where the pictures are wanted: a busy machine takes a second for each frame.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._wanted = "LOCALAGENT_SCREENSHOTS" in os.environ
        self._frames: list[tuple[Image.Image, int]] = []

    def until(self, shown: Locator, least: int = 5) -> None:
        """Films until something is to be seen, and a little longer."""
        end = time.monotonic() + SECONDS
        while least and self._wanted:
            assert time.monotonic() < end, f"not seen: {shown}"
            least -= 1 if shown.count() else 0
            self._shoot()
            self._page.wait_for_timeout(140)
        expect(shown).to_have_count(1)

    def _shoot(self) -> None:
        bytes_ = self._page.screenshot(clip={"x": 272, "y": 124, "width": 372, "height": 752})
        frame = Image.open(io.BytesIO(bytes_)).convert("RGB")
        if self._frames and self._frames[-1][0].tobytes() == frame.tobytes():
            self._frames[-1] = (frame, min(self._frames[-1][1] + 140, 2_500))
        else:
            self._frames.append((frame, 140))

    def save(self, path: Path) -> None:
        if not self._wanted:
            return
        (first, _), *rest = self._frames
        durations = [shown for _, shown in self._frames[:-1]] + [4_000]
        frames = [frame for frame, _ in rest]
        first.save(path, save_all=True, append_images=frames, duration=durations, loop=0, quality=70, method=4)


def test_M2_in_the_page_a_call_waits_for_a_yes_and_then_runs(
    bed: Bed, model: ScriptedModel, tools: None, page: Page, pictures: Path
) -> None:
    asks = {"ask-before-tools": "listed", "ask-before-these-tools": ["weigh"], "notice-language": "en_US"}
    pipeline = bed.pipeline(config=asks)
    weighing = calls(call("weigh", "call_0", bird="heron"), text="I can put the heron on the scales.")
    model.script(weighing, say("It weighs 1731 g, a good weight for a heron.", chunk_delay=0.25))
    page.goto(f"{bed.langbot.api.base_url}/home/agents?id={pipeline}")
    entry, film = page.get_by_placeholder("Send Private Chat message"), Film(page)
    expect(page.get_by_text("Connected", exact=True)).to_be_visible()
    entry.press_sequentially("How heavy is the heron today?", delay=10)
    film.until(entry)
    entry.press("Enter")
    film.until(page.get_by_text("Before I do this, I need your consent:"), 12)
    wait_until("the end of the run", bed.langbot.api.idle, SECONDS)
    assert len(model.requests) == 1
    entry.fill("Yes, please!")
    film.until(entry)
    entry.press("Enter")
    film.until(page.get_by_text("a good weight for a heron."), 12)
    film.save(pictures / "assets/run.webp")
    expect(page.get_by_role("button", name="In flight: 0")).to_be_visible()
    assert "ticket-heron-1731" in tool_texts(model.requests[1])[-1]


def test_N4_the_lines_of_a_run_stand_where_owners_are_led(
    bed: Bed, model: ScriptedModel, page: Page, pictures: Path
) -> None:
    model.script(say("Good evening!"))
    page.goto(f"{bed.langbot.api.base_url}/home/agents?id={bed.pipeline()}")
    entry = page.get_by_placeholder("Send Private Chat message")
    expect(page.get_by_text("Connected", exact=True)).to_be_visible()
    entry.fill("Good evening, LangBot")
    entry.press("Enter")
    expect(page.get_by_text("Good evening!")).to_have_count(1)
    wait_until("the end of the run", bed.langbot.api.idle, SECONDS)
    page.get_by_role("link", name="Dashboard").or_(page.get_by_role("button", name="Dashboard")).first.click()
    page.get_by_role("tab", name="Executions").click()
    page.get_by_text("Good evening, LangBot").first.click()
    page.get_by_text("Execution events").click()
    page.get_by_text("processor.log").first.locator("xpath=following::details[1]/summary").click()
    line = page.get_by_text("run: answered in").first
    expect(line).to_be_visible()
    line.scroll_into_view_if_needed()
    page.screenshot(path=pictures / "docs/images/run-lines.png")


def bound_to_another_runner(bed: Bed) -> str:
    built = package.build(PASS_THROUGH, bed.langbot.folder / "dist")
    who = package.identity(PASS_THROUGH)
    bed.langbot.api.install(built)
    other = bed.langbot.api.wait_for_runner(who.author, who.name)
    pipeline = bed.langbot.api.add_pipeline("Front desk")
    bed.langbot.api.bind(pipeline, other, {})
    return pipeline


def test_the_runner_is_selected_its_form_saved_and_a_chat_answered(
    bed: Bed, model: ScriptedModel, page: Page, pictures: Path
) -> None:
    bed.model("scripted")
    pipeline = bound_to_another_runner(bed)
    page.goto(f"{bed.langbot.api.base_url}/home/agents?id={pipeline}")
    page.get_by_role("tab", name="AI").click()
    page.get_by_role("combobox", name="Runner").click()
    page.get_by_role("option", name="Local Agent").click()

    field(page, "Model").first.get_by_role("combobox").click()
    page.get_by_role("option", name="scripted", exact=True).click()
    field(page, "Prompt").first.locator("textarea").fill("You are the front desk of a small hotel.")
    field(page, "Advanced settings").get_by_role("switch").click()
    field(page, "Time limit").locator("input").first.fill("123")
    page.screenshot(path=pictures / "docs/images/advanced-settings.png")
    page.get_by_role("combobox", name="Runner").scroll_into_view_if_needed()
    page.screenshot(path=pictures / "assets/form.png")
    page.get_by_role("button", name="Save", exact=True).click()

    wait_until("the saved form", lambda: bed.langbot.api.binding(pipeline)[0] == bed.runner_id, SECONDS)
    stored = bed.langbot.api.binding(pipeline)[1]
    assert stored["model"]["primary"] == bed.model("scripted")
    assert stored["prompt"] == [{"role": "system", "content": "You are the front desk of a small hotel."}]
    assert (stored["timeout"], stored["advanced-settings"]) == (123, True)

    model.script(
        say("Welcome, Ms Okafor! Breakfast is from 7 to 10. 早餐从七点到十点。☕"), say("For you, Ms Okafor, at 6:30.")
    )
    entry = page.get_by_placeholder("Send Private Chat message")
    entry.fill("Good evening, I am Ms Okafor. When is breakfast?")
    entry.press("Enter")
    expect(page.get_by_text("早餐从七点到十点。☕")).to_have_count(1)
    wait_until("the end of the run", bed.langbot.api.idle, SECONDS)
    entry.fill("I leave at seven. Can I have it earlier?")
    entry.press("Enter")
    expect(page.get_by_text("For you, Ms Okafor, at 6:30.")).to_have_count(1)
    # The list of running work folds away by itself when there is none.
    expect(page.get_by_role("button", name="In flight: 0")).to_be_visible()

    second = model.requests[1]
    assert second.texts[0][1].startswith("You are the front desk of a small hotel.")
    assert second.holds("I am Ms Okafor") == 1
