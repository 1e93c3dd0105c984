#!/usr/bin/env python3
"""Noisy clicks for BEM: which of four banners to show to whom. Needs nothing but Python.

Live: bem solve --env-cmd 'python3 examples/clicks_env.py' --budget 50000
From a log: python3 examples/clicks_env.py --log 50000 > clicks.csv
            bem learn clicks.csv --action shown --reward click --propensity chance --out clicks.policy
Compare: python3 examples/clicks_env.py --baseline

Seen are age, hour, device and whether the visitor has been here before. A visitor clicks with a chance that depends on all of them
and on the banner; whether is drawn anew every time. The log was written by a policy that prefers the banner of the device and shows
any other with one chance in eight.
"""
import json
import math
import sys

MASK = (1 << 64) - 1
BANNERS, DEVICES = 4, ["phone", "tablet", "desktop"]


def say(message):
    print(json.dumps(message, separators=(",", ":")), flush=True)


def drawn(state):
    """The next state of the generator (splitmix64) and a number below 2^64."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    number = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & MASK
    return state, number ^ number >> 31


def visitor(generator):
    generator, number = drawn(generator)
    seen = {"age": 16 + number % 60, "hour": (number >> 8) % 24, "device": DEVICES[(number >> 16) % 3],
            "known": (number >> 24) % 2}
    return generator, seen


def chance(seen, banner):
    """The chance of a click, in thousandths: a logistic function of what is seen."""
    age, hour, device, known = seen["age"], seen["hour"], DEVICES.index(seen["device"]), seen["known"]
    score = [-1.6 + (1.6 if age < 30 else -0.4) + (0.7 if device == 0 else 0),
             -1.4 + (1.4 if age >= 55 else 0) + (0.5 if known else -0.3),
             -1.3 + (1.3 if 17 <= hour < 23 else -0.5) + (0.6 if device == 2 else 0),
             -0.9 + (0.5 if known else 0)][banner]
    return round(1_000 / (1 + math.exp(-score)))


def best(seen):
    return max(range(BANNERS), key=lambda banner: chance(seen, banner))


def logged_chances(seen):
    """The policy that wrote the log: the banner of the device mostly, any other with one chance in eight."""
    return [0.625 if banner == DEVICES.index(seen["device"]) else 0.125 for banner in range(BANNERS)]


def baseline(count=20_000):
    generator, values = 7, {"optimum": 0, "logging policy": 0, "random": 0}
    for _ in range(count):
        generator, seen = visitor(generator)
        clicks = [chance(seen, banner) for banner in range(BANNERS)]
        values["optimum"] += max(clicks)
        values["random"] += sum(clicks) / BANNERS
        values["logging policy"] += sum(p * click for p, click in zip(logged_chances(seen), clicks))
    return {name: total / count / 1_000 for name, total in values.items()}


def write_log(rows, seed):
    print("age,hour,device,known,shown,chance,click")
    generator = seed
    for _ in range(rows):
        generator, seen = visitor(generator)
        generator, number = drawn(generator)
        chances = logged_chances(seen)
        banner, left = 0, number % 1_000 / 1_000
        while banner + 1 < BANNERS and chances[banner] <= left:
            left -= chances[banner]
            banner += 1
        generator, number = drawn(generator)
        click = int(number % 1_000 < chance(seen, banner))
        print(seen["age"], seen["hour"], seen["device"], seen["known"], banner, chances[banner], click, sep=",")


def main():
    if "--baseline" in sys.argv:
        print(json.dumps(baseline()))
        return
    if "--log" in sys.argv:
        words = sys.argv[sys.argv.index("--log") + 1:]
        write_log(int(words[0]), int(words[1]) if len(words) > 1 else 1)
        return
    say({"hello": 1, "actions": BANNERS, "horizon": 1, "reward_range": [0, 1_000],
         "features": [{"name": "age", "kind": "number", "min": 16, "max": 75},
                      {"name": "hour", "kind": "number", "min": 0, "max": 23},
                      {"name": "device", "kind": "choice", "of": DEVICES}, {"name": "known", "kind": "bit"}]})
    seen, generator = {}, 0
    for line in sys.stdin:
        message = json.loads(line)
        if "reset" in message:
            generator, seen = visitor(message["reset"] * 0x9E3779B97F4A7C15 & MASK)
            say({"obs": seen})
        else:
            generator, number = drawn(generator)
            reward = 1_000 if number % 1_000 < chance(seen, message["act"]) else 0
            say({"obs": seen, "reward": reward, "done": True})


if __name__ == "__main__":
    main()
