#include "heddle/scope.h"

#include <algorithm>

namespace heddle {

Value* Scope::Find(std::string_view name) const {
  {
    std::lock_guard lock(mutex_);
    if (auto it = vars_.find(std::string(name)); it != vars_.end()) return it->second.get();
  }
  return parent_ ? parent_->Find(name) : nullptr;
}

Value* Scope::Ensure(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto& v = vars_[name];
  if (!v) v = std::make_unique<Value>();
  return v.get();
}

void Scope::Set(const std::string& name, Value value) {
  std::lock_guard lock(mutex_);
  auto& v = vars_[name];
  if (!v) v = std::make_unique<Value>();
  *v = std::move(value);
  ++version_;
}

void Scope::Erase(std::string_view name) {
  std::lock_guard lock(mutex_);
  vars_.erase(std::string(name));
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
  std::lock_guard lock(mutex_);
  return version_ + (parent_ ? parent_->version() : 0);
}

}  // namespace heddle
