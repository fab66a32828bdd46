"""A person agrees before a tool runs (M): what asks, what people read, what an answer means, what is kept."""
