#!/usr/bin/env python3
"""A thermostat for BEM: heat or not, hour by hour, for a family that is out by day. Needs nothing but Python.

Try it with: bem solve --env-cmd 'python3 examples/thermostat_env.py' --budget 200000
Compare with the tuned timetable: python3 examples/thermostat_env.py --baseline

Seen are the temperature, a number, and the hour, a choice of 24; an action is how much to heat: 0, 1 or 2. What is paid is
comfort while somebody is at home, and the heat, which costs twice as much in the early evening. Weather is drawn by a
generator that the seed of the reset alone decides.
"""
import json
import sys

HOURS = 24
AT_HOME = set(range(6, 9)) | set(range(17, 23))
PEAK = {17, 18, 19}
MASK = (1 << 64) - 1
TEMP_MIN, TEMP_MAX = 5_000, 32_000  # thousandths of a degree
WORST = -14_000

# The tuned timetable: what is aimed at by night, in the morning, by day and in the evening, and how many hours before
# people need it heating starts. Found by `--tune`.
TIMETABLE = {"night": 18_500, "morning": 22_500, "day": 15_500, "evening": 22_500, "before_morning": 1,
             "before_evening": 2, "half": 1_500}


def say(message):
    print(json.dumps(message, separators=(",", ":")), flush=True)


def drawn(state):
    """The next state of the generator (splitmix64) and a number below 2^64."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    number = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & MASK
    return state, number ^ number >> 31


class House:
    def reset(self, seed):
        self.generator, number = drawn(seed)
        self.hour = 0
        self.cold = number % 6_001 - 3_000  # how much warmer or colder than usual it is outside today
        self.temp = 16_000 + (number >> 20) % 4_001

    def step(self, heat):
        outside = 4_000 + self.cold + (4_000 if 10 <= self.hour < 17 else 0)
        self.generator, number = drawn(self.generator)
        noise = number % 601 - 300
        self.temp += (outside - self.temp) * 15 // 100 + heat * 2_000 + noise
        self.temp = max(TEMP_MIN, min(TEMP_MAX, self.temp))
        price = 600 if self.hour in PEAK else 300
        reward = -heat * price
        if self.hour in AT_HOME:
            reward -= max(0, 20_500 - self.temp) + max(0, self.temp - 22_500) // 2
        reward -= max(0, 14_000 - self.temp)
        self.hour += 1
        return max(WORST, reward), self.hour == HOURS

    def seen(self):
        return {"temp": self.temp / 1_000, "hour": self.hour % HOURS}


def aim(table, hour):
    if 6 - table["before_morning"] <= hour < 9:
        return table["morning"]
    if 17 - table["before_evening"] <= hour < 23:
        return table["evening"]
    return table["day"] if 9 <= hour < 17 else table["night"]


def timetable(table, house):
    missing = aim(table, house.hour) - house.temp
    return 0 if missing <= 0 else 1 if missing <= table["half"] else 2


def mean_return(table, seeds):
    house, total = House(), 0
    for seed in seeds:
        house.reset(seed)
        done = False
        while not done:
            reward, done = house.step(timetable(table, house))
            total += reward
    return total / len(seeds)


def tune(seeds):
    """Changes one number of the timetable at a time as long as that pays."""
    best, table = mean_return(TIMETABLE, seeds), dict(TIMETABLE)
    better = True
    while better:
        better = False
        for name in table:
            for change in ([-1, 1] if name.startswith("before") else [-2_000, -500, 500, 2_000]):
                tried = dict(table, **{name: table[name] + change})
                value = mean_return(tried, seeds)
                if value > best:
                    best, table, better = value, tried, True
    return table, best


def main():
    if "--baseline" in sys.argv:
        print(json.dumps({"tuned timetable": mean_return(TIMETABLE, range(10**6, 10**6 + 1_000)) / 1_000}))
        return
    if "--tune" in sys.argv:
        print(*tune(range(400)))
        return
    say({"hello": 1, "actions": 3, "horizon": HOURS, "reward_range": [WORST, 0],
         "features": [{"name": "temp", "kind": "number", "min": 5, "max": 32},
                      {"name": "hour", "kind": "choice", "of": HOURS}]})
    house = House()
    for line in sys.stdin:
        message = json.loads(line)
        if "reset" in message:
            house.reset(message["reset"])
            say({"obs": house.seen()})
        else:
            reward, done = house.step(message["act"])
            say({"obs": house.seen(), "reward": reward, "done": done})


if __name__ == "__main__":
    main()
