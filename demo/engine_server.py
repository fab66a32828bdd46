"""llama.cpp's OpenAI-compatible server for one GGUF file, on loopback.

`python -m demo.engine_server MODEL PORT NAME`, as a child process of the demo.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
from pathlib import Path

CONTEXT_TOKENS = 8192


def threads() -> int:
    """One thread per core this process may use, at most 8: more gain nothing at these model sizes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, 8)


def serve(model: Path, port: int, name: str, context_tokens: int) -> None:
    """Load `model` and answer until the process is told to end."""
    engine = importlib.import_module("xllamacpp")  # binary wheel without type information
    params = engine.CommonParams()
    params.model.path = str(model)
    params.model_alias = {name}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads()
    params.use_jinja = True
    params.ui = False
    server = engine.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    # The server's own threads keep the interpreter from ending; nothing is left to save.
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("name")
    parser.add_argument("--context", type=int, default=CONTEXT_TOKENS, help="tokens")
    options = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    serve(options.model, options.port, options.name, options.context)


if __name__ == "__main__":
    main()
