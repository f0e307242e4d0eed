#include "training/fetch_stacks.h"

#include <cstring>
#include <filesystem>
#include <utility>

#include "tools/values/npy.h"

namespace heddle::training {
namespace {

namespace fs = std::filesystem;

Status WrongOutput(const std::string& why) { return Status(StatusCode::kInvalidArgument, why); }

std::string TypeText(DType dtype, const Shape& shape) {
  return std::string(Name(dtype)) + " " + shape.ToString();
}

}  // namespace

Status FetchStacks::Add(int64_t step, const std::vector<Value>& values) {
  for (size_t k = 0; k < stacks_.size(); ++k) {
    Stack& s = stacks_[k];
    if (!values[k].is_tensor() || !values[k].tensor().initialized())
      return WrongOutput("'" + s.name + "' is no plain tensor, so its steps cannot be stacked");
    const Tensor& t = values[k].tensor();
    if (steps_ == 0) {
      s.dtype = t.dtype();
      s.shape = t.shape();
    } else if (t.dtype() != s.dtype || t.shape() != s.shape) {
      return WrongOutput("'" + s.name + "' is " + TypeText(t.dtype(), t.shape()) + " in step " +
                         std::to_string(step) + " and was " + TypeText(s.dtype, s.shape) +
                         " before, so its steps cannot be stacked");
    }
  }
  for (size_t k = 0; k < stacks_.size(); ++k) {
    const Tensor plain = values[k].tensor().Contiguous();
    stacks_[k].bytes.append(static_cast<const char*>(plain.raw()), plain.bytes());
  }
  ++steps_;
  return Status::Ok();
}

Status FetchStacks::Restore(const NamedTensors& stacked) {
  if (stacked.size() != stacks_.size())
    return WrongOutput("the checkpoint holds the values of " + std::to_string(stacked.size()) +
                       " fetched variables, " + std::to_string(stacks_.size()) +
                       " are asked for with --out");
  for (size_t k = 0; k < stacks_.size(); ++k) {
    const auto& [name, tensor] = stacked[k];
    if (name != stacks_[k].name)
      return WrongOutput("the checkpoint holds the values of '" + name + "', not of '" +
                         stacks_[k].name + "', as fetch " + std::to_string(k));
    if (tensor.rank() == 0) return WrongOutput("the values of '" + name + "' are not stacked");
    stacks_[k].dtype = tensor.dtype();
    stacks_[k].shape = tensor.shape();
    stacks_[k].shape.erase(0);
    stacks_[k].bytes.assign(static_cast<const char*>(tensor.raw()), tensor.bytes());
    steps_ = tensor.dim(0);
  }
  return Status::Ok();
}

Result<NamedTensors> FetchStacks::Stacked() const {
  NamedTensors stacked;
  for (const Stack& s : stacks_) {
    Shape shape = s.shape;
    shape.insert(0, steps_);
    Tensor tensor = Tensor::Empty(s.dtype == DType::kUnknown ? DType::kF32 : s.dtype, shape);
    if (!tensor.initialized())
      return Status(StatusCode::kResourceExhausted, "no memory for the values of '" + s.name + "'");
    if (!s.bytes.empty()) std::memcpy(tensor.mutable_raw(), s.bytes.data(), s.bytes.size());
    stacked.emplace_back(s.name, std::move(tensor));
  }
  return stacked;
}

Status FetchStacks::Write(const std::string& directory) const {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return WrongOutput(directory + ": cannot be made: " + error.message());
  HEDDLE_ASSIGN_OR_RETURN(const NamedTensors stacked, Stacked());
  for (size_t k = 0; k < stacked.size(); ++k)
    HEDDLE_RETURN_IF_ERROR(tools::WriteNpy(
        (fs::path(directory) / ("out_" + std::to_string(k) + ".npy")).string(), stacked[k].second));
  return Status::Ok();
}

}  // namespace heddle::training
