#!/usr/bin/env python3
"""Makes formats/paddle/op_demands.inc: what Paddle's definitions want of an operator in a file that
heddle's own do not say.

  heddle ops | paddle_demands.py > formats/paddle/op_demands.inc    with Paddle 2.6.2

A line for each operator of heddle: output slots that have to name a variable ("*": a list;
"-": Paddle has no such operator), and attributes whose number type is another one than a small
integer, a float or lists of those, or that heddle has no use for and whose default fits another
operator ("name=text").
"""
import re
import sys
import paddle
from paddle.base.framework import OpProtoHolder

# AttrType of framework.proto -> how it is written here.
TYPES = {7: "bools", 9: "long", 11: "longs", 12: "float64s", 15: "float64", 16: "scalar",
         17: "scalars"}


def main():
    if paddle.__version__ != "2.6.2":
        sys.exit(f"this is Paddle {paddle.__version__}; 2.6.2 is wanted")
    ops = sys.stdin.read().split()
    protos = OpProtoHolder.instance().op_proto_map
    known = set(paddle.base.core.get_all_op_names())
    print("// Made by scripts/paddle_demands.py of Paddle 2.6.2's definitions; do not edit.")
    for op in sorted(ops):
        if op in ("feed", "fetch"):
            continue
        if op not in protos and op in known:  # gradients
            continue
        if op not in protos:
            print(f'{{"{op}", "-", ""}},')
            continue
        outputs = [o.name + "*" * o.duplicable for o in protos[op].outputs if not o.dispensable]
        attributes = [f"{a.name}:{TYPES[a.type]}" for a in protos[op].attrs
                      if a.type in TYPES and not a.extra]
        attributes += [f"interp_method={x}" for x in re.findall(r"^(\w+)_interp(?:_v2)?$", op)]
        if len(outputs) > 1 or attributes:  # no operator does without its only output
            print(f'{{"{op}", "{" ".join(outputs)}", "{" ".join(attributes)}"}},')


if __name__ == "__main__":
    main()
