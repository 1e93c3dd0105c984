#!/usr/bin/env python3
"""Five problems of a person's own, learned, exported to C and played by their own programs. Prints a table and judges it.

Run it with: cargo xtask battery problems [--scale N]   (five seeds for every unit of scale; twenty at scale 4)

Every seed goes the whole way: `bem solve` or `bem learn`, `bem export --format c`, a C compiler, and 10^5 fresh episodes that
the program in `examples/` plays with the compiled policy. The mean of those is held against the optimum or the tuned rule of
the example, and against the 95 % interval that BEM printed. What was measured with the same program, script, examples, packages
and compiler is not measured again.
"""
import concurrent.futures
import csv
import ctypes
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(EXAMPLES))

import clicks_env  # noqa: E402
import inventory_env  # noqa: E402
import repair_table  # noqa: E402
import retry_env  # noqa: E402
import thermostat_env  # noqa: E402
from kept import Kept, key  # noqa: E402

EPISODES = 100_000
FIRST_SEED = 1 << 40  # far from every seed that is learned or evaluated with
LOGGED = ["--action", "shown", "--reward", "click", "--propensity", "chance"]

# ---------------------------------------------------------------- the worlds' own programs, with a policy that decides


def play_inventory(start, act, seeds):
    for seed in seeds:
        stock, generator, total = 0, seed, 0
        start()
        for _ in range(inventory_env.DAYS):
            order = act(stock)
            generator, number = inventory_env.drawn(generator)
            demand = inventory_env.DEMANDS[number % len(inventory_env.DEMANDS)]
            reward, stock = inventory_env.earned(stock, order, demand)
            total += reward
        yield total


def play_retry(start, act, seeds):
    request = retry_env.Request()
    for seed in seeds:
        request.reset(seed)
        start()
        total, done = 0, False
        while not done:
            reward, done = request.step(act(request.attempts, request.last, max(0, request.left)))
            total += reward
        yield total


def play_thermostat(start, act, seeds):
    house = thermostat_env.House()
    for seed in seeds:
        house.reset(seed)
        start()
        total, done = 0, False
        while not done:
            reward, done = house.step(act(house.temp / 1_000, house.hour % thermostat_env.HOURS))
            total += reward
        yield total


def play_table(start, act, seeds):
    cells = {}
    for wear in range(repair_table.WEARS):
        for orders in range(repair_table.ORDERS):
            for action in range(3):
                rows = [(worn, left, reward) for worn, left, weight, reward in
                        repair_table.outcomes(wear, orders, action) for _ in range(weight)]
                cells[wear, orders, action] = rows
    for seed in seeds:
        wear, orders, generator, total = 0, 0, seed, 0
        start()
        for _ in range(repair_table.HORIZON):
            action = act(wear, orders)
            if not repair_table.allowed(wear, action):
                raise SystemExit("a forbidden action was taken")
            generator, number = inventory_env.drawn(generator)
            rows = cells[wear, orders, action]
            wear, orders, reward = rows[number % len(rows)]
            total += reward
        yield total


def play_clicks(start, act, seeds, words=tuple(clicks_env.DEVICES)):
    """`words` has the order of devices that the policy was learned with: as declared, or sorted where a log tells them."""
    for seed in seeds:
        generator, seen = clicks_env.visitor(seed * 0x9E3779B97F4A7C15 & clicks_env.MASK)
        start()
        banner = act(seen["age"], seen["hour"], words.index(seen["device"]), seen["known"])
        generator, number = clicks_env.drawn(generator)
        yield 1_000 if number % 1_000 < clicks_env.chance(seen, banner) else 0


def play_logged_clicks(start, act, seeds):
    return play_clicks(start, act, seeds, tuple(sorted(clicks_env.DEVICES)))


def clicks_optimum():
    """The mean chance of the best banner over every visitor there is."""
    everyone = [{"age": age, "hour": hour, "device": device, "known": known} for age in range(16, 76)
                for hour in range(24) for device in clicks_env.DEVICES for known in (0, 1)]
    return sum(clicks_env.chance(seen, clicks_env.best(seen)) for seen in everyone) / len(everyone)


