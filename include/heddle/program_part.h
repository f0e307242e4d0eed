// Selects a program in a file that holds more than one: a TensorFlow graph can be run from any
// tensors to any others.
#pragma once

#include <string>
#include <vector>

namespace heddle {

// For formats with one program per file, the signature must be empty and the lists are ignored:
// feeds and fetches of such programs are given when they are compiled and run.
struct ProgramPart {
  // The name of a set of inputs and outputs, such as a SavedModel's "serving_default"; empty: the
  // usual one.
  std::string signature = {};
  // Values that are fed. Empty: the inputs of the signature, or all that must be fed.
  std::vector<std::string> feeds = {};
  // Values that are fetched. Empty: the outputs of the signature, or all values without a reader.
  std::vector<std::string> fetches = {};
  // Operators that run although none of their outputs is fetched.
  std::vector<std::string> targets = {};

  bool empty() const {
    return signature.empty() && feeds.empty() && fetches.empty() && targets.empty();
  }
  friend bool operator==(const ProgramPart&, const ProgramPart&) = default;
};

}  // namespace heddle
