"""A client for `bem serve` without dependencies: decisions now, rewards later.

    from bem_client import Client
    client = Client("http://127.0.0.1:7420", token=open("bem-state/token").read())
    client.create("ads", obs_bits=4, actions=3, reward_range=[0, 1000])
    decision = client.decide("ads", "0101")
    client.reward("ads", decision["decision"], 1000)

One connection is kept and opened again when the server has closed it. A busy server (429) is asked again after the time
it names; a reward that was sent before and whose answer was lost may be sent again, because it counts once.
Run as a program it plays a world of four contexts against a server and prints what was earned:

    python3 bem_client.py http://127.0.0.1:7420 bem-state/token --decisions 3000
"""

import argparse
import http.client
import json
import random
import sys
import time
import urllib.parse


class Refused(Exception):
    """The server has refused: status, code, message and field."""

    def __init__(self, status, error):
        self.status = status
        self.code = error.get("code")
        self.field = error.get("field")
        super().__init__(f"{status} {self.code}: {error.get('message')}")


class Client:
    """A server, and the token to ask it with."""

    def __init__(self, url, token, timeout=30.0, tries=5):
        parts = urllib.parse.urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._token = token.strip()
        self._tries = tries

    def _send(self, method, path, body=None):
        """One request; returns the headers and the text of the answer."""
        headers = {"Authorization": f"Bearer {self._token}"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        for attempt in range(self._tries):
            is_last = attempt + 1 == self._tries
            try:
                self._connection.request(method, path, data, headers)
                response = self._connection.getresponse()
                text = response.read()
            except (OSError, http.client.HTTPException):
                # A decision whose answer was lost is asked for once more: the one that nobody knows expires.
                self._connection.close()
                if is_last:
                    raise
                time.sleep(0.05 * 2**attempt)
                continue
            if response.status == 429 and not is_last:
                time.sleep(float(response.headers.get("Retry-After", 1)))
                continue
            break
        if response.status >= 400:
            raise Refused(response.status, (json.loads(text) if text else {}).get("error", {}))
        return response.headers, text

    def ask(self, method, path, body=None):
        """One request; returns the JSON of the answer."""
        _, text = self._send(method, path, body)
        return json.loads(text) if text else {}

    def create(self, name, actions, reward_range, **more):
        """Makes a world; the same one again changes nothing."""
        return self.ask("POST", "/v1/worlds", {"name": name, "actions": actions, "reward_range": reward_range, **more})

    def decide(self, world, obs, episode=None):
        """Asks for a decision; `obs` is text of zeros and ones, or named values."""
        body = {"obs": obs} if episode is None else {"obs": obs, "episode": episode}
        return self.ask("POST", f"/v1/worlds/{world}/decide", body)

    def reward(self, world, decision, reward, done=None, bad=None, obs=None):
        """Says what a decision brought, and what was seen after it."""
        body = {"decision": decision, "reward": reward}
        if done is not None:
            body["done"] = done
        if bad is not None:
            body["bad"] = bad
        if obs is not None:
            body["obs"] = obs
        return self.ask("POST", f"/v1/worlds/{world}/reward", body)

    def world(self, name):
        """Shape, statistics, circuit in force, patches."""
        return self.ask("GET", f"/v1/worlds/{name}")

    def worlds(self):
        """All worlds, page by page."""
        after = None
        while True:
            query = "" if after is None else "?after=" + urllib.parse.quote(after)
            page = self.ask("GET", "/v1/worlds" + query)
            yield from page["worlds"]
            after = page["after"]
            if after is None:
                return

    def log(self, name, after=0):
        """The world's decisions whose episodes are complete, with reward and propensity, page by page; behind the input `after`."""
        has_more = True
        while has_more:
            headers, text = self._send("GET", f"/v1/worlds/{name}/log?after={after}")
            yield from (json.loads(line) for line in text.splitlines())
            after, has_more = headers["bem-after"], 'rel="next"' in headers.get("link", "")

    def export(self, name, format="c", part="program"):
        """The policy in force as the bytes of a file; of a program also its self-test (`test`) and what that plays (`vectors`)."""
        query = {"format": format} if part == "program" else {"format": format, "part": part}
        return self._send("GET", f"/v1/worlds/{name}/export?{urllib.parse.urlencode(query)}")[1]

    def forget(self, name):
        """Forgets a world; its history stays."""
        return self.ask("DELETE", f"/v1/worlds/{name}")


def play(client, name, decisions, delay, lost, seed):
    """Plays a world of four contexts whose best action is the context; rewards come late, and some never."""
    chance = random.Random(seed)
    client.create(name, obs_bits=4, actions=4, reward_range=[0, 1000])
    waiting, earned = [], []
    for _ in range(decisions):
        seen = chance.randrange(16)
        answer = client.decide(name, f"{seen:04b}"[::-1])
        reward = 1000 if chance.random() < (0.8 if answer["action"] == seen & 3 else 0.2) else 0
        earned.append(reward)
        if chance.random() >= lost:
            waiting.append((answer["decision"], reward))
        while len(waiting) > delay:
            decision, late = waiting.pop(chance.randrange(len(waiting)))
            client.reward(name, decision, late)
    for decision, late in waiting:
        client.reward(name, decision, late)
    return earned


def main():
    parser = argparse.ArgumentParser(description="Plays a world of four contexts against a server.")
    parser.add_argument("url")
    parser.add_argument("token_file")
    parser.add_argument("--world", default="example")
    parser.add_argument("--decisions", type=int, default=3000)
    parser.add_argument("--delay", type=int, default=20, help="decisions by which rewards are late")
    parser.add_argument("--lost", type=float, default=0.05, help="share of rewards that never come")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with open(arguments.token_file) as file:
        client = Client(arguments.url, file.read())
    earned = play(client, arguments.world, arguments.decisions, arguments.delay, arguments.lost, arguments.seed)
    tenth = max(1, len(earned) // 10)
    first, last = sum(earned[:tenth]) / tenth, sum(earned[-tenth:]) / tenth
    state = client.world(arguments.world)
    print(f"first tenth {first:.0f}, last tenth {last:.0f}; at best 800, drawn 350")
    print(f"policy: {state['circuit']['words']}; patches in force: {state['patches_applied']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
