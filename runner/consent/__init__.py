"""A person agrees before a tool runs (M): what asks, what the request says, what an answer means, and the state it keeps."""
