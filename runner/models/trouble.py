"""Why a model call failed, read from the only thing that crosses the wire: a text.

The Host translates its reasons into the workspace's language and drops codes, so the words of all eight are listed.
Context overflow has a module of its own (`runner.context.overflow`), since it also looks at counts.
"""

from __future__ import annotations

from runner.host.errors import HostCallFailed, HostFailure, ModelTrouble

_WORDS: dict[ModelTrouble, tuple[str, ...]] = {
    ModelTrouble.REASONING_REFUSED: ("reasoning level", "reasoning_level", "reasoning ability", "reasoning_config"),
    ModelTrouble.RATE_LIMIT: (
        "rate limit",
        "rate_limit",
        "too many requests",
        "tokens per min",
        "insufficient balance",
        "请求过于频繁",
        "請求過於頻繁",
        "リクエスト制限",
        "残高",
        "เกินขีดจำกัดคำขอ",
        "vượt giới hạn yêu cầu",
        "límite de solicitudes",
        "лимит запросов",
    ),
    ModelTrouble.TIMEOUT: (
        "timed out",
        "timeout",
        "请求超时",
        "請求逾時",
        "タイムアウト",
        "หมดเวลา",
        "hết thời gian",
        "tiempo de espera",
        "время ожидания",
    ),
    ModelTrouble.NETWORK: (
        "connection failed",
        "connection error",
        "connection closed",
        "connectionclosederror",
        "连接失败",
        "連線失敗",
        "接続に失敗",
        "การเชื่อมต่อล้มเหลว",
        "kết nối thất bại",
        "error de conexión",
        "ошибка подключения",
    ),
    ModelTrouble.AUTH: (
        "invalid api key",
        "api 密钥",
        "api 金鑰",
        "api キー",
        "api-ключ",
        "clave api",
        "khóa api",
        "คีย์ api",
    ),
    ModelTrouble.BAD_REQUEST: (
        "invalid request param",
        "请求参数错误",
        "請求參數錯誤",
        "パラメータが無効",
        "พารามิเตอร์คำขอ",
        "tham số yêu cầu",
        "parámetros de solicitud",
        "некорректные параметры",
    ),
}

BY_KIND = {HostFailure.TIMEOUT: ModelTrouble.TIMEOUT, HostFailure.CONNECTION: ModelTrouble.NETWORK}
"""What the way in which a call to the Host failed says of the model, whatever the words."""


def trouble_of(failure: HostCallFailed) -> ModelTrouble:
    """Classify a failed model call; `OTHER` when no word is known."""
    text = failure.text.lower()
    named = next((trouble for trouble, words in _WORDS.items() if any(word in text for word in words)), None)
    if named is ModelTrouble.REASONING_REFUSED:
        return named
    return BY_KIND.get(failure.kind) or named or ModelTrouble.OTHER
