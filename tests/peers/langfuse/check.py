"""Langfuse's Python client, with the address and the keys of the environment."""

from langfuse import Langfuse
from langfuse.api.commons.errors import NotFoundError
from langfuse.api.core import ApiError

client = Langfuse(tracing_enabled=False)

greet = client.get_prompt("greet")
assert (greet.version, greet.prompt, greet.labels) == (2, "Hi!", ["production", "latest"]), greet
old = client.get_prompt("greet", version=1)
assert old.compile(name="Ada") == "Hello, Ada!", old.prompt
assert old.variables == ["name"], old.variables

talk = client.get_prompt("team/talk", type="chat", label="production")
messages = [(message["role"], message["content"]) for message in talk.compile(topic="shelves")]
assert messages == [("user", "What about shelves?"), ("assistant", "Let me think about shelves.")], messages

for missing in [{"name": "none"}, {"name": "greet", "label": "other"}, {"name": "greet", "version": 9}]:
    try:
        client.get_prompt(**missing, max_retries=0)
    except NotFoundError:
        continue
    raise AssertionError(missing)
try:
    client.get_prompt("strict", max_retries=0)
except ApiError as error:
    assert "fence" in error.body["detail"], error.body
else:
    raise AssertionError("a fence cannot be expressed")
assert client.get_prompt("none", fallback="Instead", max_retries=0).is_fallback

listed = client.api.prompts.list(limit=2, page=1)
assert [prompt.name for prompt in listed.data] == ["greet", "strict"], listed
assert (listed.data[0].versions, listed.meta.total_pages) == ([2], 2), listed
client.shutdown()
