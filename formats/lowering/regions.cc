#include "formats/lowering/regions.h"

#include <unordered_set>
#include <utility>

namespace heddle::formats {
namespace {

void Run(OpMaker& m, bool is_branch, int condition, int block) {
  const int scopes = m.NewVar(DType::kUnknown, "scopes");
  m.draft_var(scopes).kind = ir::VarKind::kScopes;
  DraftOp& run = m.Emit(is_branch ? "conditional_block" : "while",
                        {{is_branch ? "Cond" : "Condition", {condition}}},
                        {{is_branch ? "is_scalar_condition" : "is_test", true}},
                        {{is_branch ? "Scope" : "StepScopes", {scopes}}});
  run.sub_block = block;
}

}  // namespace

int LikeVar(OpMaker& m, int v, int home) {
  const int made = m.NewVar(m.dtype(v));
  m.draft_var(made).block = home;
  m.draft_var(made).kind = m.draft_var(v).kind;
  m.graph().TakeFacts(v, made);
  return made;
}

void Assign(OpMaker& m, int from, int to) {
  m.Emit("assign", {{"X", {from}}}, {}, {{"Out", {to}}});
}

int CopyOf(OpMaker& m, int v) {
  const int made = LikeVar(m, v, m.block());
  Assign(m, v, made);
  return made;
}

void RunIf(OpMaker& m, int condition, int block) { Run(m, true, condition, block); }

void RunWhile(OpMaker& m, int condition, int block) { Run(m, false, condition, block); }

Shape AgreedShape(OpMaker& m, const std::vector<int>& values) {
  Shape shape = m.shape(values[0]);
  for (int v : values) {
    const Shape& other = m.shape(v);
    if (other.rank() != shape.rank()) shape = Shape::Unknown();
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] != other[i]) shape[i] = -1;
  }
  return shape;
}

void CarryOn(OpMaker& m, const std::vector<int>& carried, std::vector<int> next) {
  const std::unordered_set<int> kept(carried.begin(), carried.end());
  for (size_t i = 0; i < carried.size(); ++i)
    if (next[i] != carried[i] && kept.contains(next[i])) next[i] = CopyOf(m, next[i]);
  for (size_t i = 0; i < carried.size(); ++i)
    if (next[i] != carried[i]) Assign(m, next[i], carried[i]);
}

}  // namespace heddle::formats
