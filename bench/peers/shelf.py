"""The prompts that the servers in Python offer."""

import json
import sys
from pathlib import Path

port, count, page_size = (int(word) for word in sys.argv[1:4])
folder = Path(sys.argv[4])
words = json.loads((Path(__file__).parent / "words.json").read_text())
values = {name: (folder / "values" / f"{name}.txt").read_text().split() for name in ("few", "many")}


def listed_name(at: int) -> str:
    return f"prompt-{at:06}"


def listed_description(at: int) -> str:
    return f"Prompt number {at} of a generated library, described in one sentence of usual length."


def one(change: str) -> str:
    return words["oneBefore"] + change + words["oneAfter"]


def matching(argument: str, typed: str) -> list[str]:
    def is_subsequence(value: str) -> bool:
        rest = iter(value)
        return all(character in rest for character in typed)

    return [value for value in values[argument] if is_subsequence(value)]
