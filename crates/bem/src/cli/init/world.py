"""A world for BEM: keep a machine running. Change it into yours.

BEM starts this program once and talks to it, one JSON object a line. Standard output belongs to BEM: print anything
else to standard error. Rewards are whole numbers of milli-units: 1000 is one unit.

Seen:    wear of the machine, 0 to 7, and whether demand is low or high
Actions: 0 run, 1 repair
Reward:  running earns 0.7, with high demand 1.5; a worn machine may break, which costs 4; a repair costs 0.5
"""

import json
import random
import sys

STEPS = 30


def say(message):
    print(json.dumps(message), flush=True)


def seen(wear, demand):
    return {"wear": wear, "demand": "high" if demand else "low"}


say({
    "hello": 1,
    "actions": 2,
    "horizon": STEPS,
    "reward_range": [-4000, 1500],
    "features": [
        {"name": "wear", "kind": "number", "min": 0, "max": 7},
        {"name": "demand", "kind": "choice", "of": ["low", "high"]},
    ],
})
chance = random.Random()
wear, demand, step = 0, False, 0
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        # The same seed must give the same episode: all chance comes from it.
        chance.seed(message["reset"])
        wear, demand, step = 0, chance.random() < 0.5, 0
        say({"obs": seen(wear, demand)})
        continue
    if message["act"] == 1:
        wear, reward = 0, -500
    elif chance.random() < wear * wear / 100:
        wear, reward = 0, -4000
    else:
        reward = 1500 if demand else 700
        wear = min(7, wear + (chance.random() < 0.6))
    demand = chance.random() < 0.5
    step += 1
    say({"obs": seen(wear, demand), "reward": reward, "done": step == STEPS, "bad": False})
