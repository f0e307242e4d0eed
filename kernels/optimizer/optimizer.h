// Parts that optimizers share: gradients that are dense or selected rows, operand checks, scalars.
//
// Everything that can be wrong is found before the first parameter is written.
#pragma once

#include <cmath>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/base/ceil_div.h"
#include "kernels/base/shape_checks.h"

namespace heddle {

// Each `out` has the shape and dtype of its `in`; every `in` has as many elements as Param, and so
// has a dense Grad.
Status InferUpdate(ShapeContext& ctx, std::initializer_list<KeyPair> full,
                   std::initializer_list<KeyPair> scalars = {});

// First element of a float tensor.
Result<double> ScalarOf(const KernelContext& ctx, Key key);
// The scalar operand when it is there, else the attribute.
double ScalarOr(const KernelContext& ctx, Key operand, Key attr);
// A bool operand that is there and true.
bool Flag(const KernelContext& ctx, Key key);

// Of an operator that takes the rows of a sparse gradient as a tensor: with GradRows, Grad holds
// those rows of the gradient, one after another, instead of the whole or of selected rows.
// Operators on a device have sparse gradients in this form (pass gradient_rows).
bool HasGradRows(const OpContext& ctx);
// Grad in that form as selected rows. Precondition: HasGradRows.
Result<SelectedRows> GivenRows(const KernelContext& ctx, const Tensor& param);

// Selected rows with repeated rows added up, in ascending order.
struct MergedRows {
  std::vector<int64_t> rows;
  std::vector<std::vector<int64_t>> sources;  // positions in the original that make up rows[i]
};
// Checks every row against the height.
Result<MergedRows> MergeRows(const SelectedRows& in);

// Elements that are worth another thread: a few operations each, some ten microseconds together.
inline constexpr int64_t kUpdateGrain = 1 << 16;

// One gradient as an optimizer reads it.
template <typename T>
class Gradient {
 public:
  // `lazy`: rows that are absent are left out instead of being zero.
  // With an attribute each_row that is true, rows are lazy and stay apart where they repeat.
  static Result<Gradient> Of(KernelContext& ctx, const Value* grad, const Tensor& param, bool lazy);

  // The rows that have no gradient stay as they are: an output of its own begins as its operand.
  bool keeps_rest() const { return !dense_ && lazy_; }

  // fn(offset, n, g): elements [offset, offset + n) of the parameter have gradients g[0, n).
  template <typename Fn>
  void ForEach(KernelContext& ctx, Fn fn) const {
    if (dense_) {
      ctx.ParallelFor(numel_, kUpdateGrain,
                      [&](int64_t b, int64_t e) { fn(b, e - b, dense_ + b); });
      return;
    }
    if (lazy_) {
      for (const int64_t i : Watched(std::ssize(rows_)))
        fn(rows_[static_cast<size_t>(i)] * width_, width_, merged_.data<T>() + i * width_);
      return;
    }
    size_t next = 0;
    for (const int64_t r : Watched(width_ == 0 ? 0 : CeilDiv(numel_, width_))) {
      const bool here = next < rows_.size() && rows_[next] == r;
      const T* g = here ? merged_.data<T>() + static_cast<int64_t>(next++) * width_ : zeros_.data();
      fn(r * width_, width_, g);
    }
  }
  bool dense() const { return dense_ != nullptr; }
  // Keeps rows to come apart from memory that the update writes.
  void KeepFrom(const void* written) {
    if (!dense_ && merged_.numel() > 0 && merged_.raw() == written) merged_ = merged_.Clone();
  }
  // `g`, as given to ForEach's function, stands for a row that is not among the selected ones.
  bool Absent(const T* g) const { return g == zeros_.data() && !dense_; }

 private:
  const T* dense_ = nullptr;
  int64_t numel_ = 0, width_ = 0;
  bool lazy_ = false;
  std::vector<int64_t> rows_;
  Tensor merged_;
  std::vector<T> zeros_;
};

extern template class Gradient<float>;
extern template class Gradient<double>;
extern template class Gradient<float16>;
extern template class Gradient<bfloat16>;

// Adds up `in`'s rows into `out` [merged.rows.size(), width].
template <typename T>
void AddMerged(const SelectedRows& in, const MergedRows& merged, int64_t width, T* out) {
  using C = ComputeType<T>;
  const T* from = in.value.data<T>();
  for (size_t i = 0; i < merged.rows.size(); ++i) {
    T* to = out + static_cast<int64_t>(i) * width;
    WatchedFill(to, width, T(0));
    for (int64_t s : merged.sources[i])
      for (int64_t k = 0; k < width; ++k)
        to[k] = static_cast<T>(static_cast<C>(to[k]) + static_cast<C>(from[s * width + k]));
  }
}

// When an update touches only some rows, the others must still reach an output of its own memory.
inline void CopyWhenApart(const Tensor& in, Tensor& out) {
  if (in.raw() != out.raw() && in.numel() > 0)
    WatchedMemcpy(out.mutable_raw(), in.raw(), in.bytes());
}

// A master copy that the update does not use is handed on as it is, to an output of its own as
// well. Precondition: the outputs are of the shapes and dtypes of their inputs.
void KeepMaster(const KernelContext& ctx, int i);
void KeepMasters(KernelContext& ctx);  // all
// A master copy of another dtype than Param's is refused: it is what would have to be updated.
Status CheckMasters(const KernelContext& ctx);
// Declares what an update of one parameter has: Param, Grad and a learning rate. States and further
// scalars are the operator's to declare.
OpDef& DeclareUpdate(OpDef& op);
// The same with GradRows, and with each_row, the way in which rows count (update_rule.h).
OpDef& DeclareRowUpdate(OpDef& op);
// The same for an update that has succeeded. op.Kernels<KeepsMaster<K>::Kernel, …> for an optimizer
// that uses no master copies.
template <template <typename> class K>
struct KeepsMaster {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      HEDDLE_RETURN_IF_ERROR(K<T>::Run(ctx));
      KeepMasters(ctx);
      return Status::Ok();
    }
  };
};
// With multi_precision the master copy that the update starts from, which the parameter becomes the
// same as: one of Param's dtype that is handed on. nullptr: the update starts from Param.
const Tensor* SteppedMaster(const KernelContext& ctx, const Tensor& param);
// Hands what the parameter has become on as the master copy, or the old one (without `stepped`).
void HandMasterOn(KernelContext& ctx, const Tensor* stepped);
// Each MasterParamOut of a list has the shape and dtype of its MasterParam.
void SetMastersLike(ShapeContext& ctx);

// Param, Grad and the learning rate of an update; `lazy` keeps selected rows sparse.
template <typename T>
struct UpdateInputs {
  const Tensor& param;
  Gradient<T> grad;
  T lr;
  const T* p;
  T* p_out;

  static Result<UpdateInputs> Of(KernelContext& ctx, bool lazy) {
    const Tensor& param = ctx.In("Param");
    HEDDLE_ASSIGN_OR_RETURN(const double lr, ScalarOf(ctx, "LearningRate"));
    HEDDLE_ASSIGN_OR_RETURN(auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, lazy));
    return UpdateInputs{param, std::move(grad), static_cast<T>(lr), param.data<T>(),
                        ctx.Out("ParamOut").template mutable_data<T>()};
  }
};

// The Euclidean norm, summed in double precision.
template <typename T>
double L2Norm(const T* x, int64_t n) {
  double sum = 0;
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i)
      sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(sum);
}

}  // namespace heddle
