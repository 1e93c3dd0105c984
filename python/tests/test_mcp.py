"""`bem mcp` driven by the official client of the Model Context Protocol, in both of its ways to begin."""

import asyncio
import json
import os
import subprocess
import urllib.request

import pytest

mcp = pytest.importorskip("mcp", reason="the official client is not installed")
PROGRAM = os.environ.get("BEM_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="BEM_PROGRAM names the program")

CATALOG = """
[[root]]
name = "box"
memory = true
[[file]]
root = "box"
path = "note"
"""


@pytest.fixture
def server(tmp_path):
    """A server with a catalog: its address and the file of its token."""
    (tmp_path / "catalog.toml").write_text(CATALOG)
    words = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--state", "served", "--tools", "catalog.toml"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "keys")}
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        url = next(line.split()[1] for line in process.stdout if line.startswith("listening"))
        yield url, str(tmp_path / "served" / "token")
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_lists_and_calls_the_tools_of_a_server(server, mode):
    url, token = server
    parameters = mcp.StdioServerParameters(command=PROGRAM, args=["mcp", "--url", url, "--token-file", token])

    async def run():
        async with mcp.Client(parameters, mode=mode) as client:
            names = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"fs_read", "fs_write", "db_query", "questions_list", "questions_answer"} <= set(names)
            assert names["fs_read"].input_schema["properties"]["resource"]["enum"] == ["box", "box/note"]
            written = await client.call_tool("fs_write", {"resource": "box/note", "request": {"data": "hello"}})
            assert not written.is_error
            read = await client.call_tool("fs_read", {"resource": "box/note"})
            assert read.structured_content["response"]["data"] == "hello"
            assert json.loads(read.content[0].text) == read.structured_content
            refused = await client.call_tool("fs_read", {"resource": "nothing"})
            assert refused.is_error and "is unknown to fs" in refused.content[0].text
            questions = await client.call_tool("questions_list", {})
            assert questions.structured_content["questions"] == []

    asyncio.run(asyncio.wait_for(run(), 60))


def post(url, token, path, body):
    """What the server answers to a request of the owner's."""
    words = {"Authorization": f"Bearer {open(token).read().strip()}", "Content-Type": "application/json"}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), words)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_shows_the_form_of_a_question_and_its_answer_takes_effect(server, mode):
    url, token = server
    post(url, token, "/v1/worlds", {"name": "ads", "obs_bits": 4, "actions": 3, "reward_range": [0, 1000]})
    decided = post(url, token, "/v1/worlds/ads/decide", {"obs": "0101"})
    post(url, token, "/v1/worlds/ads/reward", {"decision": decided["decision"], "reward": 300})
    post(url, token, "/v1/questions", {"kind": "label_step", "world": "ads", "decision": decided["decision"]})
    parameters = mcp.StdioServerParameters(command=PROGRAM, args=["mcp", "--url", url, "--token-file", token])
    shown = []

    async def fill(context, asked):
        shown.append(asked)
        return mcp.types.ElicitResult(action="accept", content={"verdict": "right"})

    async def run():
        async with mcp.Client(parameters, mode=mode, elicitation_callback=fill) as client:
            given = await client.call_tool("questions_ask", {})
            assert not given.is_error, given
            assert given.structured_content["said"]["accept"] is True
            assert given.structured_content["changes"]
            assert "300 milli-units" in shown[0].message
            left = await client.call_tool("questions_list", {})
            assert left.structured_content["questions"] == []

    asyncio.run(asyncio.wait_for(run(), 60))
