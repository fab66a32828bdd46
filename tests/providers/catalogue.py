"""Which requester of LangBot is tried against which provider, and which cannot be, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.providers.border import manifests
from tests.providers.dialect import Dialect
from tests.providers.dialects.anthropic import Anthropic
from tests.providers.dialects.deepseek import DeepSeek, MiMo
from tests.providers.dialects.gateway import Gateway, Renaming, Resending, Router, SameIndex
from tests.providers.dialects.gemini import Gemini
from tests.providers.dialects.glm import GLM
from tests.providers.dialects.kimi import Kimi
from tests.providers.dialects.llama_cpp import LlamaCpp
from tests.providers.dialects.minimax import MiniMax
from tests.providers.dialects.mistral import VLLM, Mistral
from tests.providers.dialects.ollama import Ollama
from tests.providers.dialects.openai import Groq, OpenAI
from tests.providers.dialects.qwen import Qwen


@dataclass(frozen=True, slots=True)
class Case:
    """One requester of LangBot, with the model that its form names, before one provider."""

    requester: str
    model: str
    dialect: Callable[[], Dialect]

    @property
    def provider(self) -> str:
        return self.dialect().name

    def __str__(self) -> str:
        return f"{self.requester}, {self.provider}"


# Aggregators and hosts whose own rules nobody has written down stand before other providers: a gateway's rules hold.
DRIVEN: tuple[Case, ...] = (
    Case("302-ai-chat-completions", "gpt-4o", Gateway),
    Case("anthropic-messages", "claude-sonnet-4-5", Anthropic),
    Case("baidu-chat-completions", "ernie-4.5-turbo", Gateway),
    Case("bailian-chat-completions", "qwen-plus", Qwen),
    Case("compshare-chat-completions", "deepseek-ai/DeepSeek-V3", Gateway),
    Case("deepseek-chat-completions", "deepseek-v4-pro", DeepSeek),
    Case("doubao-chat-completions", "doubao-seed-1-6", Gateway),
    Case("gemini-chat-completions", "gemini-3-pro-preview", Gemini),
    Case("gitee-ai-chat-completions", "Qwen2.5-72B-Instruct", Gateway),
    Case("groq-chat-completions", "llama-3.3-70b-versatile", Groq),
    Case("iflytek-chat-completions", "4.0Ultra", Gateway),
    Case("jiekouai-chat-completions", "claude-sonnet-4-5", Gateway),
    Case("litellm-chat", "openai/gpt-4o", OpenAI),
    Case("lmstudio-chat-completions", "qwen2.5-7b-instruct", LlamaCpp),
    Case("mimo-chat-completions", "mimo-v2.5-pro", MiMo),
    Case("minimax-chat-completions", "MiniMax-M2.5", MiniMax),
    Case("mistral-chat-completions", "mistral-large-latest", Mistral),
    Case("modelscope-chat-completions", "Qwen/Qwen2.5-72B-Instruct", Qwen),
    Case("moonshot-chat-completions", "kimi-k2.6", Kimi),
    Case("moonshot-cn-chat-completions", "kimi-k2.6", Kimi),
    Case("new-api-chat-completions", "gpt-4o", Gateway),
    Case("new-api-chat-completions", "gpt-5", Resending),
    Case("new-api-chat-completions", "gpt-4o", Renaming),
    Case("new-api-chat-completions", "gpt-4o", SameIndex),
    Case("ollama-chat", "qwen3:8b", Ollama),
    Case("openai-chat-completions", "gpt-4o", OpenAI),
    Case("openai-chat-completions", "Mistral-Small-3.2-24B", VLLM),
    Case("openai-chat-completions", "Mistral-Small-3.2-24B", LlamaCpp),
    Case("openrouter-chat-completions", "mistralai/mistral-large", Router),
    Case("ppio-chat-completions", "deepseek/deepseek-v3", Gateway),
    Case("qhaigc-chat-completions", "gpt-4o", Gateway),
    Case("qiniu-chat-completions", "deepseek-v3", Gateway),
    Case("shengsuanyun-chat-completions", "openai/gpt-4o", Gateway),
    Case("siliconflow-chat-completions", "Qwen/Qwen2.5-72B-Instruct", Gateway),
    Case("space-chat-completions", "gpt-4o", Gateway),
    Case("tencent-chat-completions", "hunyuan-turbos-latest", Gateway),
    Case("together-chat-completions", "meta-llama/Llama-3.3-70B-Instruct-Turbo", Gateway),
    Case("tokenlab-chat-completions", "gpt-4o", Gateway),
    Case("tokenpony-chat-completions", "qwen3-coder", Gateway),
    Case("volcark-chat-completions", "doubao-seed-1-6", Gateway),
    Case("xai-chat-completions", "grok-4", Gateway),
    Case("yi-chat-completions", "yi-lightning", Gateway),
    Case("zhipuai-chat-completions", "glm-4.6", GLM),
)

NOT_DRIVEN: dict[str, str] = {
    "openai-codex": "always asks chatgpt.com with an account's login: its address cannot be set",
}
"""Chat requesters that no test can reach, with the reason."""


def chat_requesters() -> list[str]:
    """The names of all chat requesters that the installed LangBot ships, in order."""
    return sorted(one.metadata.name for one in manifests() if "llm" in one.spec["support_type"])
