#include "tools/training/train_data.h"

#include <algorithm>
#include <filesystem>

#include "tools/values/element_types.h"
#include "tools/values/names.h"
#include "tools/values/sequences.h"
#include "tools/values/values.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

Status WrongData(const std::string& why) { return Status(StatusCode::kInvalidArgument, why); }

std::vector<std::string> NamesOf(const std::vector<TensorInfo>& infos) {
  std::vector<std::string> names;
  for (const TensorInfo& info : infos) names.push_back(info.name);
  return names;
}

Shape WithoutFirst(const Tensor& t) {
  Shape shape = t.shape();
  shape.erase(0);
  return shape;
}

// Row `i` where it lies.
Tensor RowOf(const Tensor& t, int64_t i) {
  const size_t bytes = t.dim(0) > 0 ? t.bytes() / static_cast<size_t>(t.dim(0)) : 0;
  return Tensor(t.dtype(), WithoutFirst(t), t.buffer(), bytes * static_cast<size_t>(i));
}

// Names that no input has are told when a step is run.
Status AddFeed(const std::string& pair, const ProgramInputs& inputs, training::Batches* data) {
  const auto [name, path] = SplitPair(pair, NamesOf(inputs.infos));
  HEDDLE_ASSIGN_OR_RETURN(const NpyArray array, ReadNpyArray(path));
  size_t k = 0;
  while (k < inputs.infos.size() && inputs.infos[k].name != name) ++k;
  const bool known = k < inputs.infos.size();
  HEDDLE_ASSIGN_OR_RETURN(Value value,
                          FeedValue(array, known ? inputs.infos[k].dtype : DType::kUnknown,
                                    known ? inputs.types[k] : "", path, "input '" + name + "'"));
  if (!value.is_tensor()) return WrongData(path + ": holds texts, not numbers");
  const Tensor& tensor = value.tensor();
  if (tensor.rank() == 0 || tensor.dim(0) == 0)
    return WrongData(path + ": the first axis stacks batches; shape " + tensor.shape().ToString() +
                     " has none");
  return data->AddStacked(name, tensor);
}

}  // namespace

Result<training::Batches> OpenTrainData(const DataOptions& options, const ProgramInputs& inputs) {
  training::Batches data(options.batches);
  for (const std::string& pair : options.feeds)
    HEDDLE_RETURN_IF_ERROR(AddFeed(pair, inputs, &data));
  for (const std::string& pair : options.lods) {
    const auto [name, text] = SplitAtLast(pair);
    HEDDLE_ASSIGN_OR_RETURN(LoD lod, ParseLod(text));
    HEDDLE_RETURN_IF_ERROR(data.AddOffsets(name, std::move(lod)));
  }
  uint64_t bytes = 0;
  for (const std::string& path : options.shards) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    if (!error) bytes += size;
  }
  const bool keep = bytes >> 20 < options.memory_mb;
  for (const std::string& path : options.shards) {
    const auto load = [path, most = options.unpack_limit]() -> Result<NamedTensors> {
      HEDDLE_ASSIGN_OR_RETURN(NamedTensors arrays, ReadNpz(path, most));
      HEDDLE_RETURN_IF_ERROR(AttachOffsets(path, &arrays));
      return arrays;
    };
    HEDDLE_RETURN_IF_ERROR(data.AddShard(path, load, keep));
  }
  HEDDLE_RETURN_IF_ERROR(data.Finish());
  return data;
}

Result<StepValues> StepValues::Open(const std::vector<std::string>& pairs, const Program& program,
                                    int64_t steps) {
  StepValues values;
  const std::vector<TensorInfo> variables = program.persistables();
  const std::vector<std::string> names = NamesOf(variables);
  for (const std::string& pair : pairs) {
    const auto [name, path] = SplitPair(pair, names);
    const auto found = std::find_if(variables.begin(), variables.end(),
                                    [&, n = name](const TensorInfo& v) { return v.name == n; });
    if (found == variables.end())
      return WrongData("--set: the main program has no persistable variable '" + name + "'" +
                       DidYouMean(name, names));
    Item item{*found, Tensor()};
    HEDDLE_ASSIGN_OR_RETURN(item.rows, ReadNpy(path));
    if (item.rows.rank() == 0 || item.rows.dim(0) == 0)
      return WrongData(path + ": has no rows; row s is the value for step s");
    if (item.rows.dtype() != found->dtype)
      return WrongData(path + ": is " + std::string(Name(item.rows.dtype())) + "; variable '" +
                       name + "' is " + std::string(Name(found->dtype)));
    if (!found->shape.is_static() || found->shape.numel() != WithoutFirst(item.rows).numel())
      return WrongData(path + ": a row has shape " + WithoutFirst(item.rows).ToString() +
                       "; variable '" + name + "' has " + found->shape.ToString());
    if (item.rows.dim(0) < steps)
      return WrongData(path + ": has " + std::to_string(item.rows.dim(0)) + " rows; " +
                       std::to_string(steps) + " steps need one each");
    values.items_.push_back(std::move(item));
  }
  return values;
}

Status StepValues::Apply(int64_t step, Scope& scope) const {
  for (const Item& item : items_) {
    Tensor value = RowOf(item.rows, step).Reshaped(item.variable.shape).Clone();
    if (!value.initialized())
      return Status(StatusCode::kResourceExhausted, "no memory for '" + item.variable.name + "'");
    scope.Set(item.variable.name, Value(std::move(value)));
  }
  return Status::Ok();
}

}  // namespace heddle::tools
