// Reads Python pickles as data, without Python and without executing code.
//
// A pickle is a program for a stack machine that may call any function that Python can import. This
// reader knows the instructions that build numbers, texts, lists, tuples and dicts, and the few
// callables by which NumPy arrays, OrderedDict and Paddle's tensors are written; it implements
// those itself, and refuses any other by name.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle::paddle {

struct PickleObject {
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kText,
    kBytes,
    kList,
    kTuple,
    kDict,
    kArray,
    kDType,
    kCallable,  // parts of arrays
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;                // value of kBool and kInt; which callable, for kCallable
  double real = 0;                   // kFloat
  std::string_view bytes;            // kText (UTF-8), kBytes; the type code of kDType
  std::vector<PickleObject*> items;  // kList, kTuple: elements; kDict: keys and values in turns
  std::unique_ptr<Tensor> tensor;    // kArray: a copy of the file's data; null until BUILD gives it

  // The value of a text key; nullptr if this is no dict or lacks the key. Of several, the last
  // counts.
  const PickleObject* Get(std::string_view key) const;
};

// Owns the objects of a pickle, which may share and contain each other. Throws std::bad_alloc.
class Pickle {
 public:
  // Parses `bytes` (protocols 2 to 4), which must outlive the object. `name` appears in messages.
  // kDataLoss: cut short or damaged; kUnimplemented: an unknown callable or instruction.
  Status Parse(std::string_view bytes, const std::string& name);
  const PickleObject* root() const { return root_; }

 private:
  friend class PickleMachine;
  std::deque<PickleObject> objects_;
  std::deque<std::string> texts_;  // texts that the file has in another encoding
  PickleObject* root_ = nullptr;
};

}  // namespace heddle::paddle
