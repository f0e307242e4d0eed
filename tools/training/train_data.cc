#include "tools/training/train_data.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

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

size_t ItemBytes(const Tensor& t) {
  return t.dim(0) > 0 ? t.bytes() / static_cast<size_t>(t.dim(0)) : 0;
}

// Items [begin, begin + count) where they lie.
Tensor Slice(const Tensor& t, int64_t begin, int64_t count) {
  Shape shape = t.shape();
  shape[0] = count;
  return Tensor(t.dtype(), shape, t.buffer(), ItemBytes(t) * static_cast<size_t>(begin));
}

// Item `i` without the first axis.
Tensor RowOf(const Tensor& t, int64_t i) {
  return Tensor(t.dtype(), WithoutFirst(t), t.buffer(), ItemBytes(t) * static_cast<size_t>(i));
}

// Samples, or batches, in an array: rows, or sequences of the outermost level.
int64_t ItemCount(const Tensor& t) { return t.has_lod() ? SequenceCount(t) : t.dim(0); }

// The batch that item `i` is.
Tensor BatchOf(const Tensor& t, int64_t i) {
  return t.has_lod() ? TakeSequences(t, {i}, false) : RowOf(t, i);
}

// A batch of items [begin, begin + count), in `order` where there is one.
Tensor BatchOf(const Tensor& t, int64_t begin, int64_t count, const int64_t* order) {
  if (!t.has_lod())
    return order != nullptr ? GatherRows(t, order + begin, count) : Slice(t, begin, count);
  std::vector<int64_t> items(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    items[static_cast<size_t>(i)] = order != nullptr ? order[begin + i] : begin + i;
  return TakeSequences(t, std::move(items), true);
}

// A permutation of 0 … n-1, the same everywhere for the same numbers.
template <typename T>
std::vector<T> Permutation(size_t n, std::initializer_list<uint64_t> numbers) {
  std::vector<uint32_t> words;
  for (uint64_t x : numbers) {
    words.push_back(static_cast<uint32_t>(x));
    words.push_back(static_cast<uint32_t>(x >> 32));
  }
  std::seed_seq seed(words.begin(), words.end());
  std::mt19937_64 random(seed);
  std::vector<T> order(n);
  std::iota(order.begin(), order.end(), T{0});
  for (size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace

Result<TrainData> TrainData::Open(const DataOptions& options, const ProgramInputs& inputs) {
  TrainData data;
  data.options_ = options;
  for (const std::string& pair : options.feeds) HEDDLE_RETURN_IF_ERROR(data.AddFeed(pair, inputs));
  for (const std::string& pair : options.lods) HEDDLE_RETURN_IF_ERROR(data.AddOffsets(pair));
  uint64_t bytes = 0;
  for (const std::string& path : options.shards) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    if (!error) bytes += size;
  }
  const bool keep = bytes >> 20 < options.memory_mb;
  for (const std::string& path : options.shards) HEDDLE_RETURN_IF_ERROR(data.AddShard(path, keep));
  for (const Shard& shard : data.shards_) data.steps_per_epoch_ += shard.batches;
  if (!data.shards_.empty() && data.steps_per_epoch_ == 0)
    return WrongData("--data: there is not one full batch of " +
                     std::to_string(options.batch_size));
  if (data.shards_.empty())
    for (const auto& [name, tensor] : data.stacked_)
      data.steps_per_epoch_ = std::max(data.steps_per_epoch_, tensor.dim(0));
  return data;
}

// Names that no input has are told when a step is run.
Status TrainData::AddFeed(const std::string& pair, const ProgramInputs& inputs) {
  const auto [name, path] = SplitPair(pair, NamesOf(inputs.infos));
  HEDDLE_ASSIGN_OR_RETURN(const NpyArray array, ReadNpyArray(path));
  size_t k = 0;
  while (k < inputs.infos.size() && inputs.infos[k].name != name) ++k;
  const bool known = k < inputs.infos.size();
  HEDDLE_ASSIGN_OR_RETURN(Value value,
                          FeedValue(array, known ? inputs.infos[k].dtype : DType::kUnknown,
                                    known ? inputs.types[k] : "", path, "input '" + name + "'"));
  if (!value.is_tensor()) return WrongData(path + ": holds texts, not numbers");
  Tensor tensor = value.tensor();
  if (tensor.rank() == 0 || tensor.dim(0) == 0)
    return WrongData(path + ": the first axis stacks batches; shape " + tensor.shape().ToString() +
                     " has none");
  for (const auto& [other, unused] : stacked_)
    if (other == name) return WrongData("--feed: input '" + name + "' is given twice");
  stacked_.emplace_back(name, std::move(tensor));
  return Status::Ok();
}

Status TrainData::AddOffsets(const std::string& pair) {
  const auto [name, text] = SplitAtLast(pair);
  for (const auto& [other, unused] : offsets_)
    if (other == name) return WrongData("--lod: input '" + name + "' is given twice");
  HEDDLE_ASSIGN_OR_RETURN(LoD lod, ParseLod(text));
  for (const auto& [fed, tensor] : stacked_) {
    if (fed != name) continue;
    if (tensor.rank() < 2 || lod.back().back() != static_cast<size_t>(tensor.dim(1)))
      return WrongData("--lod: the offsets of '" + name + "' end with " +
                       std::to_string(lod.back().back()) + "; its batches have shape " +
                       WithoutFirst(tensor).ToString());
    offsets_.emplace_back(name, std::move(lod));
    return Status::Ok();
  }
  return WrongData("--lod: input '" + name + "' is not given by --feed");
}

Status TrainData::AddShard(const std::string& path, bool keep) {
  Shard shard;
  shard.path = path;
  HEDDLE_RETURN_IF_ERROR(Load(&shard));
  const int64_t size = options_.batch_size;
  shard.batches =
      size == 0 ? shard.items : (shard.items + (options_.drop_last ? 0 : size - 1)) / size;
  for (const auto& [name, tensor] : shard.arrays)
    for (const auto& [other, unused] : stacked_)
      if (other == name) return WrongData("input '" + name + "' is given by --feed and by " + path);
  if (!keep) shard.arrays.clear();
  shards_.push_back(std::move(shard));
  return Status::Ok();
}

// Reads a shard, and checks that it is what it was when it is read again.
Status TrainData::Load(Shard* shard) {
  HEDDLE_ASSIGN_OR_RETURN(NamedTensors arrays, ReadNpz(shard->path, options_.unpack_limit));
  HEDDLE_RETURN_IF_ERROR(AttachOffsets(shard->path, &arrays));
  if (arrays.empty()) return WrongData(shard->path + ": holds no arrays");
  for (const auto& [name, tensor] : arrays) {
    if (tensor.rank() == 0)
      return WrongData(shard->path + ": array '" + name +
                       "' has no first axis to take batches from");
    if (ItemCount(tensor) != ItemCount(arrays[0].second))
      return WrongData(shard->path + ": array '" + name + "' has " +
                       std::to_string(ItemCount(tensor)) +
                       (tensor.has_lod() ? " sequences, '" : " items along its first axis, '") +
                       arrays[0].first + "' has " + std::to_string(ItemCount(arrays[0].second)));
  }
  const int64_t items = ItemCount(arrays[0].second);
  if (shard->batches > 0 && shard->items != items)
    return WrongData(shard->path + ": has " + std::to_string(items) + " items now; it had " +
                     std::to_string(shard->items) + " when training began");
  shard->items = items;
  shard->arrays = std::move(arrays);
  return Status::Ok();
}

void TrainData::Plan(int64_t epoch) {
  if (epoch_ == epoch) return;
  epoch_ = epoch;
  if (options_.shuffle) {
    shard_order_ =
        Permutation<size_t>(shards_.size(), {options_.seed, static_cast<uint64_t>(epoch)});
  } else {
    shard_order_.resize(shards_.size());
    std::iota(shard_order_.begin(), shard_order_.end(), size_t{0});
  }
}

const std::vector<int64_t>& TrainData::Order(int64_t epoch, size_t shard) {
  if (order_epoch_ != epoch || order_shard_ != shard) {
    order_epoch_ = epoch;
    order_shard_ = shard;
    order_ = Permutation<int64_t>(static_cast<size_t>(shards_[shard].items),
                                  {options_.seed, static_cast<uint64_t>(epoch), shard + 1});
  }
  return order_;
}

Result<std::vector<Feed>> TrainData::Step(int64_t step) {
  std::vector<Feed> feeds;
  for (const auto& [name, tensor] : stacked_) {
    Tensor value = RowOf(tensor, step % tensor.dim(0));
    for (const auto& [of, lod] : offsets_)
      if (of == name) value.set_lod(lod);
    feeds.push_back({name, Value(std::move(value))});
  }
  if (shards_.empty()) return feeds;
  const int64_t epoch = step / steps_per_epoch_;
  int64_t batch = step % steps_per_epoch_;
  Plan(epoch);
  size_t at = 0;
  while (batch >= shards_[shard_order_[at]].batches) batch -= shards_[shard_order_[at++]].batches;
  const size_t index = shard_order_[at];
  Shard& shard = shards_[index];
  if (shard.arrays.empty()) {
    for (Shard& other : shards_) other.arrays.clear();
    HEDDLE_RETURN_IF_ERROR(Load(&shard));
  }
  const int64_t size = options_.batch_size;
  const int64_t count = size == 0 ? 1 : std::min(size, shard.items - batch * size);
  const int64_t* order = options_.shuffle ? Order(epoch, index).data() : nullptr;
  for (const auto& [name, tensor] : shard.arrays) {
    Tensor value = size == 0 ? BatchOf(tensor, order != nullptr ? order[batch] : batch)
                             : BatchOf(tensor, batch * size, count, order);
    if (!value.initialized())
      return Status(StatusCode::kResourceExhausted, "no memory for a batch of '" + name + "'");
    feeds.push_back({name, Value(std::move(value))});
  }
  return feeds;
}

std::string TrainData::Describe() const {
  std::string text;
  for (const auto& [name, tensor] : stacked_)
    text += "--feed " + name + " " + std::to_string(tensor.dim(0)) + " batches; ";
  for (const auto& [name, lod] : offsets_) text += "--lod " + name + " " + LodText(lod, "|") + "; ";
  for (const Shard& shard : shards_)
    text += "--data " + fs::path(shard.path).filename().string() + " " +
            std::to_string(shard.items) + " items; ";
  text += "--batch-size " + std::to_string(options_.batch_size);
  if (options_.drop_last) text += " --drop-last";
  if (options_.shuffle) text += " --shuffle --seed " + std::to_string(options_.seed);
  return text;
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
