// A new head: other weights, and another number of outputs, of the last product.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "gradient/tuning/products.h"
#include "gradient/tuning/tuning.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::Op;
using ir::VarId;

// Operators that give each output channel on as it is, or mix channels without weights.
bool PassesChannels(const Op& op) {
  static constexpr std::string_view kTypes[] = {
      "softmax",     "log_softmax", "scale",    "cast",
      "assign",      "dropout",     "reshape2", "reshape",
      "flatten",     "flatten2",    "squeeze2", "flatten_contiguous_range",
      "unsqueeze2",  "squeeze",     "pool2d",   "transpose2",
      "reduce_mean", "reduce_max",  "clip",     "pow",
      "unsqueeze"};
  return op.def->has(kElementwise) ||
         std::find(std::begin(kTypes), std::end(kTypes), op.type()) != std::end(kTypes);
}

class HeadMaker {
 public:
  HeadMaker(const Program& program, const HeadRequest& request)
      : edit_(program), request_(request) {}

  Result<NewHead> Run() {
    if (request_.outputs < 1) return InvalidArgument("a head has at least 1 output");
    HEDDLE_ASSIGN_OR_RETURN(const VarId output, edit_.Output(request_.output, "--output"));
    HEDDLE_RETURN_IF_ERROR(FindProduct(output));
    const ir::Var weight = edit_.var(product_.weight);
    old_ = weight.shape[product_.output_axis];
    Shape shape = weight.shape;
    shape[product_.output_axis] = request_.outputs;
    const double inputs =
        static_cast<double>(shape.numel()) / static_cast<double>(request_.outputs);
    HEDDLE_RETURN_IF_ERROR(CheckAlone(product_.weight, "weights"));
    made_.parameters.emplace_back(
        weight.name,
        UniformTensor(weight.dtype, shape, 1 / std::sqrt(inputs), request_.seed, weight.name));
    edit_.var(product_.weight).shape = shape;
    std::vector<VarId> changed = {product_.weight};
    for (const VarId bias : biases_) {
      HEDDLE_RETURN_IF_ERROR(Bias(bias));
      changed.push_back(bias);
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<VarId> reshaped,
                            edit_.InferAgain(changed, [this](Op* op) { Mend(op); }));
    for (const VarId v : reshaped) {
      if (edit_.var(v).shape == Shape::Unknown()) continue;
      made_.reshaped.push_back(edit_.var(v).name);
      if (edit_.NameOf(v) != edit_.var(v).name) made_.reshaped.push_back(edit_.NameOf(v));
    }
    if (old_ == request_.outputs) made_.reshaped.clear();
    made_.said = StrCat("head: the last product before output '", edit_.NameOf(output), "' is ",
                        edit_.PlaceOf(at_), " with the weights '", weight.name, "'",
                        biases_.empty() ? "" : " and the bias '" + edit_.var(biases_[0]).name + "'",
                        "; ", old_, " outputs became ", request_.outputs);
    made_.program = std::move(edit_).Finish();
    return std::move(made_);
  }

 private:
  // Walks from the output back to the last product with weights.
  Status FindProduct(VarId v) {
    for (;;) {
      at_ = edit_.WriterOf(v);
      if (at_ < 0)
        return InvalidArgument("no product with weights leads to the output: '", edit_.var(v).name,
                               "' is no result of an operator");
      const Op& op = edit_.ops()[static_cast<size_t>(at_)];
      if (const auto found = WeightedAt(edit_, edit_.ir(), at_)) {
        if (found->convolution && found->window != 1)
          return Unimplemented(edit_.PlaceOf(at_),
                               " is the last product before the output; a head is a product of "
                               "matrices or a convolution of 1x1");
        product_ = *found;
        if (product_.bias != kNoVar) biases_.insert(biases_.begin(), product_.bias);
        return Status::Ok();
      }
      if (op.type() == "elementwise_add" || op.type() == "elementwise_mul") {
        HEDDLE_RETURN_IF_ERROR(Join(op, &v));
        continue;
      }
      if (!PassesChannels(op))
        return Unimplemented(edit_.PlaceOf(at_),
                             " lies between the last product and the output, and may tie outputs "
                             "to their number");
      v = op.inputs[0][0];
    }
  }

