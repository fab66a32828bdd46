"""The runner's own sentences: what a person in the chat reads that no model wrote.

They are few and plain, each says the next step where there is one, and they exist in all eight locales.
"""

from config.notices.language import locale_of
from config.notices.notice import MAX_VALUE_CHARS, Notice, say

__all__ = ["MAX_VALUE_CHARS", "Notice", "locale_of", "say"]
