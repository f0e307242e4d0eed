// One block as a graph: operators, values, and edges that say which operator precedes which.
//
// A value is a variable between two writes: version 0 before the block, the next one at each write.
// A data edge leads from the maker of a value to each reader. An order edge leads from the maker
// and the readers of a version to the writer of the next one, and from each operator that draws
// random numbers or has side effects to the next such operator. An operator that runs blocks also
// reads and writes what these read and write of the variables of this block and outer ones.
//
// Ownership: a Graph refers to its Description, which must outlive it. Threads: any may read.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "partition/description.h"

namespace heddle::partition {

using OpIndex = int32_t;  // in the block of the file
using ValueId = uint32_t;

inline constexpr OpIndex kNoOp = -1;

// Why an operator never enters a group.
enum class Never : uint8_t {
  kNo,
  kFeed,
  kFetch,
  kControlFlow,
  kSideEffect,
  kRandom,
  kWritesPersistable,
  kNotDense,
};
std::string_view Reason(Never never);

struct Value {
  VarId var = 0;
  OpIndex maker = kNoOp;
  bool constant = false;  // of a persistable variable that nothing has written yet
  bool kept = false;      // fetched, or needed outside an inner block
  uint32_t first_reader = 0, num_readers = 0;
};

// An argument that is read or written.
struct Use {
  std::string_view slot;  // empty: the use is in a block that the operator runs
  ValueId value = 0;
};

// One list per operator, in one allocation.
template <typename T>
class Lists {
 public:
  std::span<const T> operator[](size_t i) const {
    return {items_.data() + begins_[i], begins_[i + 1] - begins_[i]};
  }
  void Add(T item) { items_.push_back(item); }
  void EndList() { begins_.push_back(static_cast<uint32_t>(items_.size())); }
  size_t size() const { return begins_.size() - 1; }

 private:
  std::vector<T> items_;
  std::vector<uint32_t> begins_ = {0};
};

class Graph {
 public:
  Graph(const Description& description, int block);
  Graph(const Graph&) = delete;  // values point to undeclared_
  Graph& operator=(const Graph&) = delete;

  int block() const { return block_; }
  OpIndex size() const { return static_cast<OpIndex>(ops_.size()); }
  const Description& description() const { return description_; }
  const Operator& op(OpIndex i) const { return ops_[At(i)]; }
  std::string_view type(OpIndex i) const { return description_.type(op(i).type); }
  Never never(OpIndex i) const { return never_[At(i)]; }
  // The number of elements of the largest output other than XShape.
  int64_t elements(OpIndex i) const { return elements_[At(i)]; }

  std::span<const Use> reads(OpIndex i) const { return reads_[At(i)]; }
  std::span<const Use> writes(OpIndex i) const { return writes_[At(i)]; }
  // The makers of what an operator reads, in the order of its arguments.
  std::span<const OpIndex> makers(OpIndex i) const { return before(i).first(num_makers_[At(i)]); }
  // The makers, then the sources of order edges, ascending.
  std::span<const OpIndex> before(OpIndex i) const { return before_[At(i)]; }
  std::span<const OpIndex> after(OpIndex i) const { return after_[At(i)]; }

  size_t num_values() const { return values_.size(); }
  const Value& value(ValueId v) const { return values_[v]; }
  std::span<const OpIndex> readers(ValueId v) const {
    return {readers_.data() + values_[v].first_reader, values_[v].num_readers};
  }
  const Variable& var(ValueId v) const { return *vars_[values_[v].var]; }
  int64_t bytes(ValueId v) const { return bytes_[v]; }

  // The operators in the order of a depth-first walk from the fetches, then from the rest: each
  // after those that it needs, one branch after the other.
  const std::vector<OpIndex>& walk() const { return walk_; }
  int32_t place(OpIndex i) const { return places_[At(i)]; }  // index in walk()

 private:
  class Maker;
  static size_t At(OpIndex i) { return static_cast<size_t>(i); }

  const Description& description_;
  const int block_;
  const std::vector<Operator>& ops_;
  std::vector<const Variable*> vars_;
  std::vector<Variable> undeclared_;
  std::vector<Never> never_;
  std::vector<int64_t> elements_, bytes_;
  Lists<Use> reads_, writes_;
  Lists<OpIndex> before_, after_;
  std::vector<uint32_t> num_makers_;
  std::vector<Value> values_;
  std::vector<OpIndex> readers_, walk_;
  std::vector<int32_t> places_;
};

}  // namespace heddle::partition
