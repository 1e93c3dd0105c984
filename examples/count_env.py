#!/usr/bin/env python3
"""A world for BEM in thirty lines: say how many ones a number has. Needs nothing but Python.

Try it with: bem solve --env-cmd 'python3 examples/count_env.py'
"""
import json
import random
import sys

BITS, ROUNDS = 4, 5


def say(message):
    print(json.dumps(message, separators=(",", ":")), flush=True)


def main():
    say({"hello": 1, "obs_bits": BITS, "actions": BITS + 1, "horizon": ROUNDS,
         "reward_range": [0, 1000], "fields": [[0, BITS]]})
    dice, number, rounds = random.Random(0), "", 0
    for line in sys.stdin:
        message = json.loads(line)
        if "reset" in message:
            dice, rounds = random.Random(message["reset"]), 0
            number = "".join(dice.choice("01") for _ in range(BITS))
            say({"obs": number})
        else:
            reward = 1000 if message["act"] == number.count("1") else 0
            rounds += 1
            number = "".join(dice.choice("01") for _ in range(BITS))
            say({"obs": number, "reward": reward, "done": rounds == ROUNDS, "bad": False})


if __name__ == "__main__":
    main()
