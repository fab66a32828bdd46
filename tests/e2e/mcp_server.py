"""A small MCP server over streamable HTTP, for the real LangBot to connect to: `python mcp_server.py PORT`."""

from __future__ import annotations

import sys

from mcp.server.fastmcp import FastMCP


def serve(port: int) -> None:
    server = FastMCP("harbour", host="127.0.0.1", port=port)

    @server.tool()
    def tide(harbour: str) -> str:
        """Tells the next high tide of a harbour."""
        return f"High tide in {harbour} at 14:37, gauge-7719."

    @server.tool()
    def broken_gauge() -> str:
        """A gauge that always fails."""
        raise ValueError("the gauge is under water")

    server.run(transport="streamable-http")


if __name__ == "__main__":
    serve(int(sys.argv[1]))
