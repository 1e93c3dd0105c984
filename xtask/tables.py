#!/usr/bin/env python3
"""Three public tables, learned by `bem learn` and by scikit-learn on the same folds. Prints one table and judges it.

Run it with: cargo xtask battery tables --scale 10   (ten times five-fold cross-validation)

Every fold goes the whole way: the training rows become a CSV file, `bem learn` writes a policy, `bem export` makes a Python
module of it, and that module answers the test rows. As bandit problems each training row is shown several times, an action is
drawn with equal chance, and only whether it was right is logged.
"""
import csv
import importlib.util
import json
import random
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

# Name, loader, points that may be missing, and how often a training row is shown as a bandit problem.
TABLES = [("breast cancer", load_breast_cancer, 2.0, 4), ("wine", load_wine, 2.0, 12), ("digits", load_digits, 6.0, 5)]


def peers(seed):
    return {
        "tree": DecisionTreeClassifier(random_state=seed),
        "forest": RandomForestClassifier(random_state=seed),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
        "neighbours": KNeighborsClassifier(),
        "neighbours, scaled": make_pipeline(StandardScaler(), KNeighborsClassifier()),
    }


def learn(bem, folder, names, rows, roles):
    """The policy as a module, and what `bem learn` said."""
    log, policy, module = folder / "log.csv", folder / "learned.policy", folder / "learned.py"
    with open(log, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)
    words = [bem, "learn", str(log), "--out", str(policy), "--json", *roles]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
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


def main():
    warnings.filterwarnings("ignore")
    bem, repeats = sys.argv[1], int(sys.argv[2])
    only = sys.argv[3:]
    print(f"{'table':<14} {'best of scikit-learn':<28} {'bem':>6} {'missing':>8} {'bandit':>7} {'gates':>6}  model")
    failed = []
    for name, load, margin, shown in TABLES:
        if only and name not in only:
            continue
        data = load()
        values, labels = data.data, data.target
        columns = [f"f{place}" for place in range(values.shape[1])]
        classes = len(set(labels))
        scores, own, bandit, gates, model = {}, [], [], [], ""
        for repeat in range(repeats):
            folds = StratifiedKFold(5, shuffle=True, random_state=repeat)
            for train, test in folds.split(values, labels):
                for peer, fitted in peers(repeat).items():
                    fitted.fit(values[train], labels[train])
                    scores.setdefault(peer, []).append(fitted.score(values[test], labels[test]))
                texts = [[repr(float(value)) for value in row] for row in values]
                with tempfile.TemporaryDirectory() as folder:
                    rows = [texts[row] + [labels[row]] for row in train]
                    module, said = learn(bem, Path(folder), columns + ["label"], rows, ["--label", "label"])
                    own.append(accuracy(module, said["actions"], columns, [texts[row] for row in test], labels[test]))
                    gates.append(said["gates"])
                    model = said["model"]
                with tempfile.TemporaryDirectory() as folder:
                    generator = random.Random(repeat)
                    rows = []
                    for row in list(train) * shown:
                        action = generator.randrange(classes)
                        rows.append(texts[row] + [action, int(action == labels[row]), 1 / classes])
                    roles = ["--action", "action", "--reward", "reward", "--propensity", "chance"]
                    header = columns + ["action", "reward", "chance"]
                    module, said = learn(bem, Path(folder), header, rows, roles)
                    bandit.append(accuracy(module, said["actions"], columns, [texts[row] for row in test], labels[test]))
        means = {peer: 100 * sum(found) / len(found) for peer, found in scores.items()}
        best = max(means, key=means.get)
        mean, played = (100 * sum(found) / len(found) for found in (own, bandit))
        missing = means[best] - mean
        print(f"{name:<14} {best + f' {means[best]:.2f}':<28} {mean:>6.2f} {missing:>8.2f} {played:>7.2f} "
              f"{sum(gates) // len(gates):>6}  {model}", flush=True)
        print("  " + ", ".join(f"{peer} {mean:.2f}" for peer, mean in means.items()), flush=True)
        if missing > margin:
            failed.append(f"{name}: {missing:.2f} points are missing, {margin} may be")
    if failed:
        raise SystemExit("; ".join(failed))


if __name__ == "__main__":
    main()
