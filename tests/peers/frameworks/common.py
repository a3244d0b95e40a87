"""The example library, and the ways in which an agent framework attaches its server.

    PROMPTSHELF=target/debug/promptshelf python -m unittest test_fastmcp
"""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
LIBRARY = str(REPOSITORY / "examples/library")
SERVER = os.path.abspath(os.environ.get("PROMPTSHELF", REPOSITORY / "target/debug/promptshelf"))

STDIO_ARGUMENTS = ["serve", LIBRARY, "--stdio"]

# A prompt of the library, its arguments, and a part of its text.
PROMPT = "translate"
ARGUMENTS = {"text": "The shelf is full.", "into": "Portuguese"}
RENDERED = "<text>\nThe shelf is full.\n</text>"

# The answer of every local model.
ANSWER = "A estante está cheia."


@contextmanager
def http_server() -> Iterator[str]:
    """Serves the library over HTTP, and yields the URL of the endpoint."""
    command = [SERVER, "serve", LIBRARY, "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stderr:
                if found := re.search(r"http://\S+/mcp\b", line):
                    break
            else:
                raise AssertionError("the server printed no address")
            yield found[0]
        finally:
            server.terminate()
