"""A Program as Paddle's PIR, in JSON."""

import struct

FILE = "inference.json"


def tensor(dtype="f32", *dims):
    return '{"#":"0.t_dtensor","D":[{"#":"0.t_%s"},[%s],"NCHW",[],0]}' % (
        dtype, ",".join(map(str, dims)))


def attr(name, kind, value):
    return '{"AT":{"#":"%s","D":%s},"N":"%s"}' % (kind, value, name)


def real(bits):
    return repr(struct.unpack("<f", struct.pack("<I", bits))[0])


class Writer:
    def __init__(self, program):
        self.length, self.ids, self.count, self.args, self.regions = program.length, {}, 0, 0, 0
        self.x = tensor("f32", program.length)

    def op(self, kind, ins, outs, attrs="", regions=""):
        """`ins`: numbers, `outs`: types. The text and the numbers of the outputs."""
        numbers = list(range(self.count + 1, self.count + 1 + len(outs)))
        self.count += len(outs)
        return ('{"#":"%s","A":[%s],"I":[%s],"O":[%s]%s,"OA":[]}' % (
            kind, attrs, ",".join('{"%%":%d}' % i for i in ins),
            ",".join('{"%%":%d,"TT":%s}' % o for o in zip(numbers, outs)), regions)), numbers

    def full(self, value, dtype, short):
        return self.op("1.full", [], [tensor(short, 1)], ",".join([
            attr("shape", "1.a_intarray", "[1]"), attr("value", "0.a_f64", value),
            attr("dtype", "1.a_dtype", '"%s"' % dtype), attr("place", "1.a_place", '[0,0,""]')]))

    def no_axes(self):
        return self.op("1.full_int_array", [], [tensor("i64", 0)], ",".join([
            attr("value", "0.a_array", "[]"), attr("dtype", "1.a_dtype", '"int64"'),
            attr("place", "1.a_place", '[0,0,""]')]))

    def combine(self, ins):
        kind = '{"#":"0.t_vec","D":[%s]}' % ",".join([self.x] * len(ins))
        return self.op("0.combine", ins, [kind])

    def node(self, n):
        """The texts of the operators that it becomes."""
        ins = [self.ids[i] for i in n.ins]
        texts = []

        def add(made):
            texts.append(made[0])
            return made[1]
        types = [self.x] * len(n.outs)
        if n.op == "leaky":
            slope = attr("negative_slope", "0.a_f64", real(n.attrs["alpha"]))
            outs = add(self.op("1.leaky_relu", ins, types, slope))
        elif n.op == "sum":
            outs = add(self.op("1.add_n", add(self.combine(ins)), types))
        elif n.op == "concat":
            all_in, axis = add(self.combine(ins)), add(self.full("0.0", "int32", "i32"))
            outs = add(self.op("1.concat", all_in + axis, [tensor("f32", self.length * len(ins))]))
        elif n.op == "split":
            axis, one = add(self.full("0.0", "int32", "i32")), tensor("f32", 1)
            kind = '{"#":"0.t_vec","D":[%s]}' % ",".join([one] * len(n.outs))
            pieces = add(self.op("1.split_with_num", ins + axis, [kind],
                                 attr("num", "0.a_i32", len(n.outs))))
            outs = add(self.op("0.split", pieces, [one] * len(n.outs)))
        elif n.op == "mul":
            outs = add(self.op("1.multiply", ins, types))
        elif n.op == "some":
            mask = add(self.op("1.cast", ins, [tensor("bool", self.length)],
                               attr("dtype", "1.a_dtype", '"bool"')))
            outs = add(self.op("1.masked_select", ins + mask, [tensor("f32", -1)]))
        elif n.op == "reshape":
            shape = add(self.op("1.full_int_array", [], [tensor("i64", 1)], ",".join([
                attr("value", "0.a_array", '[{"#":"0.a_i64","D":-1}]'),
                attr("dtype", "1.a_dtype", '"int64"'), attr("place", "1.a_place", '[0,0,""]')])))
            outs = add(self.op("1.reshape", ins + shape, types))
        elif n.op == "total":
            outs = add(self.op("1.sum", ins + add(self.no_axes()), [tensor("f32", 1)],
                               attr("keepdim", "0.a_bool", "true")))
        elif n.op == "positive":
            axis = add(self.no_axes())
            total = add(self.op("1.max", ins + axis, [tensor()],
                                attr("keepdim", "0.a_bool", "false")))
            outs = add(self.op("1.cast", total, [tensor("bool")],
                               attr("dtype", "1.a_dtype", '"bool"')))
        elif n.op == "if":
            made = [self.region(n.attrs[k], None) for k in ("then", "orelse")]
            outs = add(self.op("1.if", ins, types, "", ',"regions":[%s]' % ",".join(made)))
        elif n.op == "loop":
            outs = self.loop(n, ins, add)
        else:
            outs = add(self.op("1." + n.op, ins, types))
        self.ids.update(zip(n.outs, outs))
        return texts

    def loop(self, n, ins, add):
        turn = add(self.full("0.0", "int64", "i64"))
        end = add(self.full("%d.0" % n.attrs.get("turns", 2), "int64", "i64"))
        goes = add(self.op("1.less_than", turn + end, [tensor("bool", 1)]))
        region = self.region(n.attrs["body"], end)
        types = [self.x] * len(n.outs) + [tensor("i64", 1)]
        return add(self.op("1.while", goes + ins + turn, types, "", ',"regions":[%s]' % region))

    def region(self, g, end):
        """Of a loop where `end` is given."""
        args = []
        self.regions += 1
        number = self.regions

        def argument(kind):
            self.args -= 1
            args.append('{"#":%d,"TT":%s}' % (self.args, kind))
            return self.args
        for name in g.inputs:
            self.ids[name] = argument(self.x)
        turn = argument(tensor("i64", 1)) if end else None
        texts = [t for n in g.nodes for t in self.node(n)]
        results = [self.ids[o] for o in g.outputs]
        if end:
            text, following = self.op("1.increment", [turn], [tensor("i64", 1)],
                                      attr("value", "0.a_f32", "1.0"))
            goes_text, goes = self.op("1.less_than", following + end, [tensor("bool", 1)])
            texts += [text, goes_text]
            results = goes + results + following
        texts.append(self.op("2.yield", results, [])[0])
        return ('{"#":"region_%d","blocks":[{"#":"block_%d","args":[%s],"ops":[%s]}]}'
                % (number, number, ",".join(args), ",".join(texts)))


