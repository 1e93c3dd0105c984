#!/usr/bin/env python3
"""Retrying a request for BEM: wait how long, ask which replica, or give up. Needs nothing but Python.

Try it with: bem solve --env-cmd 'python3 examples/retry_env.py' --budget 200000
Compare with the hand rule: python3 examples/retry_env.py --baseline

A request goes to a service that is healthy, overloaded or down, which is not shown. Seen are how many attempts were made,
how the last one ended (none, fast error, timeout, refused) and how much time is left. Actions: try at once, wait 100 ms and try,
wait 1 s and try, try the replica (slower and dearer, but rarely down), give up. An answer pays 1 less the time it took; giving up
costs less than running into the deadline. All chance comes from the seed of the reset.
"""
import json
import sys

MASK = (1 << 64) - 1
DEADLINE = 4_000  # milliseconds
ACTIONS = ["at once", "wait 100 ms", "wait 1 s", "replica", "give up"]
WAITS = [0, 100, 1_000, 0]
HEALTHY, OVERLOADED, DOWN = range(3)
NONE, ERROR, TIMEOUT, REFUSED = range(4)
HORIZON = 4


def say(message):
    print(json.dumps(message, separators=(",", ":")), flush=True)


def drawn(state):
    """The next state of the generator (splitmix64) and a number below 2^64."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    number = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & MASK
    return state, number ^ number >> 31


class Request:
    def reset(self, seed):
        self.generator = seed
        self.health = [HEALTHY, HEALTHY, HEALTHY, OVERLOADED, OVERLOADED, DOWN][self.draw(6)]
        self.attempts, self.last, self.left = 0, NONE, DEADLINE

    def draw(self, bound):
        self.generator, number = drawn(self.generator)
        return number % bound

    def pass_time(self, milliseconds):
        """Time heals: an overloaded service recovers with one chance in three for every second."""
        self.left -= milliseconds
        if self.health == OVERLOADED and self.draw(3_000) < milliseconds:
            self.health = HEALTHY
        if self.health == DOWN and self.draw(12_000) < milliseconds:
            self.health = HEALTHY

    def step(self, action):
        """The reward in milli-units and whether it is over."""
        if action == 4:
            return -200, True
        self.pass_time(WAITS[action])
        self.attempts += 1
        if action == 3:
            works, takes, ends = self.draw(10) < 9, 900, TIMEOUT
        elif self.health == HEALTHY:
            works, takes, ends = self.draw(20) < 19, 50, ERROR
        elif self.health == OVERLOADED:
            # Asking at once makes it worse.
            works, takes, ends = self.draw(10) < (1 if action == 0 else 3), 600, [ERROR, TIMEOUT][self.draw(2)]
        else:
            works, takes, ends = False, 20, REFUSED
        self.pass_time(takes)
        if self.left <= 0:
            return -1_000, True
        if works:
            price = 250 if action == 3 else 0
            return 1_000 * self.left // DEADLINE - price, True
        self.last = ends
        return -20, self.attempts >= HORIZON

    def seen(self):
        return {"attempts": self.attempts, "last": ["none", "error", "timeout", "refused"][self.last],
                "left": max(0, self.left)}


def hand_rule(request):
    """What people write: once more at once, then back off, then the replica."""
    if request.attempts == 0:
        return 0
    if request.last == REFUSED:
        return 3
    if request.attempts == 1:
        return 1
    return 3 if request.left > 1_000 else 4


def mean_return(rule, seeds):
    request, total = Request(), 0
    for seed in seeds:
        request.reset(seed)
        done = False
        while not done:
            reward, done = request.step(rule(request))
            total += reward
    return total / len(seeds)


def main():
    if "--baseline" in sys.argv:
        print(json.dumps({"hand rule": mean_return(hand_rule, range(10**6, 10**6 + 20_000)) / 1_000}))
        return
    say({"hello": 1, "actions": len(ACTIONS), "horizon": HORIZON, "reward_range": [-1_000, 1_000],
         "return_range": [-1_060, 1_000],
         "features": [{"name": "attempts", "kind": "choice", "of": HORIZON + 1},
                      {"name": "last", "kind": "choice", "of": ["none", "error", "timeout", "refused"]},
                      {"name": "left", "kind": "number", "min": 0, "max": DEADLINE}]})
    request = Request()
    for line in sys.stdin:
        message = json.loads(line)
        if "reset" in message:
            request.reset(message["reset"])
            say({"obs": request.seen()})
        else:
            reward, done = request.step(message["act"])
            say({"obs": request.seen(), "reward": reward, "done": done})


if __name__ == "__main__":
    main()
