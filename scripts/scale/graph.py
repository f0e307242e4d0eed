"""Programs apart from any format: operators by name, values by name, graphs in graphs."""

from dataclasses import dataclass, field


@dataclass
class Node:
    """`op` is one of relu, abs, reshape (to a vector), leaky, sum, concat, split, mul, total (the
    sum of all elements), positive (whether that is above 0), some (elements of it, whose number the
    run finds), sgd (a step of a weight: weight, gradient, rate), momentum (of several: weights,
    gradients, velocities, rate), if (of graphs `then` and `orelse`), loop (`body`; `turns`, or
    two), call (`function`)."""

    op: str
    ins: list
    outs: list
    attrs: dict = field(default_factory=dict)

    def graphs(self):
        return [g for g in self.attrs.values() if isinstance(g, Graph)]


@dataclass
class Graph:
    """What graphs inside read of names that they do not define is the outer graph's."""

    nodes: list = field(default_factory=list)
    inputs: list = field(default_factory=list)  # of a loop's body or a function
    outputs: list = field(default_factory=list)
    free: list = None  # names that are the outer graph's, once `bind` was called

    def add(self, op, ins, outs=None, **attrs):
        """The first output; one with a new name where `outs` is not given."""
        outs = [outs] if isinstance(outs, str) else outs
        self.nodes.append(Node(op, list(ins), outs, attrs))
        return outs[0]

    def bind(self):
        """Finds `free` of it and of the graphs inside, without recursion."""
        order, todo = [], [self]
        while todo:
            g = todo.pop()
            order.append(g)
            for n in g.nodes:
                todo.extend(n.graphs())
        for g in reversed(order):
            known, free = set(g.inputs), {}
            for n in g.nodes:
                for name in n.ins + [f for inner in n.graphs() for f in inner.free]:
                    if name not in known:
                        free[name] = None
                known.update(n.outs)
            for name in g.outputs:
                if name not in known:
                    free[name] = None
            g.free = list(free)
        return self


@dataclass
class Program:
    graph: Graph
    feeds: list = field(default_factory=lambda: ["x"])
    length: int = 2  # of each feed
    weights: dict = field(default_factory=dict)  # one number each, by name
    functions: dict = field(default_factory=dict)  # graphs with one input, by name
    refs: dict = field(default_factory=dict)  # outputs as the last file calls them; empty: no other
    rewrites: bool = False  # some names are written again: for formats where values may change
