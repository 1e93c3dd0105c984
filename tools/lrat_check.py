#!/usr/bin/env python3
"""A second LRAT checker, written from the format alone and sharing nothing with the Rust one.

Usage: lrat_check.py FORMULA.cnf PROOF [LITERAL...]

Prints "s VERIFIED" and exits 0 if the proof (text or binary LRAT, unit propagation only) shows that the formula
has no model in which all given literals hold; prints the reason and exits 1 if it does not. With several jobs,
give them on standard input, one "FORMULA PROOF LITERAL..." a line; one answer a line is printed.
"""

import sys


class Refused(Exception):
    pass


def read_formula(path):
    literals = []
    with open(path) as file:
        for line in file:
            if line[:1] == "%":
                break
            if line.strip() and line[0] not in "cp":
                literals.extend(map(int, line.split()))
    clauses, clause = [], []
    for literal in literals:
        if literal == 0:
            clauses.append(clause)
            clause = []
        else:
            clause.append(literal)
    return clauses


def text_steps(data):
    for line in data.decode("ascii").splitlines():
        words = line.split()
        if not words or words[0] == "c":
            continue
        if len(words) > 1 and words[1] == "d":
            yield "d", 0, [], [int(word) for word in words[2:-1]]
        else:
            numbers = [int(word) for word in words]
            end = numbers.index(0, 1)
            if numbers[-1] != 0 or end == len(numbers) - 1:
                raise Refused("a step does not end with 0")
            yield "a", numbers[0], numbers[1:end], numbers[end + 1 : -1]


def binary_steps(data):
    position = 0

    def number():
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return -(value >> 1) if value & 1 else value >> 1

    def numbers():
        found = []
        while (value := number()) != 0:
            found.append(value)
        return found

    while position < len(data):
        tag = data[position : position + 1]
        position += 1
        if tag == b"a":
            identifier = number()
            clause = numbers()
            yield "a", identifier, clause, numbers()
        elif tag == b"d":
            yield "d", 0, [], numbers()
        else:
            raise Refused("an unknown step")


def follows(known, clause, hints):
    false = set(clause)
    if any(-literal in false for literal in clause):
        return True
    for hint in hints:
        if hint not in known:
            raise Refused(f"clause {hint} is not known")
        left = {literal for literal in known[hint] if literal not in false}
        if not left:
            return True
        if len(left) > 1:
            raise Refused(f"hint {hint} is not unit")
        false.add(-left.pop())
    return False


def check(formula_path, proof_path, assumptions):
    known = dict(enumerate(read_formula(formula_path), 1))
    goal = {-literal for literal in assumptions}
    reached = [] in known.values()
    last = len(known)
    with open(proof_path, "rb") as file:
        data = file.read()
    steps = binary_steps(data) if data[:1] in (b"a", b"d") else text_steps(data)
    for kind, identifier, clause, hints in steps:
        if kind == "d":
            for hint in hints:
                if known.pop(hint, None) is None:
                    raise Refused(f"clause {hint} is not known")
            continue
        if identifier <= last:
            raise Refused(f"identifier {identifier} does not grow")
        if not follows(known, clause, hints):
            raise Refused(f"clause {identifier} does not follow")
        last = identifier
        known[identifier] = clause
        reached = reached or goal.issuperset(clause)
    if not reached:
        raise Refused("the proof does not reach its goal")


def answer(words):
    try:
        check(words[0], words[1], [int(word) for word in words[2:]])
        return "s VERIFIED"
    except (Refused, ValueError, IndexError, UnicodeDecodeError) as error:
        return f"s REFUSED {error}"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        verdict = answer(sys.argv[1:])
        print(verdict)
        sys.exit(verdict != "s VERIFIED")
    for job in sys.stdin:
        print(answer(job.split()))