  // A bias, or a factor of one element.
  Status Join(const Op& op, VarId* v) {
    const VarId x = op.In("X")[0], y = op.In("Y")[0];
    VarId constant = kNoVar;
    for (const auto& [a, b] : {std::pair(x, y), std::pair(y, x)})
      if (const VarId parameter = edit_.Parameter(b); parameter != kNoVar) {
        constant = parameter;
        *v = a;
      }
    if (constant == kNoVar)
      return Unimplemented(edit_.PlaceOf(at_),
                           " joins two values before the output: no product is the last one");
    const Shape& shape = edit_.var(constant).shape;
    if (shape.is_static() && shape.numel() == 1) return Status::Ok();
    if (op.type() != "elementwise_add" || !shape.is_static())
      return Unimplemented(edit_.PlaceOf(at_), " has the operand '", edit_.var(constant).name,
                           "', which is no bias");
    biases_.push_back(constant);
    return Status::Ok();
  }

  Status CheckAlone(VarId v, std::string_view what) {
    const DType dtype = edit_.var(v).dtype;
    if (dtype != DType::kF32 && dtype != DType::kF64)
      return Unimplemented("the head's ", what, " '", edit_.var(v).name, "' are of dtype ",
                           Name(dtype), "; new ones are made in float32 and float64");
    const std::vector<int> readers = edit_.ReadersOf(v);
    if (readers.size() > 1)
      return InvalidArgument(
          "the head's ", what, " '", edit_.var(v).name, "' are also read by ",
          readers[0] == at_ || readers[0] < 0
              ? (readers[1] < 0 ? "an operator of another block" : edit_.PlaceOf(readers[1]))
              : edit_.PlaceOf(readers[0]),
          ": they cannot have another shape");
    return Status::Ok();
  }

  Status Bias(VarId bias) {
    HEDDLE_RETURN_IF_ERROR(CheckAlone(bias, "bias"));
    ir::Var& var = edit_.var(bias);
    int axis = -1;
    for (int k = 0; k < var.shape.rank(); ++k) {
      if (var.shape[k] == 1 && old_ != 1) continue;
      if (var.shape[k] != old_ || axis >= 0) {
        if (old_ == 1) continue;
        return Unimplemented("the head's bias '", var.name, "' has the shape ",
                             var.shape.ToString(), "; one dimension of ", old_, " is expected");
      }
      axis = k;
    }
    if (old_ == 1) axis = product_.convolution && var.shape.rank() > 1 ? 1 : var.shape.rank() - 1;
    if (axis < 0)
      return Unimplemented("the head's bias '", var.name, "' has no dimension of ", old_);
    var.shape[axis] = request_.outputs;
    made_.parameters.emplace_back(var.name, Tensor::Zeros(var.dtype, var.shape));
    return Status::Ok();
  }

  // A reshape that says the old number of outputs says the new one.
  void Mend(Op* op) const {
    const int a = op->def->FindAttr("shape");
    if (a < 0 || !op->type().starts_with("reshape")) return;
    auto* dims = std::get_if<Ints>(&op->attrs[static_cast<size_t>(a)]);
    if (dims == nullptr || std::count(dims->begin(), dims->end(), old_) != 1) return;
    *std::find(dims->begin(), dims->end(), old_) = request_.outputs;
  }

  Edit edit_;
  const HeadRequest& request_;
  NewHead made_;
  Weighted product_;
  std::vector<VarId> biases_;
  int at_ = -1;
  int64_t old_ = 0;
};

}  // namespace

Result<NewHead> ReplaceHead(const Program& program, const HeadRequest& request) {
  return HeadMaker(program, request).Run();
}

}  // namespace heddle::gradient
