#include "formats/tensorflow/blocks.h"

#include <algorithm>
#include <utility>

namespace heddle::tensorflow {

bool Covers(const Shape& shape, const Shape& other) {
  if (!shape.known_rank()) return true;
  if (shape.rank() != other.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] >= 0 && shape[i] != other[i]) return false;
  return true;
}

Shape Joined(const Shape& shape, const Shape& other) {
  if (shape.rank() != other.rank()) return Shape::Unknown();
  Shape joined = shape;
  for (int i = 0; i < joined.rank(); ++i)
    if (joined[i] != other[i]) joined[i] = -1;
  return joined;
}

int TruthOf(NodeLowering& n, int condition) {
  const int rank = n.rank(condition);
  if (rank == 0) return n.Cast(condition, DType::kBool);
  const auto has_elements = [&](int v) {
    const int size = n.Make("size", {{"Input", {v}}});
    return n.Reshape(n.Binary("greater_than", n.Cast(size, DType::kI64), n.IntConstant(0)), {});
  };
  const int filled = has_elements(condition);
  if (rank > 0) return filled;  // true if it has elements
  // A scalar is true by its value. Whether the condition is a scalar is only known at run time.
  const int ranked = has_elements(n.Make("shape", {{"Input", {condition}}}));
  const int value = n.Make("reduce_any", {{"X", {n.Cast(condition, DType::kBool)}}},
                           {{"reduce_all", true}, {"dim", Ints{}}, {"keep_dim", false}});
  return n.Binary("logical_and", filled, n.Binary("logical_or", n.Reshape(value, {}), ranked));
}

int Deliver(NodeLowering& n, int v, int block) {
  if (IsHandle(n.kind(v))) return v;
  const int outer = n.block();
  DraftVar& var = n.draft_var(v);
  if (var.block == block && !var.persistable && n.facts(v).data == nullptr) {
    var.block = outer;
    return v;
  }
  const int made = LikeVar(n, v, outer);
  n.SwitchBlock(block);
  Assign(n, v, made);
  n.SwitchBlock(outer);
  return made;
}

int Chosen(NodeLowering& n, const std::vector<int>& values, int number) {
  if (IsHandle(n.kind(values[0]))) return values[0];
  const int made = LikeVar(n, values[0], n.block());
  VarFacts& facts = n.facts(made);
  facts.shape = AgreedShape(n, values);
  for (int v : values) {
    // A list may have items, or any shape of items, if one of the sides may.
    facts.has_items |= n.facts(v).has_items;
    facts.says_shape &= n.facts(v).says_shape;
  }
  n.Emit("select_input", {{"X", values}, {"Mask", {number}}}, {}, {{"Out", {made}}});
  return made;
}

int CarryIn(NodeLowering& n, int v, const Node& node, size_t number) {
  if (IsHandle(n.kind(v))) return v;
  const int made = CopyOf(n, v);
  VarFacts& facts = n.facts(made);
  facts.first = v;
  facts.has_items = true;  // an iteration may find items that an earlier one wrote
  if (n.kind(v) == Kind::kList) facts.as_long = made;
  if (n.lowering().revisions().IsOpen(node, number)) facts.shape = Shape::Unknown();
  if (n.kind(v) == Kind::kTensor)
    for (int i = 0; i < facts.shape.rank(); ++i) facts.shape[i] = -1;
  return made;
}

void CarryOn(NodeLowering& n, const std::vector<Carried>& values, std::vector<int> next) {
  std::vector<int> carried;
  for (const Carried& each : values) carried.push_back(each.var);
  // The body was lowered for the initial values: a tensor's rank, the shape of a list's items. If
  // the next values differ, the graph is read again.
  for (size_t i = 0; i < carried.size(); ++i) {
    if (next[i] == carried[i] || IsHandle(n.kind(carried[i]))) continue;
    const Shape& first = n.shape(carried[i]);
    const Shape& then = n.shape(next[i]);
    const bool is_list = n.kind(carried[i]) == Kind::kList;
    if (!first.known_rank() || (!then.known_rank() && values[i].keeps_rank)) continue;
    if (is_list ? !Covers(first, then) : first.rank() != then.rank())
      n.lowering().revisions().Open(*values[i].node, values[i].number);
  }
  // A list whose length no iteration changes keeps the length that it had before the loop.
  for (size_t i = 0; i < carried.size(); ++i) {
    VarFacts& list = n.facts(carried[i]);
    // Lists of an outer loop or of an earlier one are not affected.
    if (list.kind != Kind::kList || list.first == kNoDraft || !n.IsOutside(carried[i])) continue;
    const VarFacts& first = n.facts(std::exchange(list.first, kNoDraft));
    const bool same = n.facts(next[i]).as_long == carried[i];
    list.length = same ? first.length : kNoDraft;
    list.as_long = same ? first.as_long : kNoDraft;
  }
  for (size_t i = 0; i < carried.size(); ++i)
    if (IsHandle(n.kind(carried[i]))) next[i] = carried[i];
  formats::CarryOn(n, carried, std::move(next));
}

}  // namespace heddle::tensorflow
