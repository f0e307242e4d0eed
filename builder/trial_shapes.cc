#include "builder/trial_shapes.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/guard.h"
#include "core/kernel_selector.h"
#include "core/shape_context.h"

namespace heddle::builder {
namespace {

constexpr int64_t kSizes[2] = {960, 1920};
constexpr int64_t kLargestValue = 1024;  // elements of a tensor that may determine shapes

// One call of an operator, with concrete shapes of its operands.
class Trial {
 public:
  // `shape_of` gives the shape of an operand.
  template <typename ShapeOf>
  Trial(const ir::Op& op, const std::vector<const Known*>& inputs, ShapeOf&& shape_of) {
    bound_.def = op.def;
    bound_.attrs = op.attrs.data();
    bound_.in_begin.push_back(0);
    size_t at = 0;
    for (size_t s = 0; s < op.def->inputs().size(); ++s) {
      const bool decides = (op.def->inputs()[s].flags & kShapeValue) != 0;
      for (size_t i = 0; i < op.inputs[s].size(); ++i, ++at)
        bound_.in.push_back(inputs[at] == nullptr ? kNoSlot : Bind(*inputs[at], decides, shape_of));
      bound_.in_begin.push_back(static_cast<uint32_t>(bound_.in.size()));
    }
    bound_.out_begin.push_back(0);
    for (const auto& slot : op.outputs) {
      for (ir::VarId v : slot) bound_.out.push_back(v == ir::kNoVar ? kNoSlot : Add(Value()));
      bound_.out_begin.push_back(static_cast<uint32_t>(bound_.out.size()));
    }
  }

  Status CheckKinds() const {
    HEDDLE_RETURN_IF_ERROR(CheckOperands(bound_, frame_.data()));
    if (bound_.def->has(kControlFlow) || KernelKey(bound_, frame_.data()) == DType::kUnknown)
      return Status::Ok();
    KernelFn fn = nullptr;
    return SelectKernel(bound_, frame_.data(), &fn);
  }

  // Calls the operator's shape function. The answer is empty if the shape depends on values.
  Result<std::vector<ShapeContext::OutMeta>> Ask() {
    ShapeContext ctx(bound_, frame_.data());
    HEDDLE_RETURN_IF_ERROR(Guard([&] { return bound_.def->infer_shape()(ctx); }));
    if (ctx.deferred()) return std::vector<ShapeContext::OutMeta>();
    return std::move(ctx.outs());
  }

 private:
  template <typename ShapeOf>
  uint32_t Bind(const Known& known, bool decides, ShapeOf&& shape_of) {
    if (decides && known.value != nullptr && known.value->numel() <= kLargestValue)
      return Add(Value(*known.value));
    Tensor t;
    t.SetMeta(known.dtype, known.ranked ? shape_of(known) : Shape::Unknown());
    if (known.kind == ir::VarKind::kArray) return Add(Value(TensorArray{std::move(t)}));
    if (known.kind == ir::VarKind::kRows) return Add(Value(SelectedRows{{}, 0, std::move(t)}));
    return Add(Value(std::move(t)));
  }
  uint32_t Add(Value value) {
    frame_.push_back(&values_.emplace_back(std::move(value)));
    return static_cast<uint32_t>(frame_.size() - 1);
  }

