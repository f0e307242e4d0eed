// Scope: named variables that outlive runs (parameters, optimizer state), in a tree. A run finds
// variables in its scope and the scope's ancestors; those that it makes belong to the tree's root.
//
// Ownership: a Scope owns its variables and keeps its parent alive. The address of a variable is
// valid until Erase. Threads: all methods may be called from any thread; for the *contents* of a
// variable the rules of Tensor apply (heddle serialises runs that write one).
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

  // The variable here or in an ancestor; nullptr: there is none, or its file cannot be read.
  Value* Find(std::string_view name) const;
  // The variable here, which is made if it does not exist.
  Value* Ensure(const std::string& name);
  // Sets a variable here. Plans that have packed or folded a copy notice it: see version().
  void Set(const std::string& name, Value value);
  void Erase(std::string_view name);
  // The names here (not in ancestors), sorted bytewise.
  std::vector<std::string> Names() const;
  // States that the variable, here or in an ancestor, was written in place. Runs do so for what
  // they write; a caller that changes contents through Find() must do so itself.
  void MarkWritten(std::string_view name);
  // A number that grows with every Set, MarkWritten and Erase, here and in ancestors: owners of
  // derived copies see by it that something may be outdated.
  uint64_t version() const;
  // The value that Find() returns, and the number of its last write: equal stamps mean equal
  // contents.
  struct Stamp {
    Value* value = nullptr;
    uint64_t version = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  Stamp StampOf(std::string_view name) const;
  // Held while a run writes variables of this scope: one for all scopes of a tree, since a run may
  // write an ancestor's.
  std::mutex& write_mutex() { return parent_ ? parent_->write_mutex() : write_mutex_; }
  const std::shared_ptr<Scope>& parent() const { return parent_; }  // nullptr: the tree's root

 private:
  std::shared_ptr<Scope> parent_;
  mutable std::mutex mutex_;
  std::mutex write_mutex_;
  uint64_t version_ = 0;
  struct Variable {
    Value value;
    uint64_t version = 0;  // that of the scope at the last write of this variable
  };
  // Permits look-ups without a copy of the name.
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  Variable& Make(const std::string& name);  // with mutex_ held
  std::unordered_map<std::string, std::unique_ptr<Variable>, NameHash, std::equal_to<>> vars_;
};

}  // namespace heddle
