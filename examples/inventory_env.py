#!/usr/bin/env python3
"""A shop for BEM: order in the morning, sell by day, pay for what lies over night. Needs nothing but Python.

Try it with: bem solve --env-cmd 'python3 examples/inventory_env.py' --budget 60000
Compare with dynamic programming: python3 examples/inventory_env.py --baseline

Seen is the stock, 0 to 10; an action is how much to order, 0 to 4. Demand is drawn by a generator of our own that the
seed of the reset alone decides, so that the same seed brings the same demand. Rewards are whole milli-units.
"""
import json
import sys

STOCK_MAX, ORDER_MAX, DAYS = 10, 4, 20
DEMANDS = [0, 1, 1, 2, 2, 2, 2, 3, 3, 4]
PRICE, COST, KEEPING, DELIVERY = 1000, 400, 50, 300
MASK = (1 << 64) - 1


def say(message):
    print(json.dumps(message, separators=(",", ":")), flush=True)


def drawn(state):
    """The next state of the generator (splitmix64) and a number below 2^64."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    number = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & MASK
    return state, number ^ number >> 31


def earned(stock, order, demand):
    """What one day brings, and the stock after it."""
    have = min(STOCK_MAX, stock + order)
    sold = min(have, demand)
    reward = sold * PRICE - (have - stock) * COST - have * KEEPING - (DELIVERY if order else 0)
    return reward, have - sold


def optimum():
    """The best expected return of an episode, backward from its last day."""
    later = [0.0] * (STOCK_MAX + 1)
    for _ in range(DAYS):
        def value(stock, order):
            outcomes = [earned(stock, order, demand) for demand in DEMANDS]
            return sum(reward + later[after] for reward, after in outcomes) / len(outcomes)
        later = [max(value(stock, order) for order in range(ORDER_MAX + 1)) for stock in range(STOCK_MAX + 1)]
    return later[0]


def main():
    if "--baseline" in sys.argv:
        print(json.dumps({"optimum by dynamic programming": optimum() / 1000}))
        return
    worst = -(ORDER_MAX * COST + STOCK_MAX * KEEPING + DELIVERY)
    say({"hello": 1, "actions": ORDER_MAX + 1, "horizon": DAYS, "reward_range": [worst, max(DEMANDS) * PRICE],
         "features": [{"name": "stock", "kind": "choice", "of": STOCK_MAX + 1}]})
    stock = day = generator = 0
    for line in sys.stdin:
        message = json.loads(line)
        if "reset" in message:
            stock, day, generator = 0, 0, message["reset"]
            say({"obs": {"stock": stock}})
            continue
        generator, number = drawn(generator)
        reward, stock = earned(stock, message["act"], DEMANDS[number % len(DEMANDS)])
        day += 1
        say({"obs": {"stock": stock}, "reward": reward, "done": day == DAYS})


if __name__ == "__main__":
    main()
