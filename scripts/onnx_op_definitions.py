#!/usr/bin/env python3
"""Makes formats/onnx/definitions/op_definitions.inc: what ONNX's definitions demand of nodes.

  onnx_op_definitions.py > formats/onnx/definitions/op_definitions.inc

Needs onnx 1.23, and onnxruntime 1.32 for the operators of com.microsoft that docs/com-microsoft.md
lists. One line for each operator and each opset in which its definition changes: the operator
("domain:op" outside of ONNX's own domain), the opset, the inputs, the outputs, the types that type
parameters may stand for, the attributes. An input is a type parameter or a type; "?" behind it: it
may be absent; "+": any number of one type; "*": any number of any allowed types. A type is the
number of TensorProto.DataType, behind an "s" for sequences; optional types are written as what they
hold, and "-" is a type that the table does not describe. Of an attribute follow AttributeProto's
type and, if every node must have it, "!".
"""
import pathlib
import re
import sys

LISTED = pathlib.Path(__file__).resolve().parent.parent / "docs" / "com-microsoft.md"
# AttributeProto's types in the order of the words of onnx and of onnxruntime.
KINDS = {"FLOAT": 1, "INT": 2, "STRING": 3, "TENSOR": 4, "GRAPH": 5, "FLOATS": 6, "INTS": 7,
         "STRINGS": 8, "TENSORS": 9, "GRAPHS": 10, "SPARSE_TENSOR": 11, "SPARSE_TENSORS": 12,
         "TYPE_PROTO": 13, "TYPE_PROTOS": 14}
ELEMENTS = {"float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
            "string": 8, "bool": 9, "float16": 10, "double": 11, "uint32": 12, "uint64": 13,
            "complex64": 14, "complex128": 15, "bfloat16": 16, "float8e4m3fn": 17,
            "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22,
            "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26, "float6e2m3": 27,
            "float6e3m2": 28}


def type_word(text):
    """"7" or "s7"; None: a type of another kind."""
    found = re.fullmatch(r"(?:optional\()?(seq\()?tensor\((\w+)\)\)*", text)
    return (("s" if found[1] else "") + str(ELEMENTS[found[2]])) if found else None


def ranges(numbers):
    """[1, 2, 3, 7] -> "1-3,7"."""
    parts = []
    for n in sorted(numbers):
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return [f"{a}-{b}" if a < b else str(a) for a, b in parts]


def type_list(texts):
    """"1-3,s7"; "-": some of the types are of another kind."""
    words = [type_word(t) for t in texts]
    if None in words:
        return "-"
    plain = ranges({int(w) for w in words if w[0] != "s"})
    sequences = ranges({int(w[1:]) for w in words if w[0] == "s"})
    return ",".join(plain + ["s" + s for s in sequences])


def said(thing, name, other):
    """An attribute that onnx and onnxruntime write differently."""
    return getattr(thing, name) if hasattr(thing, name) else getattr(thing, other)


def rows_of(versions):
    """(since, columns) of one operator, without versions that change nothing."""
    rows = []
    for schema in sorted(versions, key=lambda s: s.since_version):
        allowed = {c.type_param_str: type_list(c.allowed_type_strs)
                   for c in schema.type_constraints}

        def word(parameter):
            text = said(parameter, "type_str", "typeStr")
            if text not in allowed:
                text = type_word(text) or "-"
            elif re.fullmatch(r"s?\d+|-", allowed[text]):
                text = allowed[text]
            option = str(parameter.option).rsplit(".", maxsplit=1)[-1]
            if option == "Variadic":
                one_type = said(parameter, "is_homogeneous", "isHomogeneous")
                return text + ("+" if one_type else "*")
            return text + ("?" if option == "Optional" else "")

        def kind(attribute):
            return KINDS[str(attribute.type).rsplit(".", maxsplit=1)[-1]]

        inputs = " ".join(map(word, schema.inputs))
        outputs = " ".join(map(word, schema.outputs))
        used = set(re.findall(r"\w+", inputs + " " + outputs))
        types = " ".join(f"{n}:{t}" for n, t in sorted(allowed.items()) if n in used)
        attributes = " ".join(f"{a.name}:{kind(a)}{'!' if a.required else ''}"
                              for _, a in sorted(schema.attributes.items()))
        columns = ("" if schema.deprecated else inputs, outputs, types, attributes)
        if not schema.deprecated and (not rows or rows[-1][1] != columns):
            rows.append((schema.since_version, columns))
    return rows


def main():
    import onnx
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    listed = set(re.findall(r"^\| (\w+) \|", LISTED.read_text(), re.M))
    microsoft = [s for s in get_all_operator_schema()
                 if s.domain == "com.microsoft" and s.name in listed]
    operators = {}
    for schema in [*onnx.defs.get_all_schemas_with_history(), *microsoft]:
        domain = "" if schema.domain in ("", "ai.onnx") else schema.domain + ":"
        operators.setdefault(domain + schema.name, []).append(schema)
    print(f"// Made by scripts/onnx_op_definitions.py of onnx {onnx.__version__} and onnxruntime "
          f"{onnxruntime.__version__}; do not edit.")
    for name in sorted(operators):
        for since, columns in rows_of(operators[name]):
            cells = ", ".join(f'"{c}"' for c in (name, since, *columns))
            print(f"{{{cells}}},")
    return 0


if __name__ == "__main__":
    sys.exit(main())
