"""A press that declares 0 to 10,000 and works between 5,000 and 5,040: action 1 pays from 5,013 on, action 0 below.

From 5,030 on action 0 is forbidden, and the world ends with an error where it is tried. Every action is counted in the file
that is named.
"""

import json
import sys


def say(message):
    print(json.dumps(message), flush=True)


say({
    "hello": 1, "actions": 2, "horizon": 1, "reward_range": [0, 1000],
    "features": [{"name": "pressure", "kind": "number", "min": 0, "max": 10000}],
    "forbid": [{"if": {"pressure": ">= 5030"}, "action": 0}],
})
pressure = 0
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        pressure = 5000 + (message["reset"] * 2654435761 % 2**32 >> 8) % 400 / 10
        say({"obs": {"pressure": pressure}})
        continue
    act = message["act"]
    if pressure >= 5030 and act == 0:
        sys.exit("a forbidden action was tried")
    with open(sys.argv[1], "a") as log:
        log.write(f"{act}\n")
    say({"obs": {"pressure": pressure}, "reward": 1000 if act == (pressure >= 5013) else 0, "done": True})
