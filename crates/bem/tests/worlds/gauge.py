"""A gauge is read in the first step and asked about in the second, where it shows nothing: keep it open above 60."""
import json
import random
import sys

print(json.dumps({"hello": 1, "actions": 2, "horizon": 2, "reward_range": [0, 1000],
                  "features": [{"name": "gauge", "kind": "number", "min": 0, "max": 100},
                               {"name": "asked", "kind": "bit"}]}), flush=True)
for line in sys.stdin:
    told = json.loads(line)
    if "reset" in told:
        gauge, asked = random.Random(told["reset"]).randrange(101), 0
        print(json.dumps({"obs": {"gauge": gauge, "asked": 0}}), flush=True)
    elif not asked:
        asked = 1
        print(json.dumps({"obs": {"gauge": 0, "asked": 1}, "reward": 0, "done": False}), flush=True)
    else:
        print(json.dumps({"obs": {"gauge": 0, "asked": 1}, "reward": 1000 * (told["act"] == (60 <= gauge)), "done": True}), flush=True)
