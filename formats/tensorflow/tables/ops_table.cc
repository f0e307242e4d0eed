// Operators on hash tables. Their initial contents are loaded with the parameters.
#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {
namespace {

bool LowerTable(NodeLowering& n) {
  const int table = n.lowering().TableNamed(KeptName(n.node()), n.op().starts_with("Mutable"));
  n.Result(0, n.Handle(Kind::kResource, table));
  return true;
}

bool LowerFind(NodeLowering& n) {
  const int table = n.Variable(0), keys = n.In(1), otherwise = n.In(2);
  const int made = n.NewVar(n.dtype(otherwise));
  n.SetType(made, n.type(otherwise));
  if (n.rank(keys) >= 0 && n.rank(otherwise) >= 0 &&
      n.rank(keys) + n.rank(otherwise) <= Shape::kMaxRank) {
    Shape shape = n.shape(keys);
    for (int64_t d : n.shape(otherwise)) shape.push_back(d);
    n.SetShape(made, shape);
  }
  n.Emit("tf_table_find", {{"table", {table}}, {"keys", {keys}}, {"default_value", {otherwise}}},
         {}, {{"values", {made}}});
  n.Result(0, made);
  return true;
}

bool LowerTableSize(NodeLowering& n) {
  const int made = n.Make("tf_table_size", {{"table", {n.Variable(0)}}}, {}, "size");
  n.draft_var(made).dtype = DType::kI64;
  n.SetShape(made, Shape());
  n.Result(0, made);
  return true;
}

bool LowerInsert(NodeLowering& n) {
  const int table = n.Variable(0);
  n.Emit("tf_table_insert", {{"table", {table}}, {"keys", {n.In(1)}}, {"values", {n.In(2)}}}, {},
         {{"Out", {table}}});
  return true;
}

// Replaces all of the table's entries.
bool LowerImport(NodeLowering& n) {
  const int table = n.Variable(0);
  n.Emit("tf_table_insert", {{"keys", {n.In(1)}}, {"values", {n.In(2)}}},
         {{"replaces", n.lowering().IsMutableTable(table)}}, {{"Out", {table}}});
  return true;
}

// Nothing to do: the file is read when the model is loaded.
bool LowerFromFile(NodeLowering& n) {
  n.Variable(0);
  return true;
}

constexpr HandlerEntry kTableEntries[] = {
    {"HashTable", &LowerTable},
    {"HashTableV2", &LowerTable},
    {"MutableHashTable", &LowerTable},
    {"MutableHashTableV2", &LowerTable},
    {"MutableHashTableOfTensors", &LowerTable},
    {"MutableHashTableOfTensorsV2", &LowerTable},
    {"LookupTableFind", &LowerFind},
    {"LookupTableFindV2", &LowerFind},
    {"LookupTableSize", &LowerTableSize},
    {"LookupTableSizeV2", &LowerTableSize},
    {"LookupTableInsert", &LowerInsert},
    {"LookupTableInsertV2", &LowerInsert},
    {"LookupTableImport", &LowerImport},
    {"LookupTableImportV2", &LowerImport},
    {"InitializeTable", &LowerImport},
    {"InitializeTableV2", &LowerImport},
    {"InitializeTableFromTextFile", &LowerFromFile},
    {"InitializeTableFromTextFileV2", &LowerFromFile},
};

}  // namespace

std::span<const HandlerEntry> TableHandlers() { return kTableEntries; }

}  // namespace heddle::tensorflow
