"""GGUF models: the pinned catalogue, the verified fetch, and llama.cpp in this process. Knows no LangBot."""
