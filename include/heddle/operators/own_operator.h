// Operators from outside: what heddle's operators lack, added by the program that uses heddle.
//
//   heddle::OwnOperator scale;
//   scale.name = "acme_scale";
//   scale.names_in_files = {"com.acme.Scale"};
//   scale.inputs = {{.name = "X", .dtypes = {heddle::DType::kF32}}};
//   scale.outputs = {{.name = "Out"}};
//   scale.attributes = {{"factor", 1.0}};
//   scale.kernel = [](heddle::OwnKernelCall& call) { … };
//   heddle::Status added = heddle::AddOperator(std::move(scale));
//
// An operator is added once for the process, before programs with it are read or built; from then
// on it is an operator like heddle's. Its kernel is the first of these that there is: that of the
// executor's creator (ExecutorOptions::kernel_creator), that of the process's (SetKernelCreator),
// and OwnOperator::kernel. Operators of heddle's keep their kernels. docs/embedding.md tells more.
//
// Ownership: what is added lives as long as the process; the code behind it must, too. Threads: all
// functions may be called from any thread. Shape functions and kernels are called from any thread,
// for several calls at the same time, so they change nothing that they share. Errors: what they
// return or throw, and outputs that are not as the shape function says, end the compilation or the
// run with an error that names the operator and its place.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/shape.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

class OpContext;
class ShapeContext;
class KernelContext;

using OwnValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                              std::vector<double>, std::vector<std::string>>;

struct OwnInput {
  std::string name = {};
  bool optional = false;           // may be absent
  bool list = false;               // any number of variables
  bool decides_shape = false;      // the shape function reads its contents
  std::vector<DType> dtypes = {};  // the possible ones; none: all
  std::string same_as = {};        // an input before this one, whose dtype it has; empty: none
};
struct OwnOutput {
  std::string name = {};
  bool optional = false;  // a program may leave it out, and then nobody reads it
  bool list = false;
};
struct OwnAttribute {
  std::string name;
  OwnValue value;  // its type is the attribute's; the value of operators that do not give it
};

// One call of an operator, as its functions see it. Valid during the call. The i-th variable of a
// slot; a slot or an attribute that the operator does not declare throws std::invalid_argument.
class OwnCall {
 public:
  explicit OwnCall(const OpContext& context) : context_(context) {}
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;

  const std::string& op() const;  // the operator's name
  int inputs(std::string_view slot) const;
  int outputs(std::string_view slot) const;
  bool has_input(std::string_view slot, int i = 0) const;
  bool has_output(std::string_view slot, int i = 0) const;
  // Of an input, which must be there. Before a run kUnknown, and dimensions of -1, where unknown.
  DType dtype(std::string_view slot, int i = 0) const;
  Shape shape(std::string_view slot, int i = 0) const;
  OwnValue value(std::string_view attribute) const;
  template <typename T>
  T attribute(std::string_view name) const {
    return std::get<T>(value(name));
  }

 private:
  const OpContext& context_;
};

class OwnShapeCall : public OwnCall {
 public:
  explicit OwnShapeCall(ShapeContext& context);
  // The contents of an input; nullptr: not known before a run.
  const Tensor* contents(std::string_view slot, int i = 0) const;
  // Must be called for each output that is there. An open dimension is -1: what is still open in a
  // run is left to the kernel (OwnKernelCall::Allocate).
  void SetOutput(std::string_view slot, DType dtype, const Shape& shape, int i = 0);

 private:
  ShapeContext& context_;
};

class OwnKernelCall : public OwnCall {
 public:
  explicit OwnKernelCall(KernelContext& context);
  // Row-major, in memory of the run: nothing may be kept of it beyond the call.
  const Tensor& input(std::string_view slot, int i = 0) const;
  // With the dtype and shape that the shape function said, to be written by the kernel.
  Tensor& output(std::string_view slot, int i = 0);
  // Makes an output whose shape the shape function left open. Throws std::bad_alloc.
  Tensor& Allocate(std::string_view slot, DType dtype, const Shape& shape, int i = 0);
  int threads() const;
  // Calls fn(begin, end) for parts of [0, n) of at least `grain` on the executor's threads.
  void ParallelFor(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& fn) const;
  // An error if the run is to end: kernels that may take long ask from time to time and return it.
  Status Interrupted() const;

 private:
  friend class OwnOpDef;
  struct Output {
    size_t at;  // among the operator's outputs
    Tensor tensor;
    bool allocated;
  };
  size_t OutputAt(std::string_view slot, int i) const;

  KernelContext& context_;
  std::deque<Output> outputs_;  // that the kernel asked for
  std::vector<bool> open_;      // per output: it is to be allocated
};

using OwnKernel = std::function<Status(OwnKernelCall&)>;

struct OwnOperator {
  std::string name = {};  // not one of heddle's, and not added before
  std::string doc = {};
  // What files call it, besides `name`: for ONNX with the domain, as in "com.acme.Scale"; for PIR
  // with the dialect, as in "custom_op.scale", or without it. heddle's own operators, and functions
  // that a file defines, come first.
  std::vector<std::string> names_in_files = {};
  // Files without names of slots (ONNX, TensorFlow, PIR) list operands in this order.
  std::vector<OwnInput> inputs = {};
  std::vector<OwnOutput> outputs = {};
  std::vector<OwnAttribute> attributes = {};
  // Says what the outputs are, before runs and, where that left something open, in them. nullptr:
  // `like_first_input`, or the kernel allocates all outputs.
  std::function<Status(OwnShapeCall&)> shapes = nullptr;
  bool like_first_input = true;  // without `shapes`: all outputs have its dtype and shape
  OwnKernel kernel = nullptr;    // nullptr: creators make it
  // It does more than write its outputs, or not the same in each call: it runs in the program's
  // order and is never computed ahead, joined with an equal one or left out.
  bool side_effect = false;
};

// kInvalidArgument: it contradicts itself, or there is an operator of this name.
Status AddOperator(OwnOperator op);

// An operator of a program that is compiled.
struct OwnNode {
  std::string op = {};
  std::vector<std::pair<std::string, OwnValue>> attributes = {};
  int block = 0, index = -1;  // in the file
};
// Makes the kernel of an added operator for one node; an empty function: it has none for it. Called
// whenever a program is compiled, maybe several times for a node.
using KernelCreator = std::function<Result<OwnKernel>(const OwnNode&)>;
// The process's creator, for executors that are compiled with from now on; nullptr: none.
void SetKernelCreator(KernelCreator creator);

}  // namespace heddle
