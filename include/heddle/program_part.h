// Which part of a file is the program, for formats whose files hold more than one: a TensorFlow
// graph is run from any tensors to any others.
#pragma once

#include <string>
#include <vector>

namespace heddle {

// Formats whose files hold one program take no signature and ignore the lists: what such programs
// are fed and what is fetched of them is said when they are compiled and run.
struct ProgramPart {
  // Names the inputs and outputs, as a SavedModel's "serving_default" does; empty: the usual one.
  std::string signature = {};
  // Values that runs are given. Empty: the inputs of the signature, or what has to be given.
  std::vector<std::string> feeds = {};
  // Values that runs give back. Empty: the outputs of the signature, or what nothing uses.
  std::vector<std::string> fetches = {};
  // Operators that run though nothing is taken from them.
  std::vector<std::string> targets = {};

  bool empty() const {
    return signature.empty() && feeds.empty() && fetches.empty() && targets.empty();
  }
  friend bool operator==(const ProgramPart&, const ProgramPart&) = default;
};

}  // namespace heddle
