"""The kinds: each makes a Program of n of something."""

from .graph import Graph, Program

KINDS = {}


def kind(make):
    KINDS[make.__name__] = make
    return make


def names(n, first="x", stem="v"):
    return [first] + [f"{stem}{i}" for i in range(n)]


def relus(n, first="x", stem="v"):
    """A graph of n operators in a chain."""
    g, v = Graph(), names(n, first, stem)
    for i in range(n):
        g.add("relu" if i % 2 else "abs", [v[i]], v[i + 1])
    g.outputs = v[-1:]
    return g


def different(g, n, source="x", stem="d"):
    """n values that are not one operator's, though they read the same."""
    return [g.add("leaky", [source], f"{stem}{i}", alpha=0x3C000000 + i) for i in range(n)]


def summed(n, op, distinct):
    """One operator of n operands."""
    g = Graph()
    ins = different(g, n) if distinct else [g.add("abs", ["x"], "a")] * n
    g.outputs = [g.add(op, ins, "y")]
    return Program(g)


@kind
def chain(n):
    return Program(relus(n))


@kind
def readers(n):
    return summed(n, "sum", True)


@kind
def equal_readers(n):
    g = Graph()
    g.outputs = [g.add("abs", ["x"], f"y{i}") for i in range(n)]
    return Program(g)


@kind
def outputs(n):
    g = relus(n)
    g.outputs = names(n)[1:]
    return Program(g)


@kind
def operands(n):
    return summed(n, "sum", False)


@kind
def feed_operands(n):
    g = Graph()
    g.outputs = [g.add("sum", ["x"] * n, "y")]
    return Program(g)


@kind
def concat(n):
    return summed(n, "concat", False)


@kind
def concat_of_different(n):
    return summed(n, "concat", True)


@kind
def split(n):
    g = Graph()
    g.outputs = [g.add("split", ["x"], [f"y{i}" for i in range(n)])]
    return Program(g, length=n)


@kind
def split_and_sum(n):
    g, pieces = Graph(), [f"y{i}" for i in range(n)]
    g.add("split", ["x"], pieces)
    g.outputs = [g.add("sum", pieces, "y")]
    return Program(g, length=n)


@kind
def inputs(n):
    g, feeds = Graph(), [f"x{i}" for i in range(n)]
    g.outputs = [g.add("sum", feeds, "y")]
    return Program(g, feeds)


@kind
def weights(n):
    g, v = Graph(), names(n)
    for i in range(n):
        g.add("mul", [v[i], f"w{i}"], v[i + 1])
    g.outputs = v[-1:]
    return Program(g, weights={f"w{i}": 0x3C000000 + i for i in range(n)})


@kind
def long_names(n):
    """Of a thousand letters each, a tenth as many."""
    n //= 10
    stem = "n" * 1000
    return Program(relus(n, stem=stem))


@kind
def functions(n):
    g, v = Graph(), names(n)
    for i in range(n):
        g.add("call", [v[i]], v[i + 1], function=f"F{i}")
    g.outputs = v[-1:]
    inner = relus(1, "a", "r")
    inner.inputs = ["a"]
    return Program(g, functions={f"F{i}": inner for i in range(n)})


@kind
def calls(n):
    made = functions(n)
    for node in made.graph.nodes:
        node.attrs["function"] = "F0"
    return Program(made.graph, functions={"F0": made.functions["F0"]})


@kind
def function_body(n):
    g = Graph()
    g.outputs = [g.add("call", ["x"], "y", function="F")]
    body = relus(n, "a", "r")
    body.inputs = ["a"]
    return Program(g, functions={"F": body})


def pick(g, cond, then, orelse, outs):
    return g.add("if", [cond], outs, then=then, orelse=orelse)


@kind
def branches(n):
    g, v = Graph(), names(n)
    c = g.add("positive", ["x"], "c")
    for i in range(n):
        pick(g, c, relus(1, v[i], f"t{i}_"), relus(2, v[i], f"e{i}_"), v[i + 1])
    g.outputs = v[-1:]
    return Program(g)


@kind
def branch_body(n):
    g = Graph()
    c = g.add("positive", ["x"], "c")
    g.outputs = [pick(g, c, relus(n, stem="t"), relus(2, stem="e"), "y")]
    return Program(g)


@kind
def captures(n):
    """What a branch reads of the graph around it."""
    g, then = Graph(), Graph()
    c = g.add("positive", ["x"], "c")
    then.outputs = [then.add("sum", different(g, n), "s")]
    g.outputs = [pick(g, c, then, relus(1, stem="e"), "y")]
    return Program(g)


@kind
def branch_outputs(n):
    g, then, orelse = Graph(), Graph(), Graph()
    c = g.add("positive", ["x"], "c")
    then.outputs = different(then, n, stem="t")
    orelse.outputs = [orelse.add("abs", ["x"], f"e{i}") for i in range(n)]
    outs = [f"y{i}" for i in range(n)]
    pick(g, c, then, orelse, outs)
    g.outputs = [g.add("sum", outs, "y")]
    return Program(g)


@kind
def loops(n):
    g, v = Graph(), names(n)
    for i in range(n):
        body = relus(2, f"a{i}", f"b{i}_")
        body.inputs = [f"a{i}"]
        g.add("loop", [v[i]], v[i + 1], body=body)
    g.outputs = v[-1:]
    return Program(g)


@kind
def loop_body(n):
    g, body = Graph(), relus(n, "a", "b")
    body.inputs = ["a"]
    g.outputs = [g.add("loop", ["x"], "y", body=body)]
    return Program(g)


@kind
def carried(n):
    """Values that a loop carries from turn to turn."""
    g, body = Graph(), Graph()
    body.inputs = [f"a{i}" for i in range(n)]
    body.outputs = [body.add("relu", [f"a{i}"], f"b{i}") for i in range(n)]
    outs = [f"y{i}" for i in range(n)]
    g.add("loop", different(g, n), outs, body=body)
    g.outputs = [g.add("sum", outs, "y")]
    return Program(g)


def nested(n, inner):
    """Graphs in graphs, by what one level adds to the graph inside it."""
    g = relus(1, "x", "deepest")
    for i in range(n):
        g = inner(g, i)
    if "c" in g.bind().free:
        g.nodes[:0] = [*_condition().nodes]
    return Program(g)


def _condition():
    g = Graph()
    g.add("positive", ["x"], "c")
    return g


@kind
def nested_branches(n):
    def level(g, i):
        outer = Graph()
        outer.outputs = [pick(outer, "c", g, relus(1, "x", f"e{i}_"), f"y{i}")]
        return outer
    return nested(n, level)


@kind
def nested_loops(n):
    def level(g, i):
        outer = Graph()
        g.inputs = [f"a{i}"]
        g.add("sum", [f"a{i}", g.outputs[0]], f"s{i}")
        g.outputs = [f"s{i}"]
        outer.outputs = [outer.add("loop", ["x"], f"y{i}", body=g, turns=1)]
        return outer
    return nested(n, level)


@kind
def nested_functions(n):
    g = Graph()
    g.outputs = [g.add("call", ["x"], "y", function=f"F{n - 1}")]
    made = {}
    for i in range(n):
        f = relus(1, "a", "r") if i == 0 else Graph()
        f.inputs = ["a"]
        if i:
            f.outputs = [f.add("call", ["a"], "r", function=f"F{i - 1}")]
        made[f"F{i}"] = f
    return Program(g, functions=made)


# Kinds whose n is a depth.
DEEP = ("nested_branches", "nested_loops", "nested_functions")
