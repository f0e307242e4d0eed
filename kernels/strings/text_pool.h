// TextPool: texts by number. Lists of texts hold the numbers, as tensors of int64, so that every
// operator on lists serves them.
//
// Ownership: the values of a program share the pool that its run has made. A pool only grows, and a
// number keeps its text. Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/kernel_context.h"
#include "core/thread_annotations.h"
#include "heddle/string_tensor.h"

namespace heddle {

class TextPool {
 public:
  // Number 0 is the empty text: items of a list that were never set read as zeros.
  TextPool() { Number(""); }
  TextPool(const TextPool&) = delete;
  TextPool& operator=(const TextPool&) = delete;

  // Writes the number of each text, which is added where it is new.
  void Add(const std::vector<std::string>& texts, int64_t* numbers) HEDDLE_EXCLUDES(mutex_);
  // Appends the text of each of `count` numbers. kOutOfRange: there is none.
  Status Find(const int64_t* numbers, int64_t count, std::vector<std::string>* texts)
      HEDDLE_EXCLUDES(mutex_);

 private:
  int64_t Number(const std::string& text) HEDDLE_REQUIRES(mutex_);

  Mutex mutex_;
  std::unordered_map<std::string, int64_t> numbers_ HEDDLE_GUARDED_BY(mutex_);
  std::vector<const std::string*> texts_ HEDDLE_GUARDED_BY(mutex_);  // keys of `numbers_`
};

}  // namespace heddle