  BoundOp bound_;
  std::deque<Value> values_;
  std::vector<Value*> frame_;
};

using Metas = std::vector<ShapeContext::OutMeta>;

// Tries sizes for the open dimensions until the operator accepts its operands, and returns its
// answer for that size; nullopt: it accepts none.
std::optional<Metas> AskAtSomeSize(const ir::Op& op, const std::vector<const Known*>& inputs) {
  std::set<int64_t> sizes = {1};
  for (const Known* in : inputs)
    if (in != nullptr && in->ranked)
      for (int64_t d : in->shape()) sizes.insert(std::max<int64_t>(d, 1));
  for (int64_t size : sizes) {
    auto said = Trial(op, inputs, [size](const Known& known) {
                  Shape shape = known.shape();
                  for (int i = 0; i < shape.rank(); ++i)
                    if (shape[i] < 0) shape[i] = size;
                  return shape;
                }).Ask();
    if (said.ok()) return *std::move(said);
  }
  return std::nullopt;
}

// The shape function's error for the shapes as the caller wrote them, with -1; if it accepts those,
// the error for the trial size.
Status Refusal(const ir::Op& op, const std::vector<const Known*>& inputs, const Status& at_size) {
  const auto said = Trial(op, inputs, [](const Known& known) { return known.shape(); }).Ask();
  if (!said.ok()) return said.status();
  return Status(at_size.code(), at_size.message() + " (open dimensions taken as " +
                                    std::to_string(kSizes[0]) + ")");
}

Known FromMetas(const std::array<Metas, 2>& metas, size_t at) {
  Known known;
  if (at >= metas[0].size() || at >= metas[1].size()) return known;
  const auto &a = metas[0][at], &b = metas[1][at];
  if (!a.set || !b.set || a.dtype != b.dtype) return known;
  known.dtype = a.dtype;
  known.ranked = a.shape.is_static() && b.shape.is_static() && a.shape.rank() == b.shape.rank();
  known.at = {a.shape, b.shape};
  return known;
}

}  // namespace

Shape Known::shape() const {
  if (!ranked) return Shape::Unknown();
  Shape shape = at[0];
  for (int i = 0; i < shape.rank(); ++i)
    if (at[1][i] != shape[i]) shape[i] = -1;
  return shape;
}

Known KnownOf(DType dtype, const Shape& shape) {
  Known known;
  known.dtype = dtype;
  known.ranked = shape.known_rank();
  if (!known.ranked) return known;
  known.at = {shape, shape};
  for (int t = 0; t < 2; ++t)
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] < 0) known.at[static_cast<size_t>(t)][i] = kSizes[t];
  return known;
}

Known Join(const Known& a, const Known& b) {
  Known both = a;
  both.value = nullptr;
  both.sequences = a.sequences || b.sequences;
  // A variable keeps its dtype even if a shape function does not give it.
  if (a.dtype == DType::kUnknown) both.dtype = b.dtype;
  both.ranked = a.ranked && b.ranked && a.at[0].rank() == b.at[0].rank();
  if (!both.ranked) return both;
  for (int i = 0; i < a.at[0].rank(); ++i) {
    if (a.at[0][i] == b.at[0][i] && a.at[1][i] == b.at[1][i]) continue;
    for (size_t t = 0; t < 2; ++t) both.at[t][i] = kSizes[t];
  }
  return both;
}

Result<std::vector<Known>> Infer(const ir::Op& op, const std::vector<const Known*>& inputs) {
  size_t outputs = 0;
  for (const auto& slot : op.outputs) outputs += slot.size();
  std::vector<Known> known(outputs);
  const auto at_size = [](size_t t) { return [t](const Known& k) { return k.at[t]; }; };
  std::array<Trial, 2> trials = {Trial(op, inputs, at_size(0)), Trial(op, inputs, at_size(1))};
  bool askable = op.def->infer_shape() != nullptr && op.var_attrs.empty();
  bool sequences = false, open = false, typed = true;
  for (const Known* in : inputs) {
    if (in == nullptr) continue;
    sequences = sequences || in->sequences;
    open = open || in->open();
    typed = typed && in->dtype != DType::kUnknown;
    askable = askable && (in->ranked || in->kind != ir::VarKind::kTensor);
  }
  if (typed) HEDDLE_RETURN_IF_ERROR(trials[0].CheckKinds());
  for (Known& k : known) k.sequences = sequences;
  if (!askable || sequences) return known;
  std::array<Metas, 2> metas;
  std::optional<Metas> some;  // at one size only
  Status refused;
  for (size_t t = 0; t < 2; ++t) {
    auto said = trials[t].Ask();
    if (said.ok())
      some = metas[t] = *std::move(said);
    else
      refused = said.status();
  }
  if (!refused.ok() && !open) return refused;
  if (!refused.ok() && !some) some = AskAtSomeSize(op, inputs);
  if (!some) return Refusal(op, inputs, refused);
  if (!refused.ok()) metas = {*some, *some};
  for (size_t i = 0; i < outputs; ++i) {
    known[i] = FromMetas(metas, i);
    known[i].ranked = known[i].ranked && refused.ok();
  }
  return known;
}

}  // namespace heddle::builder
