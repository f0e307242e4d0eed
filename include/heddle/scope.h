// Scope: named variables that outlive runs (parameters, optimizer state), in a tree.
//
// Ownership: a Scope owns its variables and keeps its parent alive. Addresses of variables are
// stable until Erase. Threads: all methods may be called from any thread; the *contents* of a
// variable follow Tensor's rules (heddle serialises runs that write to one).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heddle/value.h"

namespace heddle {

class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent = nullptr) : parent_(std::move(parent)) {}

  // The variable here or in an ancestor; nullptr when there is none.
  Value* Find(std::string_view name) const;
  // The variable here, made when absent.
  Value* Ensure(const std::string& name);
  // Sets a variable here. A Plan that has packed or folded a copy notices: see version().
  void Set(const std::string& name, Value value);
  void Erase(std::string_view name);
  // Names here (not in ancestors), sorted bytewise.
  std::vector<std::string> Names() const;
  // Grows with every Set/Erase; lets users of derived copies see that they are out of date.
  uint64_t version() const;
  // Held while a run writes to variables of this scope.
  std::mutex& write_mutex() { return write_mutex_; }

 private:
  std::shared_ptr<Scope> parent_;
  mutable std::mutex mutex_;
  std::mutex write_mutex_;
  uint64_t version_ = 0;
  std::unordered_map<std::string, std::unique_ptr<Value>> vars_;
};

}  // namespace heddle
