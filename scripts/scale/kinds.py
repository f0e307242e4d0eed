"""The kinds: each makes a Program of n of something."""

from .graph import Graph, Node, Program

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
def reshapes(n):
    """Operators of one value that passes about layouts look at."""
    g, ends = Graph(), []
    g.add("abs", ["x"], "v")
    for i in range(n):
        g.add("reshape", ["v"], f"r{i}")
        ends.append(g.add("leaky", [f"r{i}"], f"d{i}", alpha=0x3C000000 + i))
    g.outputs = [g.add("sum", ends, "y")]
    return Program(g)


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
def fed_and_fetched(n):
    g, feeds = Graph(), [f"x{i}" for i in range(n)]
    g.outputs = [g.add("abs", [f], f"y{i}") for i, f in enumerate(feeds)]
    return Program(g, feeds)


@kind
def towers(n):
    """Chains of ten side by side."""
    g = Graph()
    for i in range(n // 10):
        tower = relus(10, f"d{i}", f"t{i}_")
        g.add("leaky", ["x"], f"d{i}", alpha=0x3C000000 + i)
        g.nodes += tower.nodes
        g.outputs += tower.outputs
    g.outputs = [g.add("sum", g.outputs, "y")]
    return Program(g)


@kind
def crossed(n):
    """Values that are read in the order opposite to that in which they were made."""
    g, last = relus(n), "x"
    for i in reversed(range(n)):
        last = g.add("sum", [last, f"v{i}"], f"s{i}")
    g.outputs = [last]
    return Program(g)


@kind
def crossed_sizes(n):
    """The same, of sixty sizes."""
    g, sums = Graph(), []
    made = [g.add("concat", ["x"] * (1 + 37 * i % 60), f"m{i}") for i in range(n)]
    for i in reversed(range(n)):
        sums.append(g.add("total", [made[i]], f"s{i}"))
    g.outputs = [g.add("sum", sums, "y")]
    return Program(g, length=16)


@kind
def rewrites(n):
    """Ten values of one variable, each with many readers."""
    g, read = Graph(), []
    g.add("abs", ["x"], "v")
    for k in range(10):
        read += different(g, n // 10, "v", f"d{k}_")
        g.add("leaky", ["v"], "v", alpha=0x3C000000)
    g.outputs = [g.add("sum", read, "y")]
    return Program(g, rewrites=True)


@kind
def updates(n):
    """As training makes them: a step of each of n parameters."""
    g = Graph()
    rate = g.add("total", ["x"], "rate")
    for i in range(n):
        g.add("sgd", [f"w{i}", g.add("leaky", [rate], f"g{i}", alpha=0x3C000000 + i), rate],
              f"w{i}")
    g.outputs = ["rate"]
    return Program(g, weights={f"w{i}": 0x3C000000 + i for i in range(n)}, rewrites=True)


@kind
def updates_at_once(n):
    """The same by one operator."""
    g, grads = Graph(), []
    rate = g.add("total", ["x"], "rate")
    for i in range(n):
        grads.append(g.add("leaky", [rate], f"g{i}", alpha=0x3C000000 + i))
    weights, speeds = [f"w{i}" for i in range(n)], [f"s{i}" for i in range(n)]
    g.add("momentum", weights + grads + speeds + [rate], weights + speeds)
    g.outputs = ["rate"]
    return Program(g, weights={w: 0x3C000000 + i for i, w in enumerate(weights + speeds)},
                   rewrites=True)


@kind
def equal_rewrites(n):
    """A variable that is written anew with what it held."""
    g, read = Graph(), []
    for i in range(n):
        g.add("abs", ["x"], "v")
        read.append(g.add("leaky", ["v"], f"d{i}", alpha=0x3C000000 + i))
    g.outputs = [g.add("sum", read, "y")]
    return Program(g, rewrites=True)


def opened(made):
    """The same of an input whose shape the run finds."""
    for n in made.graph.nodes:
        n.ins = ["some" if i == "x" else i for i in n.ins]
    made.graph.nodes[:0] = [Node("some", ["x"], ["some"])]
    return made


@kind
def open_chain(n):
    return opened(chain(n))


@kind
def open_readers(n):
    return opened(readers(n))


@kind
def open_operands(n):
    return opened(operands(n))


@kind
def open_concat(n):
    return opened(concat_of_different(n))


@kind
def open_crossed(n):
    return opened(crossed(n))


@kind
def open_branches(n):
    return opened(branches(n))


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
def same_names(n):
    """Branches whose values have the same names in each."""
    g, v = Graph(), names(n)
    c = g.add("positive", ["x"], "c")
    for i in range(n):
        pick(g, c, relus(1, v[i], "t"), relus(2, v[i], "e"), v[i + 1])
    g.outputs = v[-1:]
    return Program(g)


@kind
def branches_in_branch(n):
    g = Graph()
    c = g.add("positive", ["x"], "c")
    inner = branches(n).graph
    g.outputs = [pick(g, c, inner, relus(2, stem="e"), "y")]
    inner.nodes = inner.nodes[1:]  # the condition is that outside
    return Program(g)


@kind
def branches_of_constants(n):
    """Branches with something to compute in advance."""
    g, v = Graph(), names(n)
    c = g.add("positive", ["x"], "c")
    for i in range(n):
        then = Graph()
        w = then.add("leaky", [f"w{i}"], f"t{i}", alpha=0x3C000000)
        then.outputs = [then.add("mul", [v[i], w], f"m{i}")]
        pick(g, c, then, relus(2, v[i], f"e{i}_"), v[i + 1])
    g.outputs = v[-1:]
    return Program(g, weights={f"w{i}": 0x3C000000 + i for i in range(n)})


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
def loops_in_loop(n):
    g, body = Graph(), loops(n).graph
    for node in body.nodes[:1]:
        node.ins = ["a"]
    body.inputs = ["a"]
    g.outputs = [g.add("loop", ["x"], "y", body=body)]
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


@kind
def deep_bodies(n):
    """Forty branches in each other, of n operators in all."""
    def level(g, i):
        outer = relus(n // 40, "x", f"b{i}_")
        pick(outer, "c", g, relus(1, outer.outputs[0], f"e{i}_"), f"y{i}")
        outer.outputs = [outer.add("sum", [outer.outputs[0], f"y{i}"], f"z{i}")]
        return outer
    return nested(40, level)


@kind
def deep_captures(n):
    """What forty branches in each other read of the graph around them."""
    def level(g, i):
        outer = Graph()
        outer.outputs = [pick(outer, "c", g, relus(1, "x", f"e{i}_"), f"y{i}")]
        return outer
    g = Graph()
    g.outputs = [g.add("sum", [f"d{i}" for i in range(n)], "s")]
    for i in range(40):
        g = level(g, i)
    first = _condition()
    different(first, n)
    g.nodes[:0] = first.nodes
    return Program(g)


# Kinds whose n is a depth.
DEEP = ("nested_branches", "nested_loops", "nested_functions")
