"""llama.cpp's OpenAI-compatible server for one GGUF file, on loopback.

`python -m demo.engine_server MODEL PORT NAME`, as a child process of the demo.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from weights import engine


def serve(model: Path, port: int, name: str, context_tokens: int) -> None:
    """Load `model` and answer until the process is told to end."""
    server = engine.load(model, port=port, name=name, context_tokens=context_tokens)
    print(f"listening on {server.listening_address}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    # The server's own threads keep the interpreter from ending; nothing is left to save.
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("name")
    parser.add_argument("--context", type=int, default=engine.CONTEXT_TOKENS, help="tokens")
    options = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    serve(options.model, options.port, options.name, options.context)


if __name__ == "__main__":
    main()
