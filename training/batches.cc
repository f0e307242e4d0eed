#include "training/batches.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "tools/values/sequences.h"
#include "tools/values/values.h"

namespace heddle::training {
namespace {

using tools::GatherRows;
using tools::SequenceCount;
using tools::TakeSequences;

Status WrongData(const std::string& why) { return Status(StatusCode::kInvalidArgument, why); }

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

Status Batches::AddStacked(const std::string& input, Tensor stacked) {
  if (stacked.rank() == 0 || stacked.dim(0) == 0)
    return WrongData("the first axis of input '" + input + "' stacks batches; shape " +
                     stacked.shape().ToString() + " has none");
  for (const auto& [other, unused] : stacked_)
    if (other == input) return WrongData("--feed: input '" + input + "' is given twice");
  stacked_.emplace_back(input, std::move(stacked));
  return Status::Ok();
}

Status Batches::AddOffsets(const std::string& input, LoD lod) {
  for (const auto& [other, unused] : offsets_)
    if (other == input) return WrongData("--lod: input '" + input + "' is given twice");
  for (const auto& [fed, tensor] : stacked_) {
    if (fed != input) continue;
    if (tensor.rank() < 2 || lod.back().back() != static_cast<size_t>(tensor.dim(1)))
      return WrongData("--lod: the offsets of '" + input + "' end with " +
                       std::to_string(lod.back().back()) + "; its batches have shape " +
                       WithoutFirst(tensor).ToString());
    offsets_.emplace_back(input, std::move(lod));
    return Status::Ok();
  }
  return WrongData("--lod: input '" + input + "' is not given by --feed");
}

Status Batches::AddShard(const std::string& name, Loader load, bool keep) {
  Shard shard;
  shard.name = name;
  shard.load = std::move(load);
  HEDDLE_RETURN_IF_ERROR(Load(&shard));
  const int64_t size = options_.batch_size;
  shard.batches =
      size == 0 ? shard.items : (shard.items + (options_.drop_last ? 0 : size - 1)) / size;
  for (const auto& [input, tensor] : shard.arrays)
    for (const auto& [other, unused] : stacked_)
      if (other == input)
        return WrongData("input '" + input + "' is given by --feed and by " + name);
  if (!keep) shard.arrays.clear();
  shards_.push_back(std::move(shard));
  return Status::Ok();
}

Status Batches::Finish() {
  for (const Shard& shard : shards_) steps_per_epoch_ += shard.batches;
  if (!shards_.empty() && steps_per_epoch_ == 0)
    return WrongData("there is not one full batch of " + std::to_string(options_.batch_size));
  if (shards_.empty())
    for (const auto& [name, tensor] : stacked_)
      steps_per_epoch_ = std::max(steps_per_epoch_, tensor.dim(0));
  return Status::Ok();
}

// Reads a shard, and checks that it is what it was when it is read again.
Status Batches::Load(Shard* shard) {
  HEDDLE_ASSIGN_OR_RETURN(NamedTensors arrays, shard->load());
  if (arrays.empty()) return WrongData(shard->name + ": holds no arrays");
  for (const auto& [name, tensor] : arrays) {
    if (tensor.rank() == 0)
      return WrongData(shard->name + ": array '" + name +
                       "' has no first axis to take batches from");
    if (ItemCount(tensor) != ItemCount(arrays[0].second))
      return WrongData(shard->name + ": array '" + name + "' has " +
                       std::to_string(ItemCount(tensor)) +
                       (tensor.has_lod() ? " sequences, '" : " items along its first axis, '") +
                       arrays[0].first + "' has " + std::to_string(ItemCount(arrays[0].second)));
  }
  const int64_t items = ItemCount(arrays[0].second);
  if (shard->batches > 0 && shard->items != items)
    return WrongData(shard->name + ": has " + std::to_string(items) + " items now; it had " +
                     std::to_string(shard->items) + " when training began");
  shard->items = items;
  shard->arrays = std::move(arrays);
  return Status::Ok();
}

void Batches::Plan(int64_t epoch) {
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

const std::vector<int64_t>& Batches::Order(int64_t epoch, size_t shard) {
  if (order_epoch_ != epoch || order_shard_ != shard) {
    order_epoch_ = epoch;
    order_shard_ = shard;
    order_ = Permutation<int64_t>(static_cast<size_t>(shards_[shard].items),
                                  {options_.seed, static_cast<uint64_t>(epoch), shard + 1});
  }
  return order_;
}

Result<std::vector<Feed>> Batches::Step(int64_t step) {
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

std::string Batches::Describe() const {
  std::string text;
  for (const auto& [name, tensor] : stacked_)
    text += "--feed " + name + " " + std::to_string(tensor.dim(0)) + " batches; ";
  for (const auto& [name, lod] : offsets_)
    text += "--lod " + name + " " + tools::LodText(lod, "|") + "; ";
  for (const Shard& shard : shards_)
    text += "--data " + std::filesystem::path(shard.name).filename().string() + " " +
            std::to_string(shard.items) + " items; ";
  text += "--batch-size " + std::to_string(options_.batch_size);
  if (options_.drop_last) text += " --drop-last";
  if (options_.shuffle) text += " --shuffle --seed " + std::to_string(options_.seed);
  return text;
}

}  // namespace heddle::training