# Words of `bem`, the C expression that calls the policy, how it is played, what it is held against and how much is asked.
PROBLEMS = {
    "inventory": {
        "words": ["--env-cmd", f"python3 {EXAMPLES / 'inventory_env.py'}", "--budget", "60000"],
        "decide": ("double stock", "bem_features f = {.stock = (int)stock}; return bem_decide_features(&state, &f);"),
        "play": play_inventory, "against": "optimum by dynamic programming", "share": 0.99,
        "reference": lambda seeds: inventory_env.optimum(),
    },
    "retry": {
        "words": ["--env-cmd", f"python3 {EXAMPLES / 'retry_env.py'}", "--budget", "200000"],
        "decide": ("double attempts, double last, double left", "bem_features f = {.attempts = (int)attempts, "
                   ".last = (int)last, .left = left}; return bem_decide_features(&state, &f);"),
        "play": play_retry, "against": "hand rule, same episodes", "share": None,
        "reference": lambda seeds: retry_env.mean_return(retry_env.hand_rule, seeds),
    },
    "thermostat": {
        "words": ["--env-cmd", f"python3 {EXAMPLES / 'thermostat_env.py'}", "--budget", "200000"],
        "decide": ("double temp, double hour", "bem_features f = {.temp = temp, .hour = (int)hour}; "
                   "return bem_decide_features(&state, &f);"),
        "play": play_thermostat, "against": "tuned timetable, same episodes", "share": None,
        "reference": lambda seeds: thermostat_env.mean_return(thermostat_env.TIMETABLE, seeds),
    },
    "table of 30 states": {
        "words": ["--game", str(EXAMPLES / "games/repair.json")],
        "decide": ("double wear, double orders", "bem_features f = {.wear = wear, .orders = (int)orders}; "
                   "return bem_decide_features(&state, &f);"),
        "play": play_table, "against": "optimum by value iteration", "share": 0.995,
        "reference": lambda seeds: repair_table.optimum(),
    },
    "clicks, 50,000 logged": {
        "rows": 50_000, "decide": None, "play": play_logged_clicks, "against": "optimum over all visitors", "share": 0.97,
        "reference": lambda seeds: clicks_optimum(),
    },
    "clicks, 5,000 logged": {
        "rows": 5_000, "decide": None, "play": play_logged_clicks, "against": "logistic regression on the same log",
        "share": None, "apart": True, "reference": None,
    },
    "clicks, 50,000 live": {
        "words": ["--env-cmd", f"python3 {EXAMPLES / 'clicks_env.py'}", "--budget", "50000"],
        "decide": None, "play": play_clicks, "against": "optimum over all visitors", "share": 0.97, "apart": True,
        "reference": lambda seeds: clicks_optimum(),
    },
}
CLICKS = ("double age, double hour, double device, double known", "bem_features f = {.age = age, .hour = hour, "
          ".device = (int)device, .known = (int)known}; return bem_decide_features(&state, &f);")

# ---------------------------------------------------------------- one seed, the whole way


def said(words, folder):
    answer = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    if answer.returncode not in (0, 1) or not answer.stdout:
        raise SystemExit(f"{' '.join(words)}: {answer.stdout}{answer.stderr}")
    return answer.stdout


def compiled(folder, decide):
    """The exported header as a library with two functions."""
    arguments, body = decide
    (folder / "bridge.c").write_text(
        f'#include "policy.h"\nstatic bem_state state;\nvoid start(void) {{ bem_reset(&state); }}\n'
        f"int act({arguments}) {{ {body} }}\n")
    subprocess.run(["cc", "-std=c99", "-O2", "-shared", "-fPIC", "-o", "policy.so", "bridge.c"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "policy.so"))
    library.act.argtypes = [ctypes.c_double] * len(arguments.split(","))
    return library.start, library.act