def write(program):
    if program.functions or program.rewrites:
        return None
    w = Writer(program)
    texts = []
    for k, name in enumerate(sorted(program.weights)):
        w.count += 1
        w.ids[name] = w.count
        texts.append('{"#":"p","A":[0,1,1,"%s"],"DA":[],"O":{"%%":%d,"TT":%s},"OA":[1,0,1],"QA":[]}'
                     % (name, w.count, tensor("f32", 1)))
    for name in program.feeds:
        text, made = w.op("1.data", [], [w.x], ",".join([
            attr("name", "0.a_str", '"%s"' % name),
            attr("shape", "1.a_intarray", "[%d]" % program.length),
            attr("dtype", "1.a_dtype", '"float32"'), attr("place", "1.a_place", '[0,0,""]')]))
        texts.append(text)
        w.ids[name] = made[0]
    for n in program.graph.nodes:
        texts.extend(w.node(n))
    for k, o in enumerate(program.graph.outputs):
        texts.append(w.op("1.fetch", [w.ids[o]], [w.x], ",".join([
            attr("name", "0.a_str", '"%s"' % o), attr("col", "0.a_i32", k)]))[0])
    head = '{"base_code":{"magic":"pir","trainable":true,"version":4},"program":{"regions":'
    block = '[{"#":"region_0","blocks":[{"#":"block_0","args":[],"ops":[%s]}]}]}}'
    files = {FILE: (head + block % ",".join(texts)).encode()}
    if program.weights:
        desc = b"\x08\x05\x10\x01"
        record = struct.pack("<IQII", 0, 0, 0, len(desc)) + desc
        files["inference.pdiparams"] = b"".join(
            record + program.weights[name].to_bytes(4, "little")
            for name in sorted(program.weights))
    return files
