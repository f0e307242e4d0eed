// A group of heddle_engine.h as the text of a message and back. Contents of parameters lie in one
// shared memory, each behind the other.
//
// Ownership: a GroupCopy holds everything that its group points to but the parameters' memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engines/process/channel.h"
#include "heddle/heddle_engine.h"

namespace heddle_process {

// Where contents of so many bytes begin, for any of them to be aligned.
inline size_t Aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Bytes of the parameters that the group's operators read.
size_t ParameterBytes(const heddle_engine_group& group);
// Writes those parameters to `at`, which it moves on from.
void Write(const heddle_engine_group& group, Writer* to, std::byte** at);

class GroupCopy {
 public:
  // Reads what Write wrote, with parameters from `*at` to `end`. Check good() of the reader.
  GroupCopy(Reader* from, const std::byte** at, const std::byte* end);
  GroupCopy(const GroupCopy&) = delete;
  GroupCopy& operator=(const GroupCopy&) = delete;
  const heddle_engine_group& get() const { return group_; }

 private:
  const char* Text(Reader* from) { return texts_.emplace_back(from->Text()).c_str(); }
  const std::vector<int64_t>& Longs(Reader* from);
  const std::vector<int32_t>& Indices(Reader* from);
  const heddle_engine_slot* const* Slots(Reader* from, size_t* count);
  const heddle_engine_attribute* const* Attributes(Reader* from, size_t* count);

  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> longs_;
  std::deque<std::vector<int32_t>> indices_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::vector<const char*>> text_lists_;
  std::deque<heddle_engine_slot> slots_;
  std::deque<std::vector<const heddle_engine_slot*>> slot_lists_;
  std::deque<heddle_engine_attribute> attributes_;
  std::deque<std::vector<const heddle_engine_attribute*>> attribute_lists_;
  std::deque<heddle_engine_value> values_;
  std::deque<heddle_engine_operator> operators_;
  std::vector<const heddle_engine_value*> value_list_;
  std::vector<const heddle_engine_operator*> operator_list_;
  heddle_engine_group group_ = {};
};

// Bytes of an element; 0: there is no such type.
size_t SizeOf(int32_t dtype);

}  // namespace heddle_process
