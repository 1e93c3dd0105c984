#!/usr/bin/env python3
"""A machine that wears out, as a table of 30 states for BEM. Needs nothing but Python.

Write the table: python3 examples/repair_table.py > examples/games/repair.json
Learn it:        bem solve --game examples/games/repair.json
Compare:         python3 examples/repair_table.py --baseline

A state is the wear of the machine, 0 to 9, and how many orders wait, 0 to 2. Actions: work, work gently, repair. Work wears; a worn
machine breaks, which costs a lot. Working at wear 9 is forbidden by a rule over the named features, so that it is never tried.
"""
import json
import sys

WEARS, ORDERS, HORIZON = 10, 3, 30
WORK, GENTLY, REPAIR = range(3)


def number(wear, orders):
    return wear * ORDERS + orders


def outcomes(wear, orders, action):
    """Wear, orders, weight of 12 and reward in milli-units of everything that may follow."""
    if action == REPAIR:
        after = [(0, 12, -900)]
    else:
        done = min(orders, 2 if action == WORK else 1)
        paid = 700 * done - 60 * orders
        steps = [(1, 6), (2, 6)] if action == WORK else [(0, 6), (1, 6)]
        after = []
        for step, weight in steps:
            worn = min(WEARS - 1, wear + step)
            breaks = min(weight, max(0, worn - 5))
            if breaks:
                after.append((WEARS - 1, breaks, paid - 2_500))
            if weight - breaks:
                after.append((worn, weight - breaks, paid))
    left = orders if action == REPAIR else orders - min(orders, 2 if action == WORK else 1)
    for worn, weight, reward in after:
        for new, share in ((0, 1), (1, 1), (2, 1)):
            yield worn, min(ORDERS - 1, left + new), weight * share, reward


def allowed(wear, action):
    return not (wear == WEARS - 1 and action == WORK)


def optimum():
    """Value iteration backward over the steps, from a new machine without orders."""
    later = {}
    for _ in range(HORIZON):
        def value(wear, orders, action):
            rows = list(outcomes(wear, orders, action))
            total = sum(weight for _, _, weight, _ in rows)
            return sum(weight * (reward + later.get((worn, next), 0)) for worn, next, weight, reward in rows) / total
        later = {(wear, orders): max(value(wear, orders, action) for action in range(3) if allowed(wear, action))
                 for wear in range(WEARS) for orders in range(ORDERS)}
    return later[0, 0]


def table():
    states = [(wear, orders) for wear in range(WEARS) for orders in range(ORDERS)]
    transitions = [[number(wear, orders), action, number(worn, next), weight, reward, False]
                   for wear, orders in states for action in range(3)
                   for worn, next, weight, reward in outcomes(wear, orders, action)]
    return {"states": len(states), "actions": 3, "horizon": HORIZON, "start": [[0, 1]], "transitions": transitions,
            "features": [{"name": "wear", "kind": "number", "min": 0, "max": WEARS - 1},
                         {"name": "orders", "kind": "choice", "of": ORDERS}],
            "observe": [{"wear": wear, "orders": orders} for wear, orders in states],
            "forbid": [{"if": {"wear": ">= 9"}, "action": WORK}]}


if __name__ == "__main__":
    if "--baseline" in sys.argv:
        print(json.dumps({"optimum by value iteration": optimum() / 1_000}))
    else:
        print(json.dumps(table(), separators=(",", ":")))
