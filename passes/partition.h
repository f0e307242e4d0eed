// Assigns operators to devices, before a plan is made.
//
// If there are passes in POST_PARTITIONING, every operator of block 0 gets a place before them: the
// one that it names, else the first device, if that has a kernel for it, else the host. The plan
// follows it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/bound_op.h"
#include "core/programs/ir.h"

namespace heddle::passes {

// A device as passes see it.
struct DeviceView {
  std::string place;  // "emulated:0"
  size_t memory_bytes = 0;
  // Whether the device has a kernel for a call, whose shapes may be unknown.
  std::function<bool(const BoundOp& op, Value* const* frame)> has_kernel;
};

// A call of an operator with dtypes and shapes as the program declares them.
class DeclaredCall {
 public:
  DeclaredCall(const ir::Program& program, const ir::Op& op);
  const BoundOp& op() const { return op_; }
  Value* const* frame() const { return frame_.data(); }
  bool is_static() const { return static_; }

 private:
  BoundOp op_;
  std::vector<Value> values_;
  std::vector<Value*> frame_;
  bool static_ = true;
};

// The operator's place: "cpu", that of a device, or empty if the operator names none.
std::string PlaceOf(const ir::Op& op, const std::vector<DeviceView>& devices);
// The text for ir::Op::device, in the program's spelling, of "cpu" or a place of `devices`.
std::string DeviceText(const ir::Program& program, const std::string& place,
                       const std::vector<DeviceView>& devices);
// Assigns places to the operators that name none. A program that copies between places itself is
// left to the plan, which follows its copies.
void Partition(const std::vector<DeviceView>& devices, ir::Program* program);
// The operator's time on one thread of the host, in ns; 0: unknown.
double CostNs(const ir::Program& program, const ir::Op& op);

}  // namespace heddle::passes
