"""Runs a command at a pseudo-terminal and types an answer at each question.

    at_a_terminal.py QUESTION=ANSWER… -- COMMAND…

Prints what the terminal showed and ends as the command does."""

import os
import pty
import sys


def main() -> int:
    split = sys.argv.index("--")
    steps = [argument.split("=", 1) for argument in sys.argv[1:split]]
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[split + 1], sys.argv[split + 1 :])
    shown = b""
    unseen = 0
    while True:
        try:
            more = os.read(terminal, 4096)
        except OSError:
            break
        if not more:
            break
        shown += more
        # The line at which the terminal waits, and no line before it.
        if steps and steps[0][0].encode() in shown[unseen:].rsplit(b"\n", 1)[-1]:
            unseen = len(shown)
            os.write(terminal, steps.pop(0)[1].encode() + b"\r")
    sys.stdout.buffer.write(shown)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


sys.exit(main())
