"""A table as a world for BEM: every episode shows one row, and the action is right or wrong.

Put your own rows into data.csv. The last column is the action that was right for the row, 0, 1, 2 and so on; every other
column is a whole number from 0 on. BEM starts this program once and talks to it, one JSON object a line.
"""

import csv
import json
import pathlib
import random
import sys

with open(pathlib.Path(__file__).with_name("data.csv"), newline="") as file:
    names, *rows = csv.reader(file)
rows = [[int(cell) for cell in row] for row in rows]
widths = [max(1, max(row[place] for row in rows).bit_length()) for place in range(len(names) - 1)]
fields = [[sum(widths[:place]), width] for place, width in enumerate(widths)]


def say(message):
    print(json.dumps(message), flush=True)


def seen(row):
    """Every column as a number, lowest bit first."""
    return "".join("1" if row[place] >> bit & 1 else "0" for place, width in enumerate(widths) for bit in range(width))


say({
    "hello": 1,
    "obs_bits": sum(widths),
    "actions": 1 + max(row[-1] for row in rows),
    "horizon": 1,
    "reward_range": [0, 1000],
    "fields": fields,
})
row = rows[0]
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        row = random.Random(message["reset"]).choice(rows)
        say({"obs": seen(row)})
    else:
        reward = 1000 if message["act"] == row[-1] else 0
        say({"obs": seen(row), "reward": reward, "done": True, "bad": False})
