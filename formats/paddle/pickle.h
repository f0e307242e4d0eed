// Reading Python pickles as data, without Python and without executing anything.
//
// A pickle is a program for a stack machine that may call any function Python can import. This
// reader knows the instructions that build numbers, texts, lists, tuples and dicts, and the handful
// of callables that NumPy arrays, OrderedDict and Paddle's tensors are written with; it
// gives each of those a meaning of its own, and an error names any other.
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
  int64_t number = 0;                // kBool, kInt; which one, of kCallable
  double real = 0;                   // kFloat
  std::string_view bytes;            // kText (UTF-8), kBytes; the type code of kDType
  std::vector<PickleObject*> items;  // kList, kTuple; key, value, key, … of kDict
  std::unique_ptr<Tensor> tensor;    // kArray: a copy of the file's data; null until it is there

  // The value of a text key; nullptr when this is no dict or has none. The last one counts.
  const PickleObject* Get(std::string_view key) const;
};

// Owns what a pickle consists of; objects may share and hold each other. Throws std::bad_alloc.
class Pickle {
 public:
  // `bytes` (of protocol 2 to 4) must outlive the object. `name` appears in messages.
  // kDataLoss: cut short or damaged; kUnimplemented: a callable or an instruction that is not
  // known.
  Status Parse(std::string_view bytes, const std::string& name);
  const PickleObject* root() const { return root_; }

 private:
  friend class PickleMachine;
  std::deque<PickleObject> objects_;
  std::deque<std::string> texts_;  // texts that the file holds in another form
  PickleObject* root_ = nullptr;
};

}  // namespace heddle::paddle
