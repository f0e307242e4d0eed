// Serializes a group of heddle_engine.h as the text of a message, and reads it back. The contents
// of all parameters, and the group's ONNX model, are in one shared memory, one after another.
//
// Ownership: a GroupCopy owns everything that its group points to, except that memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engines/process/channel.h"
#include "heddle/heddle_engine.h"

namespace heddle_process {

// The next aligned offset at or after `bytes`, where contents of any type can begin.
inline size_t Aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Whether contents of parameters and the ONNX model go with a group.
enum class Contents { kYes, kNo };
// The function that gives the model of a group that is restored; null: there is none.
struct Later {
  void* host = nullptr;
  const void* (*give)(void* host, size_t* bytes) = nullptr;
};
Later LaterOf(const heddle_engine_group& group);

// The bytes of the parameters that the group's operators read, and of its ONNX model.
size_t ContentBytes(const heddle_engine_group& group, Contents contents);
// Writes the group to `to`, and those bytes to `at`, which it advances.
void Write(const heddle_engine_group& group, Contents contents, Writer* to, std::byte** at);

class GroupCopy {
 public:
  // Reads what Write wrote, with contents from `*at` to `end`. Then check good() of the reader.
  GroupCopy(Reader* from, const std::byte** at, const std::byte* end);
  GroupCopy(const GroupCopy&) = delete;
  GroupCopy& operator=(const GroupCopy&) = delete;
  const heddle_engine_group& get() const { return group_; }
  // Whether the host has the ONNX model and did not send it.
  bool has_more() const { return has_more_; }
  void set_later(void* host, const void* (*later)(void* host, size_t* bytes)) {
    group_.host = host;
    group_.later = later;
  }

 private:
  const char* Text(Reader* from) { return texts_.emplace_back(from->Text()).c_str(); }
  const std::vector<int64_t>& Longs(Reader* from);
  const std::vector<int32_t>& Indices(Reader* from);
  const heddle_engine_slot* const* Slots(Reader* from, size_t* count);
  const heddle_engine_attribute* const* Attributes(Reader* from, size_t* count);
  static const void* ContentsOf(Reader* from, const std::byte** at, const std::byte* end,
                                size_t* bytes);

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
  bool has_more_ = false;
};

// Bytes of an element; 0: there is no such type.
size_t SizeOf(int32_t dtype);

}  // namespace heddle_process
