#include <new>

#include "core/kernel_context.h"
#include "core/memory/bytes.h"
#include "core/memory/lazy_buffer.h"
#include "core/operands/any_address.h"
#include "core/shape_context.h"

namespace heddle {
namespace {
const LoD kNoLoD;
const Shape kUnknownShape = Shape::Unknown();
}  // namespace

void OpContext::NoSuch(const char* what, Key key) const {
  throw std::logic_error(
      StrCat("operator ", op_.def->name(), " declares no ", what, " '", key.name, "'"));
}

void OpContext::Missing(const char* what, Key key, int i) const {
  throw std::invalid_argument(StrCat(what, " '", key.name, "' [", i, "] is missing"));
}

namespace {
// Whether the value is not empty. At plan time a dtype and a shape stand for future contents.
bool Holds(const Value* v) {
  if (v == nullptr) return false;
  return !v->is_tensor() || v->tensor().initialized() || v->tensor().dtype() != DType::kUnknown ||
         !v->tensor().shape().known_rank();
}
}  // namespace

bool ShapeContext::HasIn(Key key, int i) const { return Holds(InVar(key, i)); }
bool PrepareContext::HasIn(Key key, int i) const { return Holds(InVar(key, i)); }

const Tensor& PrepareContext::Present(Key input, int i) const {
  const Value* v = InVar(input, i);
  if (v == nullptr || !v->is_tensor()) Missing("input", input, i);
  return v->tensor();
}

const Shape& PrepareContext::OutShape(Key key, int i) const {
  const Value* v = OutVar(key, i);
  if (v == nullptr) Missing("output", key, i);
  return v->tensor().shape();
}

const Shape& ShapeContext::InShape(Key key, int i) const {
  const Value* v = InVar(key, i);
  if (v == nullptr) Missing("input", key, i);
  return v->is_tensor() ? v->tensor().shape() : kUnknownShape;
}

DType ShapeContext::InDType(Key key, int i) const {
  const Value* v = InVar(key, i);
  if (v == nullptr) Missing("input", key, i);
  return v->is_tensor() ? v->tensor().dtype() : DType::kUnknown;
}

const LoD& ShapeContext::InLoD(Key key, int i) const {
  const Value* v = InVar(key, i);
  return v != nullptr && v->is_tensor() ? v->tensor().lod() : kNoLoD;
}

const Tensor* ShapeContext::InValue(Key key, int i) const {
  const Value* v = InVar(key, i);
  const bool known =
      v != nullptr && v->is_tensor() && v->tensor().initialized() && MakeResident(v->tensor()).ok();
  return known ? &v->tensor() : nullptr;
}

ShapeContext::OutMeta& ShapeContext::Meta(size_t at) {
  if (outs_.size() < op_.out.size()) outs_.resize(op_.out.size());
  return outs_[at];
}

void ShapeContext::SetOutAt(size_t at, const Shape& shape, DType dtype) {
  OutMeta& m = Meta(at);
  m.set = true;
  m.shape = shape;
  m.dtype = dtype;
}

void ShapeContext::SetOutLoDAt(size_t at, LoD lod) {
  OutMeta& m = Meta(at);
  m.has_lod = !lod.empty();
  m.lod = std::move(lod);
}

void ShapeContext::SetOut(Key key, const Shape& shape, DType dtype, int i) {
  const int s = OutSlot(key);
  const uint32_t at = op_.out_begin[s] + static_cast<uint32_t>(i);
  if (at < op_.out_begin[s + 1]) SetOutAt(at, shape, dtype);
}

void ShapeContext::SetOutLoD(Key key, LoD lod, int i) {
  const int s = OutSlot(key);
  const uint32_t at = op_.out_begin[s] + static_cast<uint32_t>(i);
  if (at < op_.out_begin[s + 1]) SetOutLoDAt(at, std::move(lod));
}

void ShapeContext::ShareLoD(Key in, Key out) {
  if (const LoD& lod = InLoD(in); !lod.empty()) SetOutLoD(out, lod);
}

void PrepareContext::MarkPacked(Key input, KernelState* state) const {
  uint32_t& packed = state->facts().packed_inputs;
  if (const int slot = def().FindInput(input.name); slot >= 0 && slot < 32)
    packed |= uint32_t{1} << slot;
}

const Tensor* PrepareContext::ConstIn(Key key, int i) const {
  const int s = InSlot(key);
  const uint32_t at = op_.in_begin[s] + static_cast<uint32_t>(i);
  if (constant_ == nullptr || at >= op_.in_begin[s + 1]) return nullptr;
  const uint32_t slot = op_.in[at];
  if (slot == kNoSlot || !(*constant_)[slot]) return nullptr;
  const Tensor& t = frame_[slot]->tensor();
  if (!t.initialized()) return nullptr;
  // Only kernels that pack floats, and those that take an operand wherever it lies, can handle
  // absent contents; all others get them in memory.
  const bool anywhere = (def().inputs()[static_cast<size_t>(s)].flags & kAnyAddress) != 0;
  return t.dtype() == DType::kF32 || anywhere || MakeResident(t).ok() ? &t : nullptr;
}

Tensor& KernelContext::Alloc(Key key, DType dtype, const Shape& shape, int i) const {
  Value* v = OutVar(key, i);
  if (v == nullptr) Missing("output", key, i);
  v->MutableTensor() = Scratch(dtype, shape);
  return v->tensor();
}

Tensor KernelContext::Scratch(DType dtype, const Shape& shape) const {
  return Tensor(dtype, shape, services_.allocator->Allocate(BytesFor(dtype, shape)));
}

Tensor KernelContext::CallScratch(DType dtype, const Shape& shape) const {
  constexpr size_t kUnit = 64;
  const size_t units = (BytesFor(dtype, shape) + kUnit - 1) / kUnit;
  if (services_.arena == nullptr || units > op_.spare.size) return Scratch(dtype, shape);
  uint32_t used = spare_used_.load(std::memory_order_relaxed);
  do {
    if (units > op_.spare.size - used) return Scratch(dtype, shape);
  } while (!spare_used_.compare_exchange_weak(used, used + static_cast<uint32_t>(units),
                                              std::memory_order_relaxed));
  return Tensor(dtype, shape, *services_.arena, (size_t{op_.spare.begin} + used) * kUnit);
}

}  // namespace heddle
