#!/usr/bin/env python3
"""Three public tables, learned by `bem learn` and by scikit-learn on the same folds. Prints one table and judges it.

Run it with: cargo xtask battery tables --scale 10   (ten times five-fold cross-validation)

Every fold goes the whole way: the training rows become a CSV file, `bem learn` writes a policy, `bem export` makes a Python
module of it, and that module answers the test rows. As bandit problems each training row is shown several times, an action is
drawn with equal chance, and only whether it was right is logged; the same with each row shown once is told and not judged. Where
`bem learn` writes no policy, the fold is counted as one without: a row that is judged is missed where it has any. The rules are
those that `bem explain --log` finds on the training rows of the first fold. What was measured with the same program, scripts and
packages is not measured again.
"""
import concurrent.futures
import csv
import importlib.util
import json
import random
import statistics
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from kept import Kept, key

# Loader, points that may be missing, and how often a training row is shown as a bandit problem.
TABLES = {"breast cancer": (load_breast_cancer, 2.0, 4), "wine": (load_wine, 2.0, 12), "digits": (load_digits, 6.0, 10)}


# Lines of a policy's rules that the page shows.
RULES_SHOWN = 24


def peers(seed):
    return {
        "tree": DecisionTreeClassifier(random_state=seed),
        "forest": RandomForestClassifier(random_state=seed),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
        "neighbours": KNeighborsClassifier(),
        "neighbours, scaled": make_pipeline(StandardScaler(), KNeighborsClassifier()),
    }


def learn(bem, folder, names, rows, roles):
    """The policy as a module and what `bem learn` said; nothing where the log supports no policy."""
    log, policy, module = folder / "log.csv", folder / "learned.policy", folder / "learned.py"
    with open(log, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)
    words = [bem, "learn", str(log), "--out", str(policy), "--json", *roles]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    if answer.returncode == 1 and not policy.exists():
        return None
    if answer.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {answer.stdout}{answer.stderr}")
    subprocess.run([bem, "export", str(policy), "--format", "python", "--out", str(module)], check=True,
                   capture_output=True)
    spec = importlib.util.spec_from_file_location("learned", module)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded, json.loads(answer.stdout)


def accuracy(module, words, columns, rows, labels):
    policy, right = module.Policy(), 0
    for row, label in zip(rows, labels):
        action = module.decide_features(policy, dict(zip(columns, row)))
        right += words[action] == str(label)
    return right / len(rows)


def measure(bem, name, repeat, fold):
    """One fold: every peer, and BEM from labels and from rewards."""
    warnings.filterwarnings("ignore")
    load, _, shown = TABLES[name]
    data = load()
    values, labels = data.data, data.target
    columns, classes = [str(name) for name in data.feature_names], len(set(labels))
    train, test = list(StratifiedKFold(5, shuffle=True, random_state=repeat).split(values, labels))[fold]
    result = {"table": name, "repeat": repeat, "fold": fold, "peers": {}}
    for peer, fitted in peers(repeat).items():
        fitted.fit(values[train], labels[train])
        result["peers"][peer] = fitted.score(values[test], labels[test])
    texts = [[repr(float(value)) for value in row] for row in values]
    generator = random.Random(repeat)

    def drawn(row):
        action = generator.randrange(classes)
        return texts[row] + [action, int(action == labels[row]), 1 / classes]

    logged = columns + ["action", "reward", "chance"]
    roles = ["--action", "action", "--reward", "reward", "--propensity", "chance"]
    kinds = {
        "labels": (columns + ["label"], [texts[row] + [labels[row]] for row in train], ["--label", "label"]),
        "rewards": (logged, [drawn(row) for row in list(train) * shown], roles),
        "once": (logged, [drawn(row) for row in train], roles),
    }
    for kind, (names, rows, roles) in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            learned = learn(bem, Path(folder), names, rows, roles)
            if learned is None:
                # No policy is written, so that there is nothing to export and nothing to ask.
                result[kind] = None
                continue
            module, said = learned
            found = accuracy(module, said["actions"], columns, [texts[row] for row in test], labels[test])
            if kind == "labels" and (repeat, fold) == (0, 0):
                words = [bem, "explain", str(Path(folder) / "learned.policy"), "--log", str(Path(folder) / "log.csv")]
                result["rules"] = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            result[kind] = {"accuracy": found, "gates": said["gates"], "reads": said["reads"], "model": said["model"],
                            "said": said["value"]["mean"]}
    return result


