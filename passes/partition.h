// Which operators a device is given, before a plan is made.
//
// Between POST_REWRITE_FOR_EXEC and POST_PARTITIONING every operator of block 0 gets a place, if
// passes of the latter are to see it: the one it names, else the first device, if that has a kernel
// for it, else the host. The plan follows it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/op_context.h"
#include "core/programs/ir.h"

namespace heddle::passes {

// A device as passes see it.
struct DeviceView {
  std::string place;  // "emulated:0"
  size_t memory_bytes = 0;
  // For a call whose shapes may be unknown.
  std::function<bool(const BoundOp& op, Value* const* frame)> has_kernel;
};

// An operator with dtypes and shapes as its program declares them.
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

// The operator's place: "cpu", a device's, or empty where it names none.
std::string PlaceOf(const ir::Op& op, const std::vector<DeviceView>& devices);
// The text of ir::Op::device for a place of `devices` or "cpu", as the program spells devices.
std::string DeviceText(const ir::Program& program, const std::string& place,
                       const std::vector<DeviceView>& devices);
// Gives places to the operators that name none. A program with copies between places of its own is
// left to the plan, which follows them.
void Partition(const std::vector<DeviceView>& devices, ir::Program* program);
// The time of the operator on one thread of the host, in ns; 0: not known.
double CostNs(const ir::Program& program, const ir::Op& op);

}  // namespace heddle::passes
