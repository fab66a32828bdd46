"""The index of skills: what the model is told of instructions it can load (B3)."""

from __future__ import annotations

from collections.abc import Sequence

from langbot_plugin.api.entities.builtin.runner.resources import SkillResource

from runner.conversation.cut import head
from runner.guards import defang

_DESCRIPTION_LIMIT = 1_024
"""Characters of a skill's description that stand in every prompt."""


def skill_index(skills: Sequence[SkillResource], activate: str | None) -> str | None:
    """One line for each skill and how to load one; None without skills, or when `activate` is not granted.

    `activate` is the tool's name as the model knows it.
    """
    named = [skill for skill in skills if skill.skill_name.strip()]
    if not named or activate is None:
        return None
    lines = "\n".join(f"- {_line(skill)}" for skill in named)
    return defang(
        f"Skills: when one fits the request, call `{activate}` with its name first and follow what it returns.\n{lines}"
    )


def _line(skill: SkillResource) -> str:
    description = " ".join((skill.description or skill.display_name or "").split())
    if len(description) > _DESCRIPTION_LIMIT:
        description = head(description, _DESCRIPTION_LIMIT - 1) + "…"
    name = " ".join(skill.skill_name.split())
    return f"{name}: {description}" if description else name
