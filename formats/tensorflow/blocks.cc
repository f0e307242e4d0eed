#include "formats/tensorflow/blocks.h"

#include <algorithm>
#include <utility>

namespace heddle::tensorflow {

int TruthOf(NodeLowering& n, int condition) {
  if (n.rank(condition) > 0) {  // whether it has elements
    const int size = n.Make("size", {{"Input", {condition}}});
    return n.Binary("greater_than", n.Cast(size, DType::kI64), n.IntConstant(0));
  }
  return n.Cast(condition, DType::kBool);
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
  n.facts(made).shape = AgreedShape(n, values);
  n.Emit("select_input", {{"X", values}, {"Mask", {number}}}, {}, {{"Out", {made}}});
  return made;
}

int CarryIn(NodeLowering& n, int v) {
  if (IsHandle(n.kind(v))) return v;
  const int made = CopyOf(n, v);
  n.facts(made).first = v;
  if (n.kind(v) == Kind::kList) n.facts(made).as_long = made;
  if (n.kind(v) == Kind::kTensor) {
    Shape& shape = n.facts(made).shape;
    for (int i = 0; i < shape.rank(); ++i) shape[i] = -1;
  }
  return made;
}

void CarryOn(NodeLowering& n, const std::vector<int>& carried, std::vector<int> next) {
  // The body was made for the first rank.
  for (size_t i = 0; i < carried.size(); ++i)
    if (n.kind(carried[i]) == Kind::kTensor && n.rank(carried[i]) >= 0 && n.rank(next[i]) >= 0 &&
        n.rank(carried[i]) != n.rank(next[i]))
      n.Problem("carries a value of rank ", n.rank(carried[i]), " on as one of rank ",
                n.rank(next[i]), "; in heddle's loops values keep their rank");
  // A list that every round hands on with as many items has as many as before the first.
  for (size_t i = 0; i < carried.size(); ++i) {
    VarFacts& list = n.facts(carried[i]);
    // An outer loop's list, or an earlier one's, stays as it is.
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
