"""A world of three numbers, a choice of 24 and a bit, in which action 2 pays best and is forbidden from 28 degrees on.

Where it is forbidden the door says which of the others pays. It ends with an error where the forbidden action is tried.
"""

import json
import random
import sys


def say(message):
    print(json.dumps(message), flush=True)


say({
    "hello": 1, "actions": 3, "horizon": 4, "reward_range": [0, 1000],
    "features": [
        {"name": "temp", "kind": "number", "min": -40, "max": 60},
        {"name": "load", "kind": "number", "min": 0, "max": 100},
        {"name": "age", "kind": "number", "min": 0, "max": 30},
        {"name": "hour", "kind": "choice", "of": 24},
        {"name": "door", "kind": "bit"},
    ],
    "forbid": [{"if": {"temp": ">= 28"}, "action": 2}],
})


def drawn(draw):
    return {
        "temp": draw.choice([-10, 5, 20.5, 27.99, 28, 35.25, 60]), "load": draw.randrange(101), "age": draw.randrange(31),
        "hour": draw.randrange(24), "door": draw.randrange(2),
    }


for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        step, draw = 0, random.Random(message["reset"])
        seen = drawn(draw)
        say({"obs": seen})
        continue
    act = message["act"]
    if seen["temp"] >= 28 and act == 2:
        sys.exit("a forbidden action was tried")
    reward = 1000 if act == 2 else 600 if act == seen["door"] else 0
    step, seen = step + 1, drawn(draw)
    say({"obs": seen, "reward": reward, "done": step == 4})
