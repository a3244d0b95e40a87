#!/usr/bin/env python3
"""Simulated traffic of five kinds of client, for trying out usage, impact and rollouts on a store of your own.

    traffic.py callers                                     writes the files `tokens` and `callers.json`
    traffic.py week http://127.0.0.1:8080 team.db          sends the calls of a week
    traffic.py now http://127.0.0.1:8080 [--calls 600]     sends calls of this moment, 20 in a second

Every call is a real request. Servers count the calls of the present hour only, so `week` then moves the rows of each day
into the past, in the SQLite file itself: use it with a store that has no other traffic. Python 3.9 or newer, no packages.
"""

import argparse
import datetime
import hashlib
import http.client
import json
import os
import random
import secrets
import sqlite3
import sys
import time
import urllib.parse

REVISION = "2026-07-28"
DAY = 24 * 60 * 60
# How long a server may take to write its figures, in seconds. It does so every ten.
PATIENCE = 120

# Name and version of each client, its share of the calls, its number of users, and whether it sends `framework`.
CLIENTS = [
    ("editor", "1.4.0", 0.38, 96, True),
    ("terminal", "2.1.3", 0.26, 64, True),
    ("chat", "5.0.1", 0.16, 40, True),
    ("ci", "0.9.2", 0.14, 24, False),
    ("report-job", "3.2", 0.06, 16, True),
]
# This one is a program that uses the HTTP API; the others use MCP.
PROGRAM = "report-job"
LANGUAGES = {"Rust": 0.35, "Python": 0.25, "Go": 0.25, "TypeScript": 0.15}
FRAMEWORKS = ["axum", "Django", "gin", "React"]
# The share of calls that forget a required argument.
CARELESS = 0.01
# Seconds between two calls of this moment. Servers compare the groups of a rollout every second.
PAUSE = 0.05


def callers():
    """Makes tokens. The server gets their digests only."""
    lines = []

    def make(name, scopes):
        token = "demo_" + secrets.token_urlsafe(24)
        digest = hashlib.sha256(token.encode()).hexdigest()
        lines.append(f'{{ name = "{name}", sha256 = "{digest}", scopes = {json.dumps(scopes)} }}\n')
        return token

    yours = make("you", ["prompts:read", *(f"library:{verb}" for verb in ("read", "propose", "review", "publish"))])
    tokens = {
        client: [make(f"{client}-{number}", ["prompts:read"]) for number in range(1, users + 1)]
        for client, _, _, users, _ in CLIENTS
    }
    for path, text in [("tokens", "".join(lines)), ("callers.json", json.dumps(tokens))]:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    print(f"{len(lines) - 1} callers: `tokens` is for the server, `callers.json` for this script")
    print(f"your own token, for the page: {yours}")


class Traffic:
    def __init__(self, url):
        with open("callers.json") as file:
            self.tokens = json.load(file)
        self.url = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(self.url.netloc, timeout=60)
        self.sent = 0
        self.failed = 0

    def calls(self, number):
        for _ in range(number):
            shares = [share for _, _, share, _, _ in CLIENTS]
            client, version, _, _, has_framework = random.choices(CLIENTS, shares)[0]
            token = random.choice(self.tokens[client])
            if random.random() < 0.3:
                name, arguments = "commit-message", {"changes": "See the patch."}
            else:
                language = random.choices(list(LANGUAGES), list(LANGUAGES.values()))[0]
                name, arguments = "review", {"language": language}
                if has_framework:
                    arguments["framework"] = random.choice(FRAMEWORKS)
                if random.random() < CARELESS:
                    del arguments["language"]
            send = self.through_api if client == PROGRAM else self.through_mcp
            is_ok = send(token, client, version, name, arguments)
            self.sent += 1
            self.failed += not is_ok

    def through_mcp(self, token, client, version, name, arguments):
        meta = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": client, "version": version},
        }
        params = {"name": name, "arguments": arguments, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": "prompts/get",
            "Mcp-Name": name,
        }
        _, answer = self.request("POST", "/mcp", token, body, headers)
        return "result" in json.loads(answer)

    def through_api(self, token, client, version, name, arguments):
        words = {"rendered": "true", **{f"arguments.{key}": value for key, value in arguments.items()}}
        path = f"/api/v1/prompts/{name}?{urllib.parse.urlencode(words)}"
        status, _ = self.request("GET", path, token, None, {"User-Agent": f"{client}/{version}"})
        return status == 200

    def request(self, method, path, token, body, headers):
        while True:
            self.connection.request(method, path, body, {"Authorization": f"Bearer {token}", **headers})
            response = self.connection.getresponse()
            answer = response.read()
            if response.status == 401:
                sys.exit("the server refuses a token of callers.json: does it use the file `tokens`?")
            if response.status != 429:
                return response.status, answer
            time.sleep(int(response.headers.get("Retry-After", "1")))


def week(url, path):
    if not os.path.exists(path):
        sys.exit(f"there is no file {path}")
    traffic = Traffic(url)
    store = sqlite3.connect(path, timeout=30, isolation_level=None)
    names = ", ".join(f"'{name}'" for name, *_ in CLIENTS)
    begin = int(time.time()) // 3600 * 3600
    today = f"FROM ps_usage WHERE start >= {begin} AND client IN ({names})"

    def written():
        return store.execute(f"SELECT COALESCE(SUM(count), 0) {today}").fetchone()[0]

    if store.execute("SELECT COUNT(*) FROM ps_usage WHERE start < ?", (begin - DAY,)).fetchone()[0]:
        sys.exit("the store has traffic of earlier days already: use a new one")
    for ago in range(6, -1, -1):
        date = datetime.date.today() - datetime.timedelta(days=ago)
        number = random.randint(30, 40) if date.weekday() >= 5 else random.randint(110, 150)
        before = written()
        traffic.calls(number)
        deadline = time.monotonic() + PATIENCE
        while written() < before + number:
            if time.monotonic() > deadline:
                sys.exit(f"the server did not write its figures to {path}: does it serve this store?")
            time.sleep(0.5)
        if ago:
            store.execute(f"UPDATE ps_usage SET start = start - {ago * DAY} WHERE start >= {begin} AND client IN ({names})")
        print(f"{date:%a %d %b}: {number} calls", flush=True)
    print(f"{traffic.sent} calls in all, {traffic.failed} failed")


def now(url, number):
    traffic = Traffic(url)
    while traffic.sent < number:
        before = traffic.failed
        batch = min(100, number - traffic.sent)
        for _ in range(batch):
            traffic.calls(1)
            time.sleep(PAUSE)
        print(f"{traffic.sent} calls, {traffic.failed - before} of the last {batch} failed", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("callers")
    one = commands.add_parser("week")
    one.add_argument("url")
    one.add_argument("store", help="the SQLite file")
    one = commands.add_parser("now")
    one.add_argument("url")
    one.add_argument("--calls", type=int, default=600)
    arguments = parser.parse_args()
    if arguments.command == "callers":
        callers()
    elif arguments.command == "week":
        week(arguments.url, arguments.store)
    else:
        now(arguments.url, arguments.calls)


if __name__ == "__main__":
    main()
