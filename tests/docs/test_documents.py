"""What the documents say is what stands in the code: names, numbers, paths, commands, and the page of rules."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from config.fields import FIELDS
from config.form import load_labels
from config.locales import Locale
from config.notices import Notice, say
from runner.host.events import Usage
from runner.run.run_stats import Tally
from tests.docs.tables import OWNERS, READMES, ROOT, UNBUILT, written
from tests.mutants.table import all_mutants

# What the documents say is what stands in the code: names, numbers, paths and commands.

GUIDES = [ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md")] + sorted((ROOT / "docs").glob("*.md"))
OWNERS_PAGES = sorted((ROOT / "docs" / "owners").rglob("*.md"))
PAGES = [*READMES.values(), *GUIDES, *OWNERS_PAGES]
REPOSITORY = "https://github.com/langbot-app/LocalAgent/blob/main/"
PICTURES = "https://raw.githubusercontent.com/langbot-app/LocalAgent/main/"
"""Where links of a README lead: it is read in LangBot's page of the plugin too, where the repository is not."""
ARCHITECTURE = ROOT / "docs" / "architecture.md"

every_readme = pytest.mark.parametrize("locale", READMES)
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def code_in(page: Path) -> list[str]:
    """Everything a page sets in code type: inline, and line by line in blocks."""
    fenced: list[str] = []
    plain: list[str] = []
    for place, part in enumerate(re.split(r"^ *```.*$", text_of(page), flags=re.MULTILINE)):
        (fenced if place % 2 else plain).append(part)
    return [line for part in fenced for line in part.splitlines()] + re.findall(r"`([^`\n]+)`", "\n".join(plain))


@cache
def attributes_read() -> frozenset[str]:
    """Every attribute that the agent, its door and the settings themselves look at."""
    modules = [*(ROOT / "runner").rglob("*.py"), *(ROOT / "components").rglob("*.py"), ROOT / "config" / "settings.py"]
    trees = (ast.parse(text_of(module)) for module in modules)
    return frozenset(node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute))


@every_readme
def test_A3_the_table_of_settings_is_the_form_in_every_language(locale: Locale) -> None:
    text = text_of(OWNERS[locale] / "settings.md")
    assert text == written(text, locale), "run `python -m tests.docs.tables`"


def test_a_page_that_lost_the_marks_of_its_table_is_refused() -> None:
    with pytest.raises(ValueError, match="has lost"):
        written("# LocalAgent\n", Locale.EN_US)


@every_readme
def test_A3_the_form_says_of_each_field_that_nothing_reads_that_it_has_no_effect_yet(locale: Locale) -> None:
    said = {name for name, label in load_labels()[locale].items() if label.help.startswith(UNBUILT[locale])}
    unread = {
        field.name
        for field in FIELDS
        if field.at and any(part not in attributes_read() for part in field.at.split("."))
    }
    assert said == unread
    assert said <= set(re.findall(r"`([\w-]+)`", text_of(ROOT / "CHANGELOG.md")))


@every_readme
def test_C8_every_readme_explains_the_sentence_for_a_missing_model_in_the_words_of_the_chat(locale: Locale) -> None:
    first = re.split(r"(?<=[.。]) ?", say(Notice.NO_MODEL, locale))[0]
    assert first.split(" กรุณา")[0] in text_of(READMES[locale])
    assert first.split(" กรุณา")[0] in text_of(OWNERS[locale] / "trouble.md")


@every_readme
def test_C8_in_every_language_the_line_of_a_run_stands_as_it_is_written(locale: Locale) -> None:
    usage = Usage(9120, 410, 9530)
    tally = Tally(
        "answered", 12.3, turns={"m1": 3}, rounds=2, tools={"look": 4}, failed_calls=1, usage=usage, compactions=1
    )
    assert tally.logs()[0].text in text_of(OWNERS[locale] / "trouble.md").splitlines()


@every_readme
def test_H4_every_language_says_that_all_sandboxes_of_a_workspace_share_one_folder(locale: Locale) -> None:
    labels = load_labels()[locale]
    limits = text_of(OWNERS[locale] / "limits.md")
    (limit,) = re.findall(r"^- \*\*.*(?:\n  .*)*`/workspace`.*(?:\n  .*)*", limits, flags=re.MULTILINE)
    assert labels["box-session-id-template"].label in limit.replace("*", "")
    assert "/workspace" in labels["box-enabled"].help


@every_readme
def test_every_readme_leads_to_all_others(locale: Locale) -> None:
    links = {target.rpartition("/")[2] for target in re.findall(r"\]\(([^)#]+)", text_of(READMES[locale]))}
    assert {page.name for other, page in READMES.items() if other is not locale} <= links


