"""The shop of `examples/inventory_env.py`, whose stock is shown as four bits: a world as every version of BEM has known it.

It writes into the file `asked`, at every hundredth step, how many it was asked for since it was started.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "examples"))
sys.dont_write_bytecode = True
import inventory_env as shop  # noqa: E402

worst = -(shop.ORDER_MAX * shop.COST + shop.STOCK_MAX * shop.KEEPING + shop.DELIVERY)
shop.say({"hello": 1, "obs_bits": 4, "actions": shop.ORDER_MAX + 1, "horizon": shop.DAYS,
          "reward_range": [worst, max(shop.DEMANDS) * shop.PRICE]})
asked = 0
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        stock, day, generator = 0, 0, message["reset"]
        shop.say({"obs": f"{stock:04b}"})
        continue
    asked += 1
    if asked % 100 == 0:
        pathlib.Path("asked").write_text(str(asked))
    generator, number = shop.drawn(generator)
    reward, stock = shop.earned(stock, message["act"], shop.DEMANDS[number % len(shop.DEMANDS)])
    day += 1
    shop.say({"obs": f"{stock:04b}", "reward": reward, "done": day == shop.DAYS})
