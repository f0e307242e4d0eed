// A line of an example as words, and words as values. A failure throws BadExample, which the parser
// turns into a Status with the place.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tensor.h"
#include "proto/framework.pb.h"

namespace heddle::testing {

struct BadExample : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The words of one statement, taken from the left. "[…]" is one word, spaces and all.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) { SkipSpace(); }
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  // The next word, which stays; empty at the end.
  std::string_view Peek() const;
  // Throws when there is none. `what` says what was expected.
  std::string Next(const char* what);
  // Takes the next word if it is this one.
  bool Take(std::string_view word);

 private:
  void SkipSpace();
  std::string_view rest_;
};

int64_t ToInt(std::string_view word);
double ToDouble(std::string_view word);
DType ToDType(std::string_view word);
Shape ToShape(std::string_view word);
std::vector<int64_t> ToIntList(std::string_view word);
LoD ToLoD(std::string_view word);

// The elements of a tensor, up to the end of the line.
Tensor ToTensor(DType dtype, const Shape& shape, Words* words);

// `type`: Paddle's name; `value`: JSON.
proto::OpDesc_Attr ToAttr(const std::string& name, const std::string& type,
                          const std::string& value);

}  // namespace heddle::testing
