"""What a tool raises when it cannot do what it was asked."""


class CannotDo(ValueError):
    """Its text is a sentence for the model: what was wrong and what would be right."""
