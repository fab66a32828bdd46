"""LangBot's own requesters, as its model manager makes them of a provider's name and address.

What a provider sees of a request, and what the plugin sees of a reply, is decided between the two: in LangBot's
requester and in LiteLLM below it. So the tests of this folder imitate neither; they run the installed ones, on an
address of loopback.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from functools import cache
from types import SimpleNamespace
from typing import Any

# Before LiteLLM is imported, or it looks for its table of prices on the network.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm
from langbot.pkg.api.http.context import ExecutionContext
from langbot.pkg.discover.engine import ComponentDiscoveryEngine
from langbot.pkg.entity.persistence.model import LLMModel
from langbot.pkg.provider.modelmgr.errors import RequesterError as HostRequesterError
from langbot.pkg.provider.modelmgr.modelmgr import ModelManager
from langbot.pkg.provider.modelmgr.reasoning import model_with_reasoning_level
from langbot.pkg.provider.modelmgr.requester import RuntimeLLMModel, RuntimeProvider
from langbot.pkg.provider.tools.toolmgr import ToolManager
from langbot.pkg.workspace.entities import WorkspaceExecutionBinding
from langbot_plugin.api.entities.builtin.provider.message import Message
from langbot_plugin.api.entities.builtin.resource.tool import LLMTool

from tests.host import Model, ModelRequest, Reply, ToolCall
from tests.host.texts import RequesterError

Json = dict[str, Any]

REQUESTERS = "pkg/provider/modelmgr/requesters"
"""Where LangBot keeps the manifests of its requesters."""

_PLACE = ExecutionContext(instance_uuid="i", workspace_uuid="w", placement_generation=1)
_KIND = "LLMAPIRequester"

logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
litellm.suppress_debug_info = True
# It would ask the network for the tokenizer of a model by the model's name.
litellm.disable_hf_tokenizer_download = True


class Border:
    """LangBot's side of the wire: `model` gives a model of the test host that asks a provider as LangBot does.

    `async with Border() as border`; leaving closes the connections of all its models.
    """

    def __init__(self) -> None:
        self._manager = ModelManager(_application())
        self._manager.requester_components = manifests()
        self._manager.requester_dict = {
            one.metadata.name: one.get_python_component_class()
            for one in self._manager.requester_components
            if not one.spec.get("litellm_provider")
        }
        self._providers: list[RuntimeProvider] = []

    async def __aenter__(self) -> Border:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        for provider in self._providers:
            await provider.requester.aclose()

    async def model(
        self,
        id: str,
        requester: str,
        name: str,
        base_url: str,
        *,
        abilities: frozenset[str] = frozenset({"func_call", "vision", "reasoning"}),
        streamed: bool = True,
        extra_args: Json | None = None,
    ) -> Model:
        """A model named `name` behind the requester `requester`. `streamed` False: it can only be invoked."""
        saved = {"uuid": id, "name": id, "requester": requester, "base_url": base_url, "api_keys": ["key"]}
        provider = await self._manager.load_provider(_PLACE, saved)
        self._providers.append(provider)
        entity = LLMModel(
            uuid=id,
            workspace_uuid=_PLACE.workspace_uuid,
            name=name,
            provider_uuid=id,
            abilities=sorted(abilities),
            extra_args=extra_args or {},
            reasoning_config={"level": "provider_default"},
        )
        runtime = await self._manager.load_llm_model_with_provider(_PLACE, entity, provider)
        operations = frozenset({"invoke", "count_tokens", *(["stream"] if streamed else [])})
        return Model(id, default=_Asking(runtime).answer, abilities=abilities, operations=operations)


@cache
def manifests() -> list[Any]:
    """What the installed LangBot ships to speak to providers, each with `metadata.name` and `spec`."""
    components = ComponentDiscoveryEngine(_application()).load_component_manifests_in_dir(REQUESTERS)
    return [one for one in components if one.kind == _KIND]


class _Asking:
    """Asks the provider for each reply of a model, and hands LangBot's chunks to the test host as they come."""

    def __init__(self, model: RuntimeLLMModel) -> None:
        self._model = model

    async def answer(self, request: ModelRequest) -> Reply:
        if request.stream:
            return Reply(events=self._events(request), usage={})
        try:
            message = await self._model.provider.invoke_llm(**self._asked(request))
        except HostRequesterError as error:
            raise RequesterError(str(error)) from error
        text = message.content if isinstance(message.content, str) else ""
        fields = message.provider_specific_fields
        return Reply(text, tool_calls=_calls(message), provider_specific_fields=fields, usage={})

    async def _events(self, request: ModelRequest) -> AsyncIterator[Json]:
        try:
            async for chunk in self._model.provider.invoke_llm_stream(**self._asked(request)):
                yield {"chunk": chunk.model_dump()}
        except HostRequesterError as error:
            raise RequesterError(str(error)) from error

    def _asked(self, request: ModelRequest) -> Json:
        return {
            "query": None,
            "model": model_with_reasoning_level(self._model, request.level),
            "messages": [Message.model_validate(one) for one in request.messages],
            "funcs": [LLMTool.model_validate({"human_desc": "", **one, "func": _unused}) for one in request.funcs],
            "extra_args": dict(request.extra_args),
            "remove_think": request.thinking_removed,
            "execution_context": _PLACE,
        }


def _calls(message: Message) -> list[ToolCall]:
    return [
        ToolCall(
            one.function.name,
            one.function.arguments,
            id=one.id,
            provider_specific_fields=one.provider_specific_fields,
        )
        for one in message.tool_calls or []
    ]


async def _unused(**_given: object) -> None:
    """Stands where LangBot keeps the function of a tool; the requester never calls it."""


def _application() -> SimpleNamespace:
    """The little of LangBot's application that its model manager and requesters ask for."""

    async def binding(workspace_uuid: str, *, expected_generation: int | None = None) -> WorkspaceExecutionBinding:
        return WorkspaceExecutionBinding(
            instance_uuid=_PLACE.instance_uuid,
            workspace_uuid=workspace_uuid,
            placement_generation=_PLACE.placement_generation,
            write_fenced=False,
            state="active",
        )

    made = SimpleNamespace(
        logger=logging.getLogger("langbot.border"),
        workspace_service=SimpleNamespace(get_execution_binding=binding),
        instance_config=SimpleNamespace(data={}),
    )
    made.tool_mgr = ToolManager(made)
    return made
