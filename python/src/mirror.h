// Mirror: a heddle scope over variables whose memory belongs to somebody else, such as a scope of
// Paddle's. heddle reads and steps the variables where they lie; both sides see the same numbers.
//
// Ownership: a Mirror keeps its scope and the owners of adopted memory alive; a MirrorView keeps
// its Mirror. Threads: with the GIL only, and not during a run on the scope.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "heddle/scope.h"

namespace heddle::python {

class Mirror {
 public:
  explicit Mirror(std::shared_ptr<Scope> scope) : scope_(std::move(scope)) {}
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  const std::shared_ptr<Scope>& scope() const { return scope_; }

 private:
  friend class MirrorView;
  struct Entry {
    std::string name;
    const void* shared = nullptr;  // where the other side's memory is; null: it has none yet
    Shape shape;                   // and what the other side sees there
    DType dtype = DType::kUnknown;
    // Of the contents when the scope's version of the variable was `version`.
    uint64_t fingerprint = 0, version = 0;
    bool has_fingerprint = false;
  };
  Entry& EntryOf(const std::string& name);
  // Looked up anew: whoever has the scope may erase the variable. nullptr: it is not there.
  const Value* ValueOf(const Entry& entry) const { return scope_->StampOf(entry.name).value; }

  std::shared_ptr<Scope> scope_;
  std::unordered_map<std::string, std::unique_ptr<Entry>> entries_;
};

// The variables that one program uses.
class MirrorView {
 public:
  MirrorView(std::shared_ptr<Mirror> mirror, const std::vector<std::string>& names);

  // The variable's memory is from now on that at `address`, which `owner` keeps.
  void Adopt(size_t index, uintptr_t address, const std::string& dtype,
             const std::vector<int64_t>& shape, nanobind::object owner);
  // Before a run: notices contents that the other side has overwritten in place. What heddle
  // derived from them (packed or folded weights) is then made anew. A sample of each variable is
  // compared, so that single changed elements of a large one may go unnoticed.
  void Before();
  // After a run: the variables whose value is now elsewhere than in the shared memory, or another
  // array there.
  std::vector<size_t> After();
  // A variable's value, which shares its memory; none where the scope has it no more. These and
  // Adopt throw Python's IndexError for an index past the end.
  Value value(size_t index) const;
  const std::string& name(size_t index) const { return EntryAt(index).name; }
  size_t size() const { return uses_.size(); }

 private:
  struct Use {
    Mirror::Entry* entry = nullptr;
    bool written = false;  // by this program
    uint64_t version = 0;  // of the variable before the run
  };
  Mirror::Entry& EntryAt(size_t index) const;

  std::shared_ptr<Mirror> mirror_;
  std::vector<Use> uses_;
  bool known_ = false;  // `written` is
};

void BindMirror(nanobind::module_& module);

}  // namespace heddle::python
