#!/usr/bin/env python3
"""A lock with three parameters: every step shows random bits, and the parity of the first few of them is the key.

Try it with: bem solve --env-cmd 'python3 examples/lock_env.py --width 8 --relevant 3 --steps 4'
or climb it over its parameters: bem run --world examples/worlds/lock.toml

Every right key pays a unit, so that the best policy earns one a step and random play half of that; the first line says so.
"""
import argparse
import json
import random
import sys


def say(message):
    print(json.dumps(message, separators=(",", ":")), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=8, help="bits that are seen")
    parser.add_argument("--relevant", type=int, default=2, help="bits that matter")
    parser.add_argument("--steps", type=int, default=1, help="keys an episode")
    arguments = parser.parse_args()
    width, steps = arguments.width, arguments.steps
    say({"hello": 1, "obs_bits": width, "actions": 2, "horizon": steps, "reward_range": [0, 1000],
         "return_range": [0, 1000 * steps], "optimum": 1000 * steps, "random": 500 * steps})
    draw, bits, taken = random.Random(0), [], 0
    for line in sys.stdin:
        message = json.loads(line)
        if "reset" in message:
            draw, taken = random.Random(message["reset"]), 0
            bits = [draw.randrange(2) for _ in range(width)]
            say({"obs": "".join(map(str, bits))})
            continue
        right = message["act"] == sum(bits[: arguments.relevant]) % 2
        taken += 1
        bits = [draw.randrange(2) for _ in range(width)]
        say({"obs": "".join(map(str, bits)), "reward": 1000 * right, "done": taken == steps})


if __name__ == "__main__":
    main()