def rows_of(name, found):
    """The lines of one table, and what is missing too much."""
    margin, shown = TABLES[name][1:]
    means = {peer: 100 * statistics.fmean(one["peers"][peer] for one in found) for peer in found[0]["peers"]}
    best = max(means, key=means.get)
    lines, failed = [], []
    for kind, about in (("labels", "labels"), ("rewards", f"rewards, each row shown {shown} times"),
                        ("once", "rewards, each row shown once")):
        folds = [one for one in found if one[kind] is not None]
        learned, without = [one[kind] for one in folds], len(found) - len(folds)
        allowed = "not judged" if kind == "once" else margin
        if without and kind != "once":
            failed.append(f"{name}, {kind}: no policy in {without} of {len(found)} folds")
        if not learned:
            lines.append(f"| {name} | {about} | {without} of {len(found)} | | {best} {means[best]:.2f} | | {allowed} | | | | |")
            continue
        mean, said = (100 * statistics.fmean(one[key] for one in learned) for key in ("accuracy", "said"))
        gates, reads = (statistics.median(one[key] for one in learned) for key in ("gates", "reads"))
        models = [one["model"].split(":")[0] for one in learned]
        model = max(sorted(set(models)), key=models.count)
        # The peer is held against the policies on the folds that have one.
        missing = 100 * statistics.fmean(one["peers"][best] for one in folds) - mean
        lines.append(f"| {name} | {about} | {without} of {len(found)} | {mean:.2f} | {best} {means[best]:.2f} | {missing:+.2f} "
                     f"| {allowed} | {said:.2f} | {gates:.0f} | {reads:.0f} | {model} ({models.count(model)} of {len(models)}) |")
        if kind != "once" and missing > margin:
            failed.append(f"{name}, {kind}: {missing:.2f} points are missing, {margin} may be")
    every = ", ".join(f"{peer} {mean:.2f}" for peer, mean in means.items())
    return lines, f"- {name}: {every}", failed


def rules_page(done, names):
    """What `bem explain` prints of the first fold's policies, from labels, on the rows that they were learned from."""
    lines = ["## Rules", "", "The first lines of what `bem explain POLICY --log LOG` prints of the policies of the first fold, learned from labels; the",
             "log is the table's own rows that they were learned from. A vote of some hundred bits is no short list of rules: the stated",
             "agreement says how far the rules are the circuit on these rows, and `--json` has all of them.", ""]
    for name in names:
        rules = done[name, 0, 0].get("rules", "There is no policy of this fold.").splitlines()
        shown = rules[:RULES_SHOWN]
        lines += [f"### {name}", "", "```text", *shown, *(["..."] if len(shown) < len(rules) else []), "```", ""]
    return lines


def progress(one):
    """What one fold brought, for the one who waits."""
    return ", ".join(f"{kind} " + ("no policy" if one[kind] is None else f"{one[kind]['accuracy']:.3f}")
                     for kind in ("labels", "rewards"))


def main():
    bem, commit, repeats, page = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    only = sys.argv[5:] or list(TABLES)
    kept = Kept("tables", key(bem, [__file__], ["scikit-learn", "numpy"]))
    done = {(one["table"], one["repeat"], one["fold"]): one for one in kept.read()}
    folds = [(name, repeat, fold) for repeat in range(repeats) for name in only for fold in range(5)]
    with concurrent.futures.ProcessPoolExecutor(max_workers=2) as pool:
        jobs = {pool.submit(measure, bem, *place): place for place in folds if place not in done}
        for job in concurrent.futures.as_completed(jobs):
            done[jobs[job]] = one = job.result()
            kept.add(one)
            print(*jobs[job], progress(one), flush=True)
    head = ["| table | from | folds without a policy | accuracy, % | best of scikit-learn | missing | may be | BEM's own figure, % "
            "| gates | bits read | model |",
            "|---|---|---|---|---|---|---|---|---|---|---|"]
    lines, notes, failed = [], [], []
    for name in only:
        found = [done[place] for place in folds if place[0] == name]
        rows, note, wrong = rows_of(name, found)
        lines, notes, failed = lines + rows, [*notes, note], failed + wrong
    text = "\n".join([
        "# Public tables", "",
        f"Written by `cargo xtask battery tables`, commit {commit}: {repeats} times five-fold cross-validation on breast cancer, wine and",
        "digits of scikit-learn, numbers cut at thresholds by BEM itself, the exported Python module asked about the rows held out.",
        "Gates and bits are medians, the model is the most frequent one. BEM's own figure is what it prints of itself: cross-validated",
        "accuracy, or the doubly robust estimate on cases set aside. As a bandit problem a row is drawn an action for, with equal",
        "chance, each time that it is shown; D-311 says why it is shown several times. Rows shown once are told and not judged.",
        "Where the log supports no policy better than that which wrote it, `bem learn` writes none: figures of BEM, and what is missing",
        "to the peer, are those of the folds that have one, and a row that is judged is missed where any fold has none.", "",
        *head, *lines, "", "Peers, accuracy in percent:", "", *notes, ""])
    if set(only) == set(TABLES):
        page.write_text(text + "\n".join(rules_page(done, only)))
    print("\n".join([*head, *lines, *notes]))
    if failed:
        raise SystemExit("; ".join(failed))


if __name__ == "__main__":
    main()
