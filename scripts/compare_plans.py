#!/usr/bin/env python3
"""What differs between the plans of one network in several formats.

  compare_plans.py PLAN.json PLAN.json...            outputs of `heddle plan --json`
  compare_plans.py --heddle build/release/heddle [--shape NAME=DIMS] MODEL[:PARAMETERS]...

Of each plan the list of (operator, implementation, shapes of what it reads and writes) is compared
with that of the first: names of variables, the order of independent operators, the order in which
an operator names what its blocks use, outputs that nobody reads and where values lie do not count.
Printed is the number of equal steps and what stands in one list only. Status 0 when the lists are
equal.
"""

import argparse
import collections
import json
import subprocess
import sys

WITH_BLOCKS = ("conditional_block", "while")


def steps_of(plan):
    slots = {slot["slot"]: slot for slot in plan["slots"]}

    def operand(number):
        slot = slots.get(number, {})
        return (slot.get("dtype", "?") + "[" + ",".join(map(str, slot["shape"])) + "]"
                if "shape" in slot else "-" if number < 0 else "?")

    read = {k for step in plan["steps"] for k in step["inputs"]}
    read |= {fetch["slot"] for fetch in plan["fetches"]}
    read |= {slot["slot"] for slot in plan["slots"] if slot["storage"] == "scope"}
    steps = []
    for step in plan["steps"]:
        inputs = [operand(k) for k in step["inputs"]]
        outputs = [operand(k) if k in read else "-" for k in step["outputs"]]
        while outputs and outputs[-1] == "-":
            outputs.pop()
        if step["op"] in WITH_BLOCKS:
            inputs.sort()
            outputs.sort()
        steps.append((step["op"], step.get("implementation", ""),
                      " ".join(inputs) + " -> " + " ".join(outputs)))
    return steps


def plan_of(options, model):
    if not options.heddle:
        with open(model, encoding="utf-8") as file:
            return json.load(file)
    model, _, parameters = model.partition(":")
    command = [options.heddle, "plan", model, "--json", "--threads", str(options.threads)]
    command += ["--params", parameters] if parameters else []
    for shape in options.shape:
        command += ["--shape", shape]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def compare(names, lists):
    different = False
    first = collections.Counter(lists[0])
    for name, steps in zip(names[1:], lists[1:]):
        other = collections.Counter(steps)
        same = sum((first & other).values())
        print(f"{names[0]}: {len(lists[0])} steps, {name}: {len(steps)} steps, {same} equal")
        for title, only in ((names[0], first - other), (name, other - first)):
            for (op, implementation, shapes), count in sorted(only.items()):
                different = True
                times = f"{count} × " if count > 1 else ""
                print(f"  only {title}: {times}{op} ({implementation or '-'}) {shapes}")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans", nargs="+", help="plans as JSON, or models with --heddle")
    parser.add_argument("--heddle", help="the tool, to make the plans")
    parser.add_argument("--shape", action="append", default=[], help="as for `heddle plan`")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if len(options.plans) < 2:
        parser.error("two plans at least")
    lists = [steps_of(plan_of(options, name)) for name in options.plans]
    return 1 if compare(options.plans, lists) else 0


if __name__ == "__main__":
    sys.exit(main())
