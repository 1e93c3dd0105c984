"""Makes shop.db, the database of the tasks in this folder: python3 make_shop.py [FOLDER]

- item and request: eight indexed columns; a request's values are common in most columns and rare in one or two. The index
  over a rare column finds a handful of rows, every other one walks through nearly all of them. cheapest.toml
- move: a machine shop as a table of states, actions, rewards and next states. shop.toml
- customer: a number of twelve bits that says nothing, and a tariff that only the database knows. tariff.toml
"""

import pathlib
import random
import sqlite3
import sys

COLUMNS = 8


def main():
    path = pathlib.Path(sys.argv[1] if 1 < len(sys.argv) else ".") / "shop.db"
    path.unlink(missing_ok=True)
    base, draw = sqlite3.connect(path), random.Random(1)
    columns = [f"c{place}" for place in range(COLUMNS)]
    base.execute(f"CREATE TABLE item ({', '.join(f'{name} INTEGER' for name in columns)})")
    for _ in range(1500):
        # Every column is 0 in most rows, and a rare number else.
        row = [0 if draw.random() < 0.97 else draw.randrange(1, 200) for _ in columns]
        base.execute(f"INSERT INTO item VALUES ({', '.join('?' * COLUMNS)})", row)
    for name in columns:
        base.execute(f"CREATE INDEX by_{name} ON item ({name})")
    rare = ", ".join(f"r{place} INTEGER" for place in range(COLUMNS))
    values = ", ".join(f"v{place} INTEGER" for place in range(COLUMNS))
    base.execute(f"CREATE TABLE request (id INTEGER PRIMARY KEY, {rare}, {values})")
    for number in range(64):
        chosen = {number % COLUMNS} | ({draw.randrange(COLUMNS)} if number % 3 == 0 else set())
        bits = [int(place in chosen) for place in range(COLUMNS)]
        wanted = [draw.randrange(1, 200) if bit else 0 for bit in bits]
        marks = ", ".join("?" * (1 + 2 * COLUMNS))
        base.execute(f"INSERT INTO request VALUES ({marks})", [number, *bits, *wanted])
    # Eight stations; the right tool at a station moves the piece on and pays, a wrong one spoils it. Stations 8 to 15 are
    # the same with a spoiled piece, which pays nothing any more.
    base.execute("CREATE TABLE move (state INTEGER, action INTEGER, reward INTEGER, next INTEGER, PRIMARY KEY (state, action))")
    for state in range(256):
        station, spoiled, kind = state % 8, state // 8 % 2, state // 16
        right = (station * 3 + kind) % 8
        for action in range(8):
            good = action == right and not spoiled
            following = (station + 1) % 8 + 8 * (0 if good else 1) + 16 * kind
            base.execute("INSERT INTO move VALUES (?, ?, ?, ?)", (state, action, 1000 if good else 0, following))
    base.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, number INTEGER, tariff INTEGER)")
    numbers = draw.sample(range(4096), 2048)
    for place, number in enumerate(numbers):
        base.execute("INSERT INTO customer VALUES (?, ?, ?)", (place, number, draw.randrange(8)))
    base.commit()
    print(path)


if __name__ == "__main__":
    main()
