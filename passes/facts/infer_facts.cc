#include "passes/facts/infer_facts.h"

#include <algorithm>
#include <utility>

#include "core/guard.h"
#include "core/shape_context.h"

namespace heddle::passes {
namespace {

// The sizes to try for open dimensions: 1 fits all broadcasts and reveals slices of a fixed size,
// 48 is divisible by most factors, and the large ones fit windows. The later ones are tried if too
// few of the first were accepted.
constexpr int64_t kSizes[] = {1, 48, 960, 2, 3, 1920};
constexpr int kEnough = 3;  // accepted sizes

Shape WithSize(Shape shape, int64_t size) {
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] < 0) shape[i] = size;
  return shape;
}

// The first known size greater than 1 of an operand's dimension that is the `from_end`th from the
// last; 0: none.
int64_t SizeBeside(const std::vector<FactInference::Operand>& operands, int from_end) {
  for (const FactInference::Operand& o : operands) {
    if (o.fact == nullptr || o.is_array || o.fact->shape.rank() < from_end) continue;
    const int64_t size = o.fact->shape[o.fact->shape.rank() - from_end];
    if (size > 1) return size;
  }
  return 0;
}

}  // namespace

void FactInference::Bind(const ir::Op& op, const std::vector<Operand>& operands) {
  bound_.def = op.def;
  bound_.attrs = op.attrs.data();
  bound_.in.resize(0);
  bound_.out.resize(0);
  // The lists of offsets begin with 0.
  bound_.in_begin.resize(1);
  bound_.out_begin.resize(1);
  bound_.in_begin[0] = bound_.out_begin[0] = 0;
  uint32_t used = 0;
  size_t at = 0;
  for (const auto& slot : op.inputs) {
    for (size_t i = 0; i < slot.size(); ++i, ++at)
      bound_.in.push_back(operands[at].fact == nullptr ? kNoSlot : used++);
    bound_.in_begin.push_back(static_cast<uint32_t>(bound_.in.size()));
  }
  for (const auto& slot : op.outputs) {
    for (const ir::VarId v : slot) bound_.out.push_back(v == ir::kNoVar ? kNoSlot : used++);
    bound_.out_begin.push_back(static_cast<uint32_t>(bound_.out.size()));
  }
  while (frame_.size() < used) frame_.push_back(&values_.emplace_back());
  for (uint32_t s = 0; s < used; ++s) *frame_[s] = Value();
}

bool FactInference::Ask(const std::vector<Operand>& operands, int64_t size, bool beside) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (bound_.in[i] == kNoSlot) continue;
    if (operands[i].is_array) {
      *frame_[bound_.in[i]] = Value(TensorArray());
      continue;
    }
    Tensor& t = frame_[bound_.in[i]]->tensor();
    if (operands[i].contents != nullptr) {
      t = *operands[i].contents;
      continue;
    }
    Shape shape = operands[i].fact->shape;
    for (int d = 0; beside && d < shape.rank(); ++d)
      if (const int64_t known = SizeBeside(operands, shape.rank() - d); shape[d] < 0 && known > 0)
        shape[d] = known;
    t.SetMeta(operands[i].fact->dtype, WithSize(std::move(shape), size));
  }
  ShapeContext ctx(bound_, frame_.data());
  if (!Guard([&] { return bound_.def->infer_shape()(ctx); }).ok() || ctx.deferred()) return false;
  answer_ = std::move(ctx.outs());
  answer_.resize(bound_.out.size());
  return true;
}

void FactInference::Take(bool first, std::vector<std::optional<Fact>>* outputs) const {
  if (first) outputs->assign(answer_.size(), std::nullopt);
  for (size_t i = 0; i < answer_.size(); ++i) {
    std::optional<Fact>& out = (*outputs)[i];
    const Fact now{answer_[i].dtype, answer_[i].shape};
    if (first && answer_[i].set)
      out = now;
    else if (!answer_[i].set)
      out.reset();
    else if (out)
      out = Join(*out, now);
  }
}

bool FactInference::Infer(const ir::Op& op, const std::vector<Operand>& operands,
                          std::vector<std::optional<Fact>>* outputs) {
  bool open = false;
  for (const Operand& o : operands)
    open = open || (o.fact != nullptr && !o.fact->shape.is_static());
  Bind(op, operands);
  int answers = 0;
  bool of_ones = false;
  told_ranks_alone_ = false;
  for (const int64_t size : kSizes) {
    if (!Ask(operands, size)) {
      if (!open) return false;
      continue;
    }
    Take(answers++ == 0, outputs);
    if (!open) return true;
    of_ones = of_ones || size == kSizes[0];
    if (answers == kEnough) break;
  }
  // Only 1 fits if open dimensions broadcast with known ones.
  if (answers == 1 && of_ones && sizes_ == kNotEmpty)
    for (const int64_t size : {kSizes[1], kSizes[2]})
      if (Ask(operands, size, true)) Take(answers++ == 0, outputs);
  // A single size does not show which dimensions depend on it.
  told_ranks_alone_ = answers == 1;
  if (told_ranks_alone_)
    for (std::optional<Fact>& out : *outputs)
      for (int d = 0; out && d < out->shape.rank(); ++d) out->shape[d] = -1;
  if (answers > 0 && sizes_ == kAlsoEmpty && Ask(operands, 0)) Take(false, outputs);
  return answers > 0;
}

}  // namespace heddle::passes
