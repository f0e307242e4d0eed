// OwnOpDef: the definition of an operator from outside (heddle/operators/own_operator.h).
//
// Its functions are those of every definition; they find the operator's own by the definition that
// a call refers to. They return what these throw as errors, and check what they leave.
//
// Ownership: definitions that are added live as long as the process; programs keep those that were
// bound to a kernel for them. Threads: any.
#pragma once

#include <atomic>
#include <memory>

#include "core/op_def.h"
#include "heddle/operators/own_operator.h"

namespace heddle {

class OwnOpDef : public OpDef {
 public:
  explicit OwnOpDef(std::shared_ptr<const OwnOperator> op);
  // The same with this kernel.
  OwnOpDef(const OwnOpDef& from, OwnKernel kernel);

  // nullptr: it is none.
  static const OwnOpDef* From(const OpDef& def);
  const OwnOperator& own() const { return *own_; }
  const OwnKernel& own_kernel() const { return own_kernel_; }

 private:
  static Status Infer(ShapeContext& ctx);
  static Status Compute(KernelContext& ctx);
  Status LikeFirst(ShapeContext& ctx) const;
  Status CallShapes(ShapeContext& ctx) const;
  Status CallKernel(KernelContext& ctx) const;
  // Says what outputs the kernel must make, and what of them is known.
  Status FindOpen(KernelContext& ctx, OwnKernelCall* call, ShapeContext* said) const;
  Status CheckOutputs(const KernelContext& ctx, const OwnKernelCall& call,
                      ShapeContext& said) const;

  const std::shared_ptr<const OwnOperator> own_;
  const OwnKernel own_kernel_;
  std::shared_ptr<const contracts::Contract> dtypes_;  // of the inputs
  // A shape function has left a dimension open, so it may do so in a run.
  mutable std::atomic<bool> leaves_open_{false};
};

}  // namespace heddle
