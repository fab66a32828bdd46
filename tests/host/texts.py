"""Error texts as LangBot 4.11.2 translates them: langbot/pkg/i18n/locales/*.json, used by
provider/modelmgr/errors.py:RequesterError and requesters/litellmchat.py:_handle_litellm_error."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, get_args

Language = Literal["en_US", "zh_Hans", "zh_Hant", "ja_JP", "es_ES", "ru_RU", "th_TH", "vi_VN"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


class Reason(StrEnum):
    """Why a model call failed. The Host tells the plugin the translated sentence only."""

    CONTEXT_LENGTH = "context_length"
    AUTHENTICATION = "authentication"
    NOT_FOUND = "not_found"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    BAD_REQUEST = "bad_request"
    API_ERROR = "api_error"
    UNKNOWN = "unknown"


_COLUMNS = ("failed", *Reason)

_TABLE: dict[Language, tuple[str, ...]] = {
    "en_US": (
        "Model request failed",
        "Context length exceeded",
        "Invalid API key",
        "Invalid model or endpoint",
        "Rate limit exceeded or insufficient balance",
        "Request timed out",
        "Connection failed",
        "Invalid request parameters",
        "API error",
        "Unknown error",
    ),
    "zh_Hans": (
        "模型请求失败",
        "上下文长度超限",
        "API 密钥无效",
        "模型或接口地址无效",
        "请求过于频繁或余额不足",
        "请求超时",
        "连接失败",
        "请求参数错误",
        "API 错误",
        "未知错误",
    ),
    "zh_Hant": (
        "模型請求失敗",
        "上下文長度超出限制",
        "API 金鑰無效",
        "模型或介面位址無效",
        "請求過於頻繁或餘額不足",
        "請求逾時",
        "連線失敗",
        "請求參數錯誤",
        "API 錯誤",
        "未知錯誤",
    ),
    "ja_JP": (
        "モデルへのリクエストに失敗しました",
        "コンテキスト長の上限を超えました",
        "API キーが無効です",
        "モデルまたはエンドポイントが無効です",
        "リクエスト制限を超えたか、残高が不足しています",
        "リクエストがタイムアウトしました",
        "接続に失敗しました",
        "リクエストのパラメータが無効です",
        "API エラー",
        "不明なエラー",
    ),
    "es_ES": (
        "Error en la solicitud al modelo",
        "Se superó el límite de contexto",
        "Clave API no válida",
        "Modelo o endpoint no válido",
        "Límite de solicitudes excedido o saldo insuficiente",
        "La solicitud agotó el tiempo de espera",
        "Error de conexión",
        "Parámetros de solicitud no válidos",
        "Error de API",
        "Error desconocido",
    ),
    "ru_RU": (
        "Ошибка запроса к модели",
        "Превышена длина контекста",
        "Недействительный API-ключ",
        "Некорректная модель или адрес API",
        "Превышен лимит запросов или недостаточно средств",
        "Время ожидания запроса истекло",
        "Ошибка подключения",
        "Некорректные параметры запроса",
        "Ошибка API",
        "Неизвестная ошибка",
    ),
    "th_TH": (
        "คำขอไปยังโมเดลล้มเหลว",
        "ความยาวบริบทเกินขีดจำกัด",
        "คีย์ API ไม่ถูกต้อง",
        "โมเดลหรือจุดเชื่อมต่อไม่ถูกต้อง",
        "เกินขีดจำกัดคำขอหรือยอดเงินไม่เพียงพอ",
        "คำขอหมดเวลา",
        "การเชื่อมต่อล้มเหลว",
        "พารามิเตอร์คำขอไม่ถูกต้อง",
        "ข้อผิดพลาด API",
        "ข้อผิดพลาดที่ไม่ทราบสาเหตุ",
    ),
    "vi_VN": (
        "Yêu cầu đến mô hình thất bại",
        "Đã vượt quá độ dài ngữ cảnh",
        "Khóa API không hợp lệ",
        "Mô hình hoặc địa chỉ API không hợp lệ",
        "Vượt giới hạn yêu cầu hoặc số dư không đủ",
        "Yêu cầu đã hết thời gian chờ",
        "Kết nối thất bại",
        "Tham số yêu cầu không hợp lệ",
        "Lỗi API",
        "Lỗi không xác định",
    ),
}


def model_error(reason: Reason | str, language: Language) -> str:
    """`<Model request failed>: <reason>` in `language`. A text that is no `Reason` stands as it is, as the messages
    a requester words itself do."""
    row = _TABLE[language]
    try:
        sentence = row[_COLUMNS.index(Reason(reason))]
    except ValueError:
        sentence = str(reason)
    return f"{row[0]}: {sentence}"


class RequesterError(Exception):
    """Stands for the Host's exception of this name: only its class name and text reach the plugin."""
