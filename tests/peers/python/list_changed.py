"""The client of the official Python SDK, of generation 1 or 2, receives `list_changed` over legacy Streamable HTTP.

    list_changed.py PROMPTSHELF

This SDK opens its stream of notifications only after it received a session id."""

import asyncio
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

PATIENCE = 20.0


async def receive(url: str, edit) -> None:
    changed = asyncio.Event()

    async def on_message(message) -> None:
        # Generation 1 wraps notifications.
        if type(getattr(message, "root", message)).__name__ == "PromptListChangedNotification":
            changed.set()

    async with streamable_http_client(url) as (read, write, *_):
        async with ClientSession(read, write, message_handler=on_message) as session:
            await session.initialize()
            # The stream opens in the background, so the first edits may precede it.
            while not changed.is_set():
                edit()
                try:
                    await asyncio.wait_for(changed.wait(), 0.3)
                except asyncio.TimeoutError:
                    pass


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        prompt = Path(folder, "hello.md")
        prompt.write_text("Hello.")
        edits = iter(range(10_000))
        command = [sys.argv[1], "serve", folder, "--http", "127.0.0.1:0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                url = next(found[0] for line in server.stderr if (found := re.search(r"http://\S+/mcp\b", line)))
                edit = lambda: prompt.write_text(f"---\ndescription: Edit {next(edits)}\n---\nHello.\n")
                asyncio.run(asyncio.wait_for(receive(url, edit), PATIENCE))
            finally:
                server.terminate()


main()
