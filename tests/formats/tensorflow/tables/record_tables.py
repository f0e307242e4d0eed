#!/usr/bin/env python3
"""Writes the SavedModels of models/ with TensorFlow and prints its answers, which
find_tables_test.cc expects. Parts that serving does not need are left out: Python's objects,
functions that save, lists of operators.

    python record_tables.py
"""

import os
import shutil
import tempfile
from pathlib import Path

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

HERE = Path(__file__).resolve().parent / "models"


class Tables(tf.Module):
    def __init__(self, vocabulary):
        lookup = tf.lookup
        self.scores = lookup.StaticHashTable(
            lookup.KeyValueTensorInitializer(tf.constant(["x", "y", "z"]),
                                             tf.constant([1.5, 2.5, 3.5])), -1.0)
        self.names = lookup.StaticHashTable(
            lookup.KeyValueTensorInitializer(tf.constant([1, 2], tf.int64),
                                             tf.constant(["one", "two"])), "?")
        words = lookup.TextFileInitializer(vocabulary, tf.string, lookup.TextFileIndex.WHOLE_LINE,
                                           tf.int64, lookup.TextFileIndex.LINE_NUMBER)
        self.buckets = lookup.StaticVocabularyTable(words, 2)
        self.words = lookup.StaticHashTable(words, -7)
        self.learnt = lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        self.learnt.insert(tf.constant(["p", "q"]), tf.constant([5, 6], tf.int64))
        self.factor = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string),
                                  tf.TensorSpec([None], tf.int64)])
    def look(self, texts, numbers):
        return {"score": self.scores.lookup(texts) * self.factor[1],
                "name": self.names.lookup(numbers),
                "is_one": self.names.lookup(numbers) == "one",
                "word": self.words.lookup(texts),
                "count": self.words.size(),
                "learnt": self.learnt.lookup(texts),
                "bucket": self.buckets.lookup(texts)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string),
                                  tf.TensorSpec([None], tf.int64)])
    def learn(self, texts, numbers):
        self.learnt.insert(texts, numbers)
        return {"count": self.learnt.size(), "learnt": self.learnt.lookup(texts)}


def prune(folder):
    path = folder / "saved_model.pb"
    model = saved_model_pb2.SavedModel()
    model.ParseFromString(path.read_bytes())
    meta = model.meta_graphs[0]
    meta.ClearField("object_graph_def")
    meta.meta_info_def.ClearField("stripped_op_list")
    needed, open_nodes = set(), [n for n in meta.graph_def.node if "traced_save" not in str(n)]
    functions = {f.signature.name: f for f in meta.graph_def.library.function}
    while open_nodes:
        node = open_nodes.pop()
        name = node.attr["f"].func.name if "f" in node.attr else ""
        if name in functions and name not in needed:
            needed.add(name)
            open_nodes += functions[name].node_def
    for name, function in functions.items():
        if name not in needed:
            meta.graph_def.library.function.remove(function)
        function.ClearField("arg_attr")
        for key in list(function.attr):
            del function.attr[key]
    nodes = list(meta.graph_def.node) + [n for f in meta.graph_def.library.function
                                         for n in f.node_def]
    for node in nodes:
        node.ClearField("experimental_debug_info")
        for key in list(node.attr):
            if key.startswith("_") or key in ("config_proto", "config", "executor_type"):
                del node.attr[key]
    path.write_bytes(model.SerializeToString())
    (folder / "fingerprint.pb").unlink()


def main():
    keras.utils.set_random_seed(3)
    shutil.rmtree(HERE, ignore_errors=True)
    texts = tf.constant(["the", "fox", "x", "zz", "q", "p"])
    numbers = tf.constant([1, 2, 9, 1, 1, 1], tf.int64)
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder) / "vocabulary.txt"
        vocabulary.write_text("the\nquick\nbrown\nfox\n")
        tables = Tables(str(vocabulary))
        tf.saved_model.save(tables, str(HERE / "tables"),
                            {"serving_default": tables.look, "learn": tables.learn})
    loaded = tf.saved_model.load(str(HERE / "tables"))
    look, learn = loaded.signatures["serving_default"], loaded.signatures["learn"]
    for key, value in sorted(look(texts=texts, numbers=numbers).items()):
        print("tables", key, value.numpy().tolist())
    more = learn(texts=tf.constant(["n", "p"]), numbers=tf.constant([50, 51], tf.int64))
    print("learn", {k: v.numpy().tolist() for k, v in more.items()})
    print("then", look(texts=texts, numbers=numbers)["learnt"].numpy().tolist())

    inputs = keras.Input((None,), dtype="string", name="texts")
    lookup = keras.layers.StringLookup(vocabulary=["a", "bb", "ccc", "dd"], mask_token="")
    keras.Model(inputs, {"number": lookup(inputs)}).export(str(HERE / "string_lookup"),
                                                           verbose=False)
    inputs = keras.Input((None,), dtype="int64", name="numbers")
    lookup = keras.layers.IntegerLookup(vocabulary=[10, 20, 30])
    keras.Model(inputs, {"number": lookup(inputs)}).export(str(HERE / "integer_lookup"),
                                                           verbose=False)
    model = tf.saved_model.load(str(HERE / "string_lookup")).signatures["serving_default"]
    print("strings", model(texts=tf.constant([["a", "dd", "zz", ""]]))["number"].numpy().tolist())
    model = tf.saved_model.load(str(HERE / "integer_lookup")).signatures["serving_default"]
    numbers = model(numbers=tf.constant([[10, 30, 7]], tf.int64))["number"]
    print("integers", numbers.numpy().tolist())
    for name in ("tables", "string_lookup", "integer_lookup"):
        prune(HERE / name)


if __name__ == "__main__":
    main()
