// TensorFlow's operators in the words of heddle's operators of the same meaning.
#pragma once

#include <span>
#include <string_view>

#include "formats/lowering/words.h"

namespace heddle::tensorflow {

struct WordsEntry {
  std::string_view op;  // TensorFlow's
  formats::Words words;
};
std::span<const WordsEntry> AllWords();
// Null: there is no entry.
const formats::Words* FindWords(std::string_view op);

}  // namespace heddle::tensorflow
