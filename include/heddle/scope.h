// Scope: named variables that outlive runs (parameters, optimizer state), in a tree. A run finds
// variables in its scope and that one's ancestors; those that it makes go to the tree's root.
//
// Ownership: a Scope owns its variables and keeps its parent alive. Addresses of variables are
// stable until Erase. Threads: all methods may be called from any thread; the *contents* of a
// variable follow Tensor's rules (heddle serialises runs that write to one).
#pragma once

#include <functional>
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

  // The variable here or in an ancestor; nullptr when there is none, or its file cannot be read.
  Value* Find(std::string_view name) const;
  // The variable here, made when absent.
  Value* Ensure(const std::string& name);
  // Sets a variable here. A Plan that has packed or folded a copy notices: see version().
  void Set(const std::string& name, Value value);
  void Erase(std::string_view name);
  // Names here (not in ancestors), sorted bytewise.
  std::vector<std::string> Names() const;
  // Says that the variable, here or in an ancestor, was written to in place. Runs do so for what
  // they write; whoever changes contents through Find() does it by hand.
  void MarkWritten(std::string_view name);
  // Grows with every Set, MarkWritten and Erase, here and in ancestors; lets users of derived
  // copies see that something may be out of date.
  uint64_t version() const;
  // The value that Find() returns and the number of its last write: equal stamps, equal contents.
  struct Stamp {
    Value* value = nullptr;
    uint64_t version = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  Stamp StampOf(std::string_view name) const;
  // Held while a run writes to variables of this scope: one for all scopes of a tree, since a run
  // may write to an ancestor's.
  std::mutex& write_mutex() { return parent_ ? parent_->write_mutex() : write_mutex_; }
  const std::shared_ptr<Scope>& parent() const { return parent_; }  // nullptr: the tree's root

 private:
  std::shared_ptr<Scope> parent_;
  mutable std::mutex mutex_;
  std::mutex write_mutex_;
  uint64_t version_ = 0;
  struct Variable {
    Value value;
    uint64_t version = 0;  // of the scope when this was last written
  };
  // Names are looked up as they come, without a string of their own.
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  Variable& Make(const std::string& name);  // with mutex_ held
  std::unordered_map<std::string, std::unique_ptr<Variable>, NameHash, std::equal_to<>> vars_;
};

}  // namespace heddle