@every_page
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        home = next((home for home in (REPOSITORY, PICTURES) if target.startswith(home)), None)
        if home is not None:
            assert (ROOT / target.removeprefix(home).partition("#")[0]).exists(), target
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        assert (page.parent / path).exists() if path else heading in headings(page), target


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    found = re.findall(r"^#+ (.+)$", text_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@every_page
def test_every_path_that_is_named_exists(page: Path) -> None:
    folders = (
        "assets",
        "callformats",
        "components",
        "config",
        "demo",
        "docs",
        "local",
        "readme",
        "runner",
        "tests",
        "weights",
    )
    named = [code for code in code_in(page) if re.fullmatch(rf"(?:{'|'.join(folders)})/[\w./-]*", code)]
    named += [code for code in code_in(page) if re.fullmatch(r"[\w-]+\.(?:md|txt|toml|yaml)", code)]
    assert [path for path in named if not (ROOT / path).exists()] == []


@every_page
def test_every_test_that_is_named_exists(page: Path) -> None:
    named = {code for code in code_in(page) if re.fullmatch(r"test_\w+", code)}
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")) if named else ""
    assert {name for name in named if f"def {name}(" not in tests} == set()


@every_page
def test_every_make_target_that_is_named_is_one(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", text_of(ROOT / "Makefile"), flags=re.MULTILINE))
    named = {target for code in code_in(page) for target in re.findall(r"\bmake ([a-z][\w-]*)", code)}
    assert named <= targets


@every_page
def test_every_variable_of_the_environment_that_is_named_is_read_by_the_demo_or_the_tests(page: Path) -> None:
    ours = r"\b(?:MODEL|DEMO|LOCALAGENT)_[A-Z_]*[A-Z]\b"
    folders = (ROOT / "demo", ROOT / "weights", ROOT / "tests", ROOT / "tests" / "e2e")
    sources = [ROOT / "Makefile", *(module for folder in folders for module in folder.glob("*.py"))]
    known = {name for source in sources for name in re.findall(ours, text_of(source))}
    assert {name for code in code_in(page) for name in re.findall(ours, code)} <= known


@every_page
def test_every_code_of_a_failure_that_is_named_is_one(page: Path) -> None:
    modules = {f"runner.{path.stem}" for path in (ROOT / "runner").iterdir()} | {"runner.compaction.checkpoint"}
    named = {code for code in code_in(page) if re.fullmatch(r"runner\.[a-z_.]+[a-z]", code)} - modules
    said = "".join(text_of(module) for module in (ROOT / "runner").rglob("*.py"))
    assert [code for code in named if code not in said] == []


@every_page
def test_no_page_knows_somebodys_machine(page: Path) -> None:
    assert re.findall(r"(?<![\w.~])/(?:home|root|opt|work|tmp|Users)/", text_of(page)) == []


def test_the_walk_names_every_module_and_room_of_the_agent() -> None:
    text = text_of(ARCHITECTURE)
    modules = [path for path in (ROOT / "runner").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    modules += [*(ROOT / "local").glob("*.py"), *(ROOT / "weights").glob("*.py")]
    named = [path for path in modules if not path.name.startswith("__")]
    names = [f"{path.parent.name}/{path.name}" + ("" if path.suffix else "/") for path in named]
    assert [name for name in names if name not in text] == []


def test_the_walk_shows_the_layers_that_are_checked() -> None:
    contract = re.search(r"^layers = \[(.*?)^\]", text_of(ROOT / "pyproject.toml"), flags=re.DOTALL | re.MULTILINE)
    assert contract is not None
    checked = [re.sub(r"runner\.", "", line) for line in re.findall(r'"([^"]+)"', contract[1])]
    block = next(part for part in text_of(ARCHITECTURE).split("```") if part.strip().startswith("components\n"))
    assert [re.sub(r"runner\.", "", line) for line in block.strip().splitlines()] == checked


def requirements(name: str) -> set[str]:
    lines = [line.split("#")[0].strip() for line in text_of(ROOT / name).splitlines()]
    return {Requirement(line).name for line in lines if line and not line.startswith("-")}


def test_every_dependency_has_its_reason_in_the_part_of_its_file() -> None:
    parts = re.split(r"^## ", text_of(ROOT / "docs" / "dependencies.md"), flags=re.MULTILINE)[1:]
    told: dict[str, set[str]] = {}
    for part in parts:
        (file,) = re.findall(r"`(requirements[\w-]*\.txt)`", part.splitlines()[0])
        rows = re.findall(r"^\| ([^|]+) \|", part, flags=re.MULTILINE)
        told[file] = {name for row in rows for name in row.split(", ")} - {"Package", "---"}
    assert told == {path.name: requirements(path.name) for path in ROOT.glob("requirements*.txt")}


def test_the_changes_begin_with_the_version_of_the_package() -> None:
    version = yaml.safe_load(text_of(ROOT / "manifest.yaml"))["metadata"]["version"]
    assert re.findall(r"^## (\S+)", text_of(ROOT / "CHANGELOG.md"), flags=re.MULTILINE)[0] == version
    assert f"-{version}.lbpkg" in text_of(READMES[Locale.EN_US])


@every_readme
def test_every_language_tells_as_many_limits_and_troubles_as_the_first(locale: Locale) -> None:
    for name, line in {"limits": r"^- \*\*", "trouble": r"^\| (?!---)"}.items():
        pages = [text_of(OWNERS[each] / f"{name}.md") for each in (Locale.EN_US, locale)]
        first, page = (len(re.findall(line, text, flags=re.MULTILINE)) for text in pages)
        assert page == first > 10, name


@every_readme
def test_N2_the_same_pages_and_parts_are_there_in_every_language(locale: Locale) -> None:
    names = {path.name for path in OWNERS[locale].glob("*.md")}
    assert names == {"demo.md", "limits.md", "load.md", "migration.md", "settings.md", "trouble.md"}
    heads = [re.findall(r"^#+ ", text_of(READMES[each]), flags=re.MULTILINE) for each in (Locale.EN_US, locale)]
    assert heads[0] == heads[1]


def test_N2_the_readme_is_short_and_begins_with_what_an_owner_needs() -> None:
    text = text_of(READMES[Locale.EN_US])
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    assert len(text.split()) <= 1_200
    assert len(" ".join(parts[1:3]).split()) <= 400, "the settings that matter, and what to do in trouble"
    assert parts[0].count("\nmake ") == 2, "one box of two lines"


@every_readme
def test_N2_pictures_and_links_of_a_readme_show_in_the_repository_and_in_LangBot(locale: Locale) -> None:
    text = text_of(READMES[locale])
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text)
    links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", text)
    assert len(pictures) == 3
    assert all(
        picture.startswith("assets/" if locale is Locale.EN_US else f"{PICTURES}assets/") for picture in pictures
    )
    assert all(link.startswith("https://") for link in links)


# The page of rules names modules and tests that exist, and the test that falls for each fault of `tests.mutants`.

RULES = ROOT / "docs" / "rules.md"
TRIED_UNDER_ANOTHER_NAME = frozenset({"D8"})
"""Rules whose tests do not begin with their name: the module of the tests says which rule it tries."""


@cache
def entries() -> dict[str, str]:
    """What stands under each rule, by its name: `K4` → its text and the list behind it."""
    found = re.split(r"^\*\*([A-Z](?:\d+|[a-z]))\. ", RULES.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def is_built(entry: str) -> bool:
    return "*Not built yet.*" not in entry


BUILT = [rule for rule, entry in entries().items() if is_built(entry)]


def test_the_page_of_rules_has_every_letter() -> None:
    assert {rule[0] for rule in entries()} == set("ABCDEFGHIJKLMNQS")
    assert len(BUILT) > 80


def test_every_rule_that_a_test_cites_stands_on_the_page() -> None:
    texts = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    tested = {rule for text in texts for rule in re.findall(r"def test_([A-Z](?:\d+|[a-m]))_", text)}
    assert sorted(tested - entries().keys()) == []


@pytest.mark.parametrize("rule", BUILT)
def test_every_rule_that_is_built_names_what_keeps_and_what_tries_it(rule: str) -> None:
    entry = entries()[rule]
    assert re.search(r"^- Tried by ", entry, flags=re.MULTILINE)
    tried = entry.partition("- Tried by ")[2]
    places = [ROOT / place for place in re.findall(r"`(tests/[^`:]+)`", tried)]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))]
    said = "".join(file.read_text("utf-8") for file in files)
    assert not places or f"def test_{rule}_" in said or (rule in TRIED_UNDER_ANOTHER_NAME and rule in said)


@pytest.mark.parametrize("rule", sorted({mutant.rule for mutant in all_mutants()}))
def test_every_fault_that_is_made_names_its_test_under_its_rule(rule: str) -> None:
    tests = {mutant.test.rpartition("::")[2] for mutant in all_mutants() if mutant.rule == rule}
    assert {test for test in tests if f"`{test}`" not in entries()[rule]} == set()


def test_the_page_of_rules_is_what_stands_in_the_repository() -> None:
    named = re.findall(r"`((?:runner|callformats|config|tests|local|demo)/[\w./-]+)`", RULES.read_text("utf-8"))
    assert [path for path in named if not (Path(ROOT) / path).exists()] == []
