// What the functions of an operator from outside see of a call.
#include <stdexcept>
#include <type_traits>

#include "core/error.h"
#include "core/kernel_context.h"
#include "core/memory/lazy_buffer.h"
#include "core/shape_context.h"
#include "heddle/operators/own_operator.h"

namespace heddle {
namespace {

int FindSlot(const std::string& op, const std::vector<SlotDef>& slots, std::string_view name,
             const char* what) {
  for (size_t s = 0; s < slots.size(); ++s)
    if (slots[s].name == name) return static_cast<int>(s);
  throw std::invalid_argument(StrCat("operator '", op, "' declares no ", what, " '", name, "'"));
}

// The value of an input; nullptr: it is absent.
const Value* InputOf(const OpContext& ctx, std::string_view slot, int i) {
  const int s = FindSlot(ctx.def().name(), ctx.def().inputs(), slot, "input");
  const BoundOp& op = ctx.op();
  if (i < 0 || static_cast<uint32_t>(i) >= op.in_begin[s + 1] - op.in_begin[s]) return nullptr;
  const uint32_t at = op.in[op.in_begin[s] + static_cast<uint32_t>(i)];
  return at == kNoSlot ? nullptr : ctx.frame()[at];
}

const Tensor& TensorOf(const OpContext& ctx, std::string_view slot, int i) {
  const Value* value = InputOf(ctx, slot, i);
  if (value == nullptr || !value->is_tensor())
    throw std::invalid_argument(StrCat("input '", slot, "' has no variable ", i));
  return value->tensor();
}

// Where an output stands among all; -1: it is absent.
int64_t OutputOf(const OpContext& ctx, std::string_view slot, int i) {
  const int s = FindSlot(ctx.def().name(), ctx.def().outputs(), slot, "output");
  const BoundOp& op = ctx.op();
  if (i < 0 || static_cast<uint32_t>(i) >= op.out_begin[s + 1] - op.out_begin[s]) return -1;
  const uint32_t at = op.out_begin[s] + static_cast<uint32_t>(i);
  return op.out[at] == kNoSlot ? -1 : static_cast<int64_t>(at);
}

void CheckShape(std::string_view slot, const Shape& shape, bool open) {
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] < (open ? -1 : 0))
      throw std::invalid_argument(
          StrCat("gives output '", slot, "' the shape ", shape.ToString(),
                 open ? ", which has a negative dimension" : ", of which a dimension is open"));
}

}  // namespace

const std::string& OwnCall::op() const { return context_.def().name(); }

int OwnCall::inputs(std::string_view slot) const {
  const int s = FindSlot(op(), context_.def().inputs(), slot, "input");
  const BoundOp& bound = context_.op();
  return static_cast<int>(bound.in_begin[s + 1] - bound.in_begin[s]);
}
int OwnCall::outputs(std::string_view slot) const {
  const int s = FindSlot(op(), context_.def().outputs(), slot, "output");
  const BoundOp& bound = context_.op();
  return static_cast<int>(bound.out_begin[s + 1] - bound.out_begin[s]);
}
bool OwnCall::has_input(std::string_view slot, int i) const {
  return InputOf(context_, slot, i) != nullptr;
}
bool OwnCall::has_output(std::string_view slot, int i) const {
  return OutputOf(context_, slot, i) >= 0;
}
DType OwnCall::dtype(std::string_view slot, int i) const {
  return TensorOf(context_, slot, i).dtype();
}
Shape OwnCall::shape(std::string_view slot, int i) const {
  return TensorOf(context_, slot, i).shape();
}

OwnValue OwnCall::value(std::string_view attribute) const {
  const int a = context_.def().FindAttr(attribute);
  if (a < 0)
    throw std::invalid_argument(
        StrCat("operator '", op(), "' declares no attribute '", attribute, "'"));
  return std::visit(
      [](const auto& v) -> OwnValue {
        if constexpr (std::is_constructible_v<OwnValue, decltype(v)>)
          return v;
        else
          return false;  // blocks, which no such operator can declare
      },
      context_.op().attrs[a]);
}

OwnShapeCall::OwnShapeCall(ShapeContext& context) : OwnCall(context), context_(context) {}

const Tensor* OwnShapeCall::contents(std::string_view slot, int i) const {
  const Tensor& t = TensorOf(context_, slot, i);
  return t.initialized() && MakeResident(t).ok() ? &t : nullptr;
}

void OwnShapeCall::SetOutput(std::string_view slot, DType dtype, const Shape& shape, int i) {
  CheckShape(slot, shape, true);
  if (const int64_t at = OutputOf(context_, slot, i); at >= 0)
    context_.SetOutAt(static_cast<size_t>(at), shape, dtype);
}

OwnKernelCall::OwnKernelCall(KernelContext& context) : OwnCall(context), context_(context) {}

const Tensor& OwnKernelCall::input(std::string_view slot, int i) const {
  return TensorOf(context_, slot, i);
}

size_t OwnKernelCall::OutputAt(std::string_view slot, int i) const {
  const int64_t at = OutputOf(context_, slot, i);
  if (at < 0) throw std::invalid_argument(StrCat("output '", slot, "' has no variable ", i));
  return static_cast<size_t>(at);
}

// A copy of the run's tensor, which shares its memory: the run's own cannot be exchanged.
Tensor& OwnKernelCall::output(std::string_view slot, int i) {
  const size_t at = OutputAt(slot, i);
  for (Output& known : outputs_)
    if (known.at == at) return known.tensor;
  if (at < open_.size() && open_[at])
    throw std::invalid_argument(
        StrCat("output '", slot, "' has no shape yet, so the kernel must allocate it"));
  outputs_.push_back({at, context_.frame()[context_.op().out[at]]->tensor(), false});
  return outputs_.back().tensor;
}

Tensor& OwnKernelCall::Allocate(std::string_view slot, DType dtype, const Shape& shape, int i) {
  const size_t at = OutputAt(slot, i);
  CheckShape(slot, shape, false);
  if (dtype >= DType::kUnknown || !shape.known_rank())
    throw std::invalid_argument(StrCat("allocates output '", slot, "' without dtype or shape"));
  if (at >= open_.size() || !open_[at])
    throw std::invalid_argument(
        StrCat("allocates output '", slot, "', whose shape the shape function has said"));
  Value& value = *context_.frame()[context_.op().out[at]];
  value.MutableTensor() = context_.Scratch(dtype, shape);
  for (Output& known : outputs_)
    if (known.at == at) return known.tensor = value.tensor();
  outputs_.push_back({at, value.tensor(), true});
  return outputs_.back().tensor;
}

int OwnKernelCall::threads() const { return context_.threads(); }
void OwnKernelCall::ParallelFor(int64_t n, int64_t grain,
                                const std::function<void(int64_t, int64_t)>& fn) const {
  context_.ParallelFor(n, grain, fn);
}
Status OwnKernelCall::Interrupted() const { return context_.Interrupted(); }

}  // namespace heddle
