#include "heddle/scope.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/memory/lazy_buffer.h"
#include "heddle/read_only.h"

namespace heddle {
Value* Scope::Find(std::string_view name) const {
  Value* const value = StampOf(name).value;
  const bool there = value == nullptr || !value->is_tensor() || MakeResident(value->tensor()).ok();
  return there ? value : nullptr;
}

Scope::Stamp Scope::StampOf(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
    std::lock_guard lock(scope->mutex_);
    if (auto it = scope->vars_.find(name); it != scope->vars_.end())
      return {&it->second->value, it->second->version};
  }
  return {};
}

// A new variable has a newer version than an erased one of its name, even at the same address.
Scope::Variable& Scope::Make(const std::string& name) {
  auto& v = vars_[name];
  if (!v) {
    v = std::make_unique<Variable>();
    v->version = ++version_;
  }
  return *v;
}

Value* Scope::Ensure(const std::string& name) {
  std::lock_guard lock(mutex_);
  return &Make(name).value;
}

void Scope::Set(const std::string& name, Value value) {
  // Read-only memory is copied, since runs write to variables in place.
  if (value.is_tensor() && IsReadOnly(value.tensor())) {
    value = Value(value.tensor().Clone());
    if (!value.initialized()) throw std::bad_alloc();
  }
  Value before;  // destroyed without the mutex, since the owner of borrowed memory may call back
  std::lock_guard lock(mutex_);
  Variable& v = Make(name);
  before = std::exchange(v.value, std::move(value));
  v.version = ++version_;
}

void Scope::MarkWritten(std::string_view name) {
  for (Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
    std::lock_guard lock(scope->mutex_);
    if (auto it = scope->vars_.find(name); it != scope->vars_.end()) {
      it->second->version = ++scope->version_;
      return;
    }
  }
}

void Scope::Erase(std::string_view name) {
  std::unique_ptr<Variable> before;  // as in Set
  std::lock_guard lock(mutex_);
  if (auto it = vars_.find(name); it != vars_.end()) {
    before = std::move(it->second);
    vars_.erase(it);
  }
  ++version_;
}

std::vector<std::string> Scope::Names() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, value] : vars_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t Scope::version() const {
  uint64_t sum = 0;
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
    std::lock_guard lock(scope->mutex_);
    sum += scope->version_;
  }
  return sum;
}

}  // namespace heddle
