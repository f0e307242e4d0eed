#include "device/host_kernel.h"

#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/guard.h"
#include "core/kernel_context.h"

namespace heddle {
namespace {

bool IsOutput(const BoundOp& op, size_t position) {
  for (uint32_t s : op.out)
    if (s == position) return true;
  return false;
}

// Replaces device addresses by where the contents lie; `real`: those of outputs.
Status Enter(const ContentsOf& contents_of, const BoundOp& op, std::vector<Value>* operands,
             std::vector<std::byte*>* real) {
  real->assign(operands->size(), nullptr);
  for (size_t i = 0; i < operands->size(); ++i) {
    Value& v = (*operands)[i];
    if (!v.is_tensor() || !v.initialized()) continue;
    Tensor& t = v.tensor();
    std::byte* at = contents_of(t.raw(), t.bytes());
    if (at == nullptr)
      return Internal("operand ", i, " of ", op.def->name(), " is not in the device's memory");
    t.Bind(at);
    if (IsOutput(op, i)) (*real)[i] = at;
  }
  return Status::Ok();
}

// Kernels may leave an output at an input's memory instead of its own.
Status Leave(const BoundOp& op, const std::vector<size_t>& bytes, std::vector<Value>* operands,
             const std::vector<std::byte*>& real) {
  for (size_t i = 0; i < operands->size(); ++i) {
    if (real[i] == nullptr) continue;
    const Tensor& t = (*operands)[i].tensor();
    if (!(*operands)[i].is_tensor() || t.bytes() != bytes[i])
      return Internal(op.def->name(), " changed the shape of an output while it ran");
    if (t.raw() != real[i] && t.bytes() > 0) std::memmove(real[i], t.raw(), t.bytes());
  }
  return Status::Ok();
}

}  // namespace

Status CallHostKernel(const KernelCall& call, const ContentsOf& contents_of) {
  std::vector<Value> operands = call.operands;
  std::vector<std::byte*> real;
  HEDDLE_RETURN_IF_ERROR(Enter(contents_of, *call.op, &operands, &real));
  std::vector<Value*> frame;
  std::vector<size_t> bytes;
  for (Value& v : operands) {
    frame.push_back(&v);
    bytes.push_back(v.is_tensor() ? v.tensor().bytes() : 0);
  }
  KernelContext ctx(*call.op, frame.data(), *call.services, call.state);
  HEDDLE_RETURN_IF_ERROR(Guard([&] { return call.host_kernel(ctx); }));
  HEDDLE_RETURN_IF_ERROR(Leave(*call.op, bytes, &operands, real));
  if (call.offsets)
    for (size_t i = 0; i < operands.size(); ++i)
      if (real[i] != nullptr) call.offsets(i, operands[i].tensor().lod());
  return Status::Ok();
}

}  // namespace heddle
