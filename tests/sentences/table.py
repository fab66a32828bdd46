"""Which scenarios show which sentence of the small models' rules (S2, S3, S6, S7, S8). S4 and S5 have a folder's own.

Each scenario plays twice, with and without the part. A sentence that says what is not built has none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from components.runner.default import DefaultRunner
from runner.small.part import EVERY_PART, Part, Parts, all_but
from tests.host import Model, RunRecord, TestHost, Tool, full_manifest
from tests.runs.scenes import assert_ended
from tests.written import CITY, bare


@dataclass(frozen=True)
class Sentence:
    """One sentence in short, and the names of the tests that show it; `elsewhere`: tests of single modules beside."""

    says: str
    scenarios: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    none_because: str = ""


def _shown(says: str, *scenarios: str, elsewhere: tuple[str, ...] = ()) -> Sentence:
    return Sentence(says, scenarios, elsewhere)


RANKING = "tests/tools/test_ranking.py"
LADDER = "tests/small/test_answers.py::test_S3_no_two_corrections_in_a_row_are_equal"
LOOP_TESTS = "tests/small/test_answers.py"
COSTS = "tests/small/test_prompt.py"
JOBS = "tests/runs/test_small_jobs.py"
OPEN_JOBS = "tests/runs/test_small_jobs.py"
LISTENING = "tests/runs/test_small_profile.py"
EVIDENCE = "tests/runs/test_small_evidence.py"

SENTENCES: dict[str, Sentence] = {
    "S2.1": _shown(
        "ranking, short schemas and the check of arguments are those of the page",
        "test_S2_the_tools_most_like_the_request_are_shown_and_no_more",
        "test_S2_a_word_of_the_name_outweighs_words_of_descriptions_and_ties_keep_their_order",
        "test_S2_a_tool_used_recently_gets_a_bonus",
        "test_S2_descriptions_are_cut_at_400_and_160_characters",
        "test_S2_the_first_problem_of_the_arguments_is_told_in_one_sentence",
        elsewhere=(
            f"{RANKING}::test_S2_the_example_of_the_page_ranks_the_cart_first",
            f"{RANKING}::test_S2_the_first_problem_has_the_words_of_the_page",
        ),
    ),
    "S2.2": _shown(
        "ranking is done afresh each step",
        "test_S2_ranking_is_done_afresh_each_step",
        "test_S2_tools_that_stay_keep_their_places_so_that_an_engine_need_not_read_the_prompt_anew",
    ),
    "S2.3": _shown("Chinese and Japanese requests rank", "test_S2_chinese_and_japanese_requests_rank_too"),
    "S2.4": _shown(
        "the other tools are an index behind load_tool",
        "test_S2_the_other_tools_are_an_index_and_load_tool_brings_a_schema_in",
    ),
    "S3.1": _shown(
        "history of twelve turns; results of 1,500 characters; the next step; finished calls count; what fits",
        "test_S3_the_history_is_the_last_twelve_turns_from_a_user_turn_on",
        "test_S3_results_are_cut_to_1500_characters",
        "test_S3_a_request_that_ends_on_a_tool_result_gets_a_user_turn_for_the_next_step",
        "test_S3_calls_that_a_failed_run_had_finished_count_for_the_loop_breaker",
        "test_S3_a_call_that_had_failed_before_the_run_counts_as_the_last_failure",
        "test_S3_a_request_that_does_not_fit_is_tried_with_4_2_and_1_tools",
        "test_S3_then_the_oldest_turns_go_and_the_newest_stays",
        "test_S3_what_is_still_too_long_is_said_clearly",
    ),
    "S3.2": _shown(
        "the system prompt: a worked call, error codes, site instructions, the place made harmless",
        "test_S3_the_prompt_holds_one_worked_call_of_the_first_tool_shown",
        "test_S3_the_prompt_tells_what_the_error_codes_in_use_mean",
        "test_S3_the_prompt_holds_the_site_instructions_under_their_own_heading",
        "test_S3_the_prompt_tells_where_the_chat_is",
        "test_S3_where_the_chat_is_cannot_be_an_order",
    ),
    "S3.3": _shown(
        "the newest request is restated after each step, in the prompt only",
        "test_S3_after_each_step_the_newest_request_is_restated_in_the_prompt_only",
        "test_Sf_behind_a_successful_step_the_line_asks_what_was_done_and_behind_a_failed_one_it_does_not",
    ),
    "S3.4": _shown("calls run one at a time", "test_S3_calls_run_one_at_a_time_whatever_the_binding_says"),
    "S3.5": _shown(
        "one generation an attempt, raced against a stop and the limit of a step",
        "test_S3_a_step_has_a_limit_of_its_own_that_ends_with_a_plain_sentence",
        "test_S3_the_limit_of_a_step_begins_anew_at_the_first_token",
        "test_S3_a_generation_is_raced_against_a_wish_to_stop",
    ),
    "S3.6": _shown(
        "prose is held, shown after the checks, and never corrected once visible",
        "test_S3_prose_is_held_to_the_end_of_its_turn",
        "test_S3_prose_is_shown_only_after_the_checks",
        "test_S3_nothing_is_corrected_after_visible_text",
    ),
    "S3.7": _shown(
        "the reply tool streams only when no check can send it back",
        "test_S3_the_text_of_the_reply_tool_streams_when_no_check_can_send_it_back",
        "test_S3_else_the_text_of_the_reply_tool_is_held_too",
    ),
    "S3.8": _shown(
        "once a step: a failure passed over, work passed on, an echo",
        "test_S3_a_reply_that_passes_over_the_last_failed_call_goes_back_once_with_the_error",
        "test_S3_a_reply_that_tells_the_user_to_use_a_tool_goes_back_once",
        "test_S3_an_echo_of_an_earlier_result_becomes_its_gist",
    ),
    "S3.9": _shown(
        "at max-steps a gist and a plain statement",
        "test_S3_at_max_steps_the_run_ends_with_the_gist_and_a_plain_statement",
    ),
    "S3.10": _shown(
        "the runner's sentences have the shapes of the page",
        "test_S3_what_is_still_too_long_is_said_clearly",
        "test_S3_a_step_has_a_limit_of_its_own_that_ends_with_a_plain_sentence",
        "test_S3_the_runners_sentences_have_their_shapes_in_the_language_of_the_chat",
        "test_S3_the_same_call_with_the_same_result_is_flagged_once_then_stops",
        "test_S3_at_max_steps_the_run_ends_with_the_gist_and_a_plain_statement",
        "test_S3_the_first_slip_is_answered_with_a_concrete_valid_example",
    ),
    "S3.11": _shown(
        "the ladder: example, divert, off, stop; counted by tool, set back by a valid call",
        "test_S3_the_first_slip_is_answered_with_a_concrete_valid_example",
        "test_S3_the_second_slip_diverts_to_other_tools_with_another_sampling",
        "test_S3_the_third_slip_switches_the_tool_off_and_says_so_openly",
        "test_S3_the_fifth_slip_stops_the_run_with_a_reason",
        "test_S3_a_valid_call_sets_the_ladder_back",
    ),
    "S3.12": _shown("a second bad reply ends nothing", "test_S3_a_second_bad_reply_does_not_end_the_run"),
    "S3.13": _shown(
        "bad calls are never run and never in the history",
        "test_S3_bad_calls_are_never_run_and_never_enter_the_history",
    ),
    "S3.14": _shown(
        "no two corrections in a row are equal",
        "test_S3_no_two_corrections_in_a_row_are_equal",
        elsewhere=(LADDER,),
    ),
    "S3.15": _shown(
        "the loop breaker judges by outcome: flagged once, then stopped; cycles; changing results; failures",
        "test_S3_the_same_call_with_the_same_result_is_flagged_once_then_stops",
        "test_S3_cycles_up_to_five_calls_are_seen",
        "test_S3_an_action_may_repeat_while_its_result_changes",
        "test_S3_a_failing_action_is_in_a_circle_whatever_its_failures_say",
        "test_S3_who_is_stopped_in_circles_still_reads_what_the_last_call_brought",
        elsewhere=(f"{LOOP_TESTS}::test_S3_a_cycle_of_up_to_five_is_flagged_once_and_then_stops",),
    ),
    "S3.16": _shown(
        "reads are exempt, yet stopped after eight identical results",
        "test_S3_reads_are_exempt_from_the_loop_breaker",
        "test_S3_reads_are_stopped_after_eight_identical_results",
    ),
    "Sg": _shown(
        "an id in arguments that stands nowhere is asked about once",
        "test_Sg_an_id_that_stands_nowhere_is_asked_about_once_and_then_taken",
    ),
    "S3.17": _shown(
        "chants and endless white space are stopped",
        "test_S3_text_that_chants_is_stopped",
        "test_S3_a_reply_of_white_space_without_end_is_stopped",
    ),
    "S3.18": _shown("reasons are shown to the user", "test_S3_the_person_is_told_why_a_run_stopped"),
    "S3.19": _shown(
        "the gate at the end: open items, a failure claimed as done, a write nobody looked at; once",
        "test_S3_ending_with_open_items_of_a_todo_list_is_bounced_once_then_stands",
        "test_S3_ending_with_a_failed_last_action_claimed_as_done_is_bounced_once",
        "test_S3_ending_with_a_write_that_nothing_looked_at_is_bounced_once",
        "test_S3_a_write_is_not_asked_about_where_no_reading_tool_is_granted",
    ),
    "S3.20": _shown(
        "an empty reply is tried once more, then said plainly",
        "test_S3_an_empty_or_thought_only_reply_is_tried_once_more_with_other_sampling",
        "test_S3_two_empty_replies_end_with_a_plain_message",
    ),
    "S4.1": _shown(
        "past a soft limit a call goes on as a job, with an id and what is known",
        "test_S4_a_call_past_the_limit_goes_on_as_a_job_with_an_id_and_what_is_known",
        elsewhere=(f"{JOBS}::test_S4_without_jobs_the_loop_stalls_until_the_tool_has_ended",),
    ),
    "S4.2": _shown(
        "its output can be asked for and exists once the Host returns it",
        "test_S4_its_output_can_be_asked_for_once_there_is_a_job_and_exists_once_the_host_returns_it",
    ),
    "S4.3": _shown(
        "the end says what is still open: given up, possibly still running",
        "test_S4_the_end_says_what_is_given_up_and_may_still_run",
        elsewhere=(f"{OPEN_JOBS}::test_S4_without_jobs_nobody_hears_that_a_tool_may_still_be_running",),
    ),
    "S4.4": Sentence(
        "where exec is granted, one follow-up may ask what listens",
        elsewhere=(f"{LISTENING}::test_S4_without_jobs_the_model_never_learns_what_listens",),
        none_because="it needs a sandbox; played with and without the part in its own module",
    ),
    "S5.1": _shown(
        "new error lines of the same set of tools ride along once, labelled",
        "test_S5_new_errors_of_a_console_ride_along_with_an_action",
        elsewhere=(f"{EVIDENCE}::test_S5_each_of_these_is_heard_with_the_part_and_never_without_it",),
    ),
    "S6.1": _shown(
        "a binding without these options gets the golden prompt",
        "test_S6_a_binding_without_these_options_gets_the_golden_prompt_byte_for_byte",
        "test_S6_without_skills_their_tools_are_in_no_prompt",
        "test_S6_skills_cost_one_line_each_until_they_are_read",
    ),
    "S6.2": _shown(
        "a hint is given once a conversation, when its moment comes",
        "test_S6_a_hint_is_given_once_a_conversation_when_its_moment_comes",
    ),
    "S6.3": Sentence(
        "every added line is counted in a table",
        elsewhere=(
            f"{COSTS}::test_S6_every_added_line_costs_what_is_written_here",
            f"{COSTS}::test_S6_no_line_of_prompt_text_is_left_out_of_the_table",
        ),
        none_because="it is about a table, not about a run",
    ),
    "S6.4": Sentence("memory as files is not built", none_because="nothing is built that could be shown"),
    "S7.1": _shown(
        "untrusted text of every kind is inert and framed as data",
        "test_S7_markers_in_results_of_any_type_are_inert",
        "test_S7_a_tool_of_a_name_never_seen_before_is_guarded_like_any",
        "test_S7_results_are_framed_as_data",
        "test_S7_markers_in_retrieved_text_are_inert",
        "test_S7_retrieved_text_is_framed_as_data",
        "test_S7_markers_in_file_names_are_inert",
        "test_S7_markers_in_a_history_that_others_wrote_are_inert",
        "test_S7_results_of_earlier_runs_are_inert_and_framed_again",
        elsewhere=("tests/guards/test_foreign_text.py::test_S7_every_known_marker_becomes_inert_and_stays_readable",),
    ),
    "S7.2": _shown(
        "inert forms are turned back in a call's arguments",
        "test_S7_inert_forms_are_turned_back_in_a_calls_arguments",
    ),
    "S7.3": _shown(
        "no call is read from a defanged text, none without markers from an untrusted one; defanging twice is once",
        "test_S7_a_call_in_a_result_is_never_run_though_the_model_repeats_it",
        elsewhere=(
            "tests/callformats/test_prose.py::test_S7_no_call_is_read_from_a_defanged_text_by_its_markers",
            "tests/guards/test_foreign_text.py::test_S7_defanging_twice_changes_nothing",
        ),
    ),
    "S7.4": _shown(
        "what the loop itself writes is never made inert",
        "test_S7_what_the_loop_itself_writes_is_never_made_inert",
    ),
    "S8.1": _shown(
        "the reply tool: its text is the answer, streamed, and never a tool call",
        "test_S8_the_text_of_the_reply_tool_is_the_answer_and_never_a_tool_call",
        "test_S8_the_answer_is_streamed_as_it_is_written_decoded_out_of_the_json",
        "test_S8_an_answer_by_the_reply_tool_stands_in_the_history_as_an_answer",
        "test_J2_a_weak_model_that_has_to_answer_itself_does_so_by_one_call_and_no_more",
        "test_J2_plain_words_that_nobody_would_get_go_back_once",
        "test_J2_an_answer_by_a_call_is_checked_before_it_is_sent",
        "test_J2_where_the_runner_replies_the_text_of_the_reply_tool_goes_out_once",
    ),
    "S8.2": _shown(
        "earlier turns are replayed in the form the model is asked to write",
        "test_S8_earlier_turns_are_replayed_in_the_form_the_model_is_asked_to_write",
        "test_J2_an_answer_sent_by_a_call_is_replayed_once",
    ),
    "S8.3": _shown(
        "guided adds a schema with one branch for each tool shown, off by default",
        "test_S8_guided_adds_a_schema_with_one_branch_for_each_tool_shown",
        "test_S8_the_tools_shown_as_an_index_have_no_branch",
        "test_S8_no_provider_parameter_is_sent_before_a_model_needs_it",
        "test_S8_auto_goes_to_the_schema_once_a_model_has_shown_that_it_needs_it",
    ),
    "S8.4": _shown(
        "a schema refused or ignored is noticed, remembered for the run, and the next best form used",
        "test_S8_a_schema_that_is_refused_is_left_out_for_the_run_and_the_next_best_form_used",
        "test_S8_a_schema_that_is_ignored_is_noticed_by_the_first_reply",
    ),
    "S8.5": Sentence(
        "the same in the engine of the same process", none_because="it is shown where that door has its tests"
    ),
    "C4": _shown(
        "thoughts of a model that writes its calls as text are never visible",
        "test_C4_thoughts_of_a_model_that_writes_its_calls_as_text_are_never_visible",
        "test_C4_a_thought_inside_the_reply_tool_is_never_visible",
    ),
}


# A scenario played twice: with everything on, and with the part off that a sentence is about.
#
# A scenario gets the parts of the small profile that are on and gives what is to be seen of its runs, as a plain
# value. What has no switch (the guards have none, on purpose) is put out of work in its one place by a `Change`.

CIRCLES = "I was repeating the same steps"

Scenario = Callable[[Parts], Awaitable[object]]


@dataclass(frozen=True)
class Change:
    """`value` in the place of `owner.name` while the scenario runs."""

    owner: object
    name: str
    value: object


async def shows(off: Part | Change, scenario: Scenario, *, wanted: object, without: object) -> None:
    """The scenario gives `wanted`, and with the part off `without`, which is something else."""
    assert wanted != without
    assert await scenario(EVERY_PART) == wanted
    if isinstance(off, Part):
        assert await scenario(all_but(off)) == without
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(off.owner, off.name, off.value)
        assert await scenario(EVERY_PART) == without


def stage(
    parts: Parts,
    *replies: Any,
    tools: Sequence[Tool] = (),
    profile: str = "small",
    form: str = "json",
    host: dict[str, Any] | None = None,
    **config: Any,
) -> TestHost:
    """A Host with one model `m1`. `config` keys with underscores are fields with dashes; `host` goes to TestHost."""
    fields = {name.replace("_", "-"): value for name, value in config.items()}
    own = {"model-profile": profile, "tool-call-format": form, "date-grounding": False, "notice-language": "en_US"}
    return TestHost(
        DefaultRunner(parts=parts),
        manifest=full_manifest(),
        models=[Model("m1", list(replies))],
        tools=list(tools),
        config={**own, **fields},
        **(host or {}),
    )


async def play(
    parts: Parts, *replies: Any, text: str = "weather in Oslo?", tools: Sequence[Tool] = (), **given: Any
) -> RunRecord:
    """One message on such a stage, to the sound end of its run."""
    run = await stage(parts, *replies, tools=tools or [look()], **given).say(text)
    assert_ended(run)
    return run


def look(result: Any = "It is sunny.", **given: Any) -> Tool:
    """A tool that reads, by its name; one argument is required."""
    return _tool("get_weather", result, given)


def act(name: str = "save_note", result: Any = "ok", **given: Any) -> Tool:
    """A tool that does something."""
    return _tool(name, result, given)


def fails(why: Callable[[], str] = lambda: "the disk is full") -> Tool:
    """A tool that cannot do it."""

    def fail(_: Any) -> str:
        raise RuntimeError(why())

    return act("save_note", fail)


def _tool(name: str, result: Any, given: dict[str, Any]) -> Tool:
    made = result if callable(result) else lambda _: result
    return Tool(name, takes_dict=True, fn=made, **{"parameters": CITY, **given})


SAVE = bare("save_note", city="x")


def in_full(system: str, names: Sequence[str]) -> list[str]:
    """Which of these tools a prompt shows with their schemas, in its order."""
    places = [(system.find(f'"name": "{name}", "description"'), name) for name in names]
    return [name for place, name in sorted(places) if place >= 0]
