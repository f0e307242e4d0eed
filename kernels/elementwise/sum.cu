// The sum of any number of operands of one shape.
#include <utility>
#include <vector>

#include "core/kernel_context.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/real.h"

namespace heddle::HEDDLE_GRID {
namespace {

constexpr int kMostTerms = 16;
template <typename T>
struct SumBody {
  const T* x[kMostTerms];
  int count;
  T* out;
  HEDDLE_BODY void operator()(int64_t i) const {
    T sum = x[0][i];  // rounded after each term, as on the host
    for (int k = 1; k < count; ++k) Put<T>(ValueOf(sum) + ValueOf(x[k][i]), &sum);
    out[i] = sum;
  }
};

// More terms than a body holds: the sum so far is one of them.
template <typename T>
Status SumAs(Queue& queue, const std::vector<const Tensor*>& terms, Tensor& out) {
  SumBody<T> body{};
  body.out = out.mutable_data<T>();
  for (size_t at = 0; at < terms.size();) {
    body.count = 0;
    if (at > 0) body.x[body.count++] = out.data<T>();
    while (at < terms.size() && body.count < kMostTerms)
      body.x[body.count++] = terms[at++]->data<T>();
    HEDDLE_RETURN_IF_ERROR(Each(queue, out.numel(), body));
  }
  return Status::Ok();
}

Status SumKernel(Queue& queue, KernelContext& ctx) {
  std::vector<const Tensor*> terms;
  Tensor& out = ctx.Out("Out");
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Tensor* t = ctx.InOpt("X", i);
    if (t == nullptr || t->numel() == 0) continue;
    if (t->dtype() != out.dtype() || t->numel() != out.numel())
      return InvalidArgument("X[", i, "] does not fit the sum's shape ", out.shape().ToString());
    terms.push_back(t);
  }
  // A term in the result's memory is read before it is overwritten only in the first round.
  for (size_t i = kMostTerms; i < terms.size(); ++i)
    if (terms[i]->raw() == out.raw()) std::swap(terms[0], terms[i]);
  if (terms.empty()) return queue.Zero(out.mutable_raw(), out.bytes());
  switch (out.dtype()) {
    case DType::kF32:
      return SumAs<float>(queue, terms, out);
    case DType::kF16:
      return SumAs<float16>(queue, terms, out);
    case DType::kBF16:
      return SumAs<bfloat16>(queue, terms, out);
    case DType::kI32:
      return SumAs<int32_t>(queue, terms, out);
    case DType::kI64:
      return SumAs<int64_t>(queue, terms, out);
    default:
      return Unimplemented("sum has no CUDA kernel for ", Name(out.dtype()));
  }
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(sum) { kernel = {SumKernel, nullptr, kNumbers}; }