def logistic(rows, visitors):
    """What a logistic regression for every banner chooses for these visitors, from the same log."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    def numbers(row):
        return [float(row["age"]), float(row["hour"]), *(float(row["device"] == name) for name in clicks_env.DEVICES),
                float(row["known"])]
    seen, shown = np.array([numbers(row) for row in rows]), np.array([int(row["shown"]) for row in rows])
    clicked = np.array([int(row["click"]) for row in rows])
    middle, spread = seen.mean(0), seen.std(0)
    asked = (np.array([numbers(row) for row in visitors]) - middle) / spread
    chances = []
    for banner in range(clicks_env.BANNERS):
        mask = shown == banner
        model = LogisticRegression(max_iter=5_000).fit((seen[mask] - middle) / spread, clicked[mask])
        chances.append(model.predict_proba(asked)[:, 1])
    return np.argmax(np.array(chances), 0)


def logistic_return(log, seeds):
    """The return of logistic regression on the same episodes."""
    with open(log, newline="") as file:
        rows = list(csv.DictReader(file))
    visitors = [clicks_env.visitor(seed * 0x9E3779B97F4A7C15 & clicks_env.MASK)[1] for seed in seeds]
    chosen = iter(logistic(rows, visitors))
    return statistics.fmean(play_clicks(lambda: None, lambda *_: int(next(chosen)), seeds))


def measure(bem, name, seed, episodes):
    """Learns, exports, compiles and plays one problem with one seed."""
    problem = PROBLEMS[name]
    seeds = range(FIRST_SEED, FIRST_SEED + episodes)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        result = {"problem": name, "seed": seed}
        if "rows" in problem:
            log = folder / "log.csv"
            log.write_text(said([sys.executable, str(EXAMPLES / "clicks_env.py"), "--log", str(problem["rows"]),
                                 str(seed)], folder))
            learned = json.loads(said([bem, "learn", "log.csv", *LOGGED, "--out", "kept", "--json"], folder))
            if not learned["supported"]:
                # No policy is written, so that there is nothing to export and nothing to play.
                return result | {"value": None, "interval": None, "policy": "none: " + "; ".join(learned["warnings"])}
            result["interval"] = learned["value"]["interval95"]
            result["policy"] = f"{learned['model']}, {learned['gates']} gates"
            if problem["reference"] is None:
                result["reference"] = logistic_return(log, seeds) / 1_000
        else:
            words = [bem, "solve", *problem["words"], "--seed", str(seed), "--env-timeout", "600"]
            words = [word for word in words if "--game" not in problem["words"] or word not in ("--env-timeout", "600")]
            learned = json.loads(said([*words, "--out", "kept", "--json"], folder))
            result["interval"] = learned["interval95"]
            result["policy"] = f"{learned['hypothesis']}, {learned['gates']} gates"
        said([bem, "export", "kept", "--format", "c", "--out", "policy.h"], folder)
        start, act = compiled(folder, problem["decide"] or CLICKS)
        returns = list(problem["play"](start, act, seeds))
        result["value"] = statistics.fmean(returns) / 1_000
        result["error"] = statistics.stdev(returns) / math.sqrt(len(returns)) / 1_000
        return result


# ---------------------------------------------------------------- the table


def covers(found):
    """How many intervals hold the mean."""
    return sum(low <= result["value"] <= high for result in found for low, high in [result["interval"]])


def row_of(name, problem, found, reference):
    """One line of the table, whether what is asked is reached, and how many intervals hold the mean."""
    learned = [result for result in found if result["value"] is not None]
    if len(learned) < len(found):
        without = ", ".join(f"seed {result['seed']}" for result in found if result["value"] is None)
        line = f"| {name} | {problem['against']} | | | | | no: no policy of {without} | {covers(learned)} of {len(found)} |"
        return line, False, covers(learned)
    values = [result["value"] for result in found]
    against = [result.get("reference", reference) for result in found]
    mean = statistics.fmean(values)
    covered = covers(found)
    if problem["share"] is None:
        reached = [value >= other for value, other in zip(values, against)]
        is_met, asked = mean >= statistics.fmean(against), "at least that"
        shares = f"{mean - statistics.fmean(against):+.3f}"
    else:
        reached = [value >= problem["share"] * other for value, other in zip(values, against)]
        is_met, asked = mean >= problem["share"] * statistics.fmean(against), f"{problem['share']}"
        shares = f"{mean / statistics.fmean(against):.4f}"
    line = (f"| {name} | {problem['against']}: {statistics.fmean(against):.3f} | {mean:.3f} | {min(values):.3f} | {shares} "
            f"| {asked} | {'yes' if is_met else 'no'}, {sum(reached)} of {len(found)} seeds | {covered} of {len(found)} |")
    return line, is_met, covered


def main():
    bem, commit, count, page = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    only = sys.argv[5:] or list(PROBLEMS)
    kept = Kept("problems", key(bem, [__file__, EXAMPLES], ["scikit-learn", "numpy"], ["cc"]))
    done = {(result["problem"], result["seed"]): result for result in kept.read()}
    wanted = [(name, seed) for seed in range(1, count + 1) for name in only if (name, seed) not in done]
    with concurrent.futures.ProcessPoolExecutor(max_workers=1 if len(wanted) < 2 else 2) as pool:
        jobs = {pool.submit(measure, bem, name, seed, EPISODES): (name, seed) for name, seed in wanted}
        for job in concurrent.futures.as_completed(jobs):
            result = job.result()
            done[jobs[job]] = result
            kept.add(result)
            value = "not learned" if result["value"] is None else f"{result['value']:.4f} in {result['interval']}"
            print(f"{result['problem']}, seed {result['seed']}: {value}; {result['policy']}", flush=True)
    lines, failed, pooled, runs = [], [], 0, 0
    for name in only:
        problem = PROBLEMS[name]
        found = [done[name, seed] for seed in range(1, count + 1)]
        reference = None
        if problem["reference"] is not None:
            reference = problem["reference"](range(FIRST_SEED, FIRST_SEED + EPISODES)) / 1_000
        line, is_met, covered = row_of(name, problem, found, reference)
        lines.append(line)
        if not problem.get("apart"):
            pooled, runs = pooled + covered, runs + len(found)
        if not is_met:
            failed.append(name)
    head = ["| problem | held against | mean return | least | share or difference | asked | reached | interval holds the truth |",
            "|---|---|---|---|---|---|---|---|"]
    share = pooled / max(runs, 1)
    text = "\n".join([
        "# Five problems of one's own", "",
        f"Written by `cargo xtask battery problems`, commit {commit}, {count} seeds each. Returns are means of {EPISODES:,} fresh",
        "episodes that the program in `examples/` plays with the exported C code, in units. A share is of the optimum; a",
        "difference is to a rule on the same episodes.", "", *head, *lines, "",
        f"The printed 95 % interval holds that mean in {pooled} of {runs} runs of the five problems ({100 * share:.0f} %; asked",
        "are 90 %); the rows of 5,000 logged and of live clicks are apart. A log's interval is about the decisions set aside.", ""])
    if set(only) == set(PROBLEMS):
        page.write_text(text)
    print("\n".join([*head, *lines, f"covered: {pooled} of {runs}"]))
    if failed or share < 0.9:
        raise SystemExit(f"not reached: {', '.join(failed) or 'coverage'}")


if __name__ == "__main__":
    main()
