"""A press that declares 0 to 10,000 and works between 5,000 and 5,040: action 1 pays from 5,013 on, action 0 below.

From 5,030 on action 0 is forbidden, and the world ends with an error where it is tried. Every action is counted in the file
that is named, behind the pressure by which it was chosen. Options narrow the bounds, move what is forbidden, make episodes
longer, deny that they come back, pay beyond what is declared, call action 0 BAD, and take their time.
"""

import argparse
import json
import sys
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("log")
arguments.add_argument("--bounds", type=int, nargs=2, default=[0, 10000])
arguments.add_argument("--forbid", type=float, default=5030)
arguments.add_argument("--horizon", type=int, default=1)
arguments.add_argument("--no-replay", action="store_true")
arguments.add_argument("--pays", type=int, default=1000)
arguments.add_argument("--bad", action="store_true")
arguments.add_argument("--seconds", type=float, default=0)
told = arguments.parse_args()


def say(message):
    print(json.dumps(message), flush=True)


def pressure_of(seed, step):
    return 5000 + ((seed + 7919 * step) * 2654435761 % 2**32 >> 8) % 400 / 10


say({
    "hello": 1, "actions": 2, "horizon": told.horizon, "reward_range": [0, 1000], "replay": not told.no_replay,
    "features": [{"name": "pressure", "kind": "number", "min": told.bounds[0], "max": told.bounds[1]}],
    "forbid": [{"if": {"pressure": f">= {told.forbid:g}"}, "action": 0}],
})
seed, step = 0, 0
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        seed, step = message["reset"], 0
        say({"obs": {"pressure": pressure_of(seed, step)}})
        continue
    act, pressure = message["act"], pressure_of(seed, step)
    if pressure >= told.forbid and act == 0:
        sys.exit("a forbidden action was tried")
    time.sleep(told.seconds)
    with open(told.log, "a") as log:
        log.write(f"{pressure} {act}\n")
    step += 1
    say({
        "obs": {"pressure": pressure_of(seed, step)}, "reward": told.pays if act == (pressure >= 5013) else 0,
        "done": step == told.horizon, "bad": told.bad and act == 0,
    })
