#include "core/own_ops/own_registry.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/own_ops/own_op_def.h"
#include "core/thread_annotations.h"

namespace heddle {
namespace {

struct OwnOps {
  Mutex mutex;
  std::map<std::string, std::unique_ptr<const OwnOpDef>, std::less<>> by_name
      HEDDLE_GUARDED_BY(mutex);
  std::map<std::string, const OwnOpDef*, std::less<>> by_file_name HEDDLE_GUARDED_BY(mutex);
  KernelCreator creator HEDDLE_GUARDED_BY(mutex);
  // Most programs have none, and look for many that do not exist.
  std::atomic<bool> any{false};
};
OwnOps& TheOwnOps() {
  static auto* const ops = new OwnOps;
  return *ops;
}

Status CheckNames(const OwnOperator& op) {
  std::set<std::string> ins, outs, attributes;
  const auto add = [&](std::set<std::string>& names, const std::string& name, const char* what) {
    if (name.empty()) return InvalidArgument("operator '", op.name, "': ", what, " has no name");
    if (names.insert(name).second) return Status::Ok();
    return InvalidArgument("operator '", op.name, "': there are two ", what, "s '", name, "'");
  };
  for (const OwnInput& in : op.inputs) {
    if (!in.same_as.empty() && !ins.contains(in.same_as))
      return InvalidArgument("operator '", op.name, "': input '", in.name, "' is like '",
                             in.same_as, "', which is no input before it");
    if (std::ranges::find(in.dtypes, DType::kUnknown) != in.dtypes.end())
      return InvalidArgument("operator '", op.name, "': input '", in.name, "' has no such dtype");
    HEDDLE_RETURN_IF_ERROR(add(ins, in.name, "input"));
  }
  for (const OwnOutput& out : op.outputs) HEDDLE_RETURN_IF_ERROR(add(outs, out.name, "output"));
  for (const OwnAttribute& a : op.attributes)
    HEDDLE_RETURN_IF_ERROR(add(attributes, a.name, "attribute"));
  return Status::Ok();
}

Status Check(const OwnOperator& op) {
  if (op.name.empty()) return InvalidArgument("an operator must have a name");
  HEDDLE_RETURN_IF_ERROR(CheckNames(op));
  if (op.outputs.empty() && !op.side_effect)
    return InvalidArgument("operator '", op.name, "' has neither an output nor a side effect");
  if (!op.shapes && op.like_first_input && (op.inputs.empty() || op.inputs[0].optional))
    return InvalidArgument("operator '", op.name,
                           "' has no shape function, and no first input that its outputs could be "
                           "like; without both, set like_first_input to false");
  if (FindOp(op.name) != nullptr)
    return InvalidArgument("there is an operator '", op.name, "' already");
  return Status::Ok();
}

}  // namespace

Status AddOperator(OwnOperator op) {
  HEDDLE_RETURN_IF_ERROR(Check(op));
  const std::string name = op.name;
  const std::vector<std::string> file_names = op.names_in_files;
  auto def = std::make_unique<const OwnOpDef>(std::make_shared<const OwnOperator>(std::move(op)));
  OwnOps& ops = TheOwnOps();
  MutexLock lock(ops.mutex);
  if (ops.by_name.contains(name))
    return InvalidArgument("there is an operator '", name, "' already");
  for (const std::string& file_name : file_names)
    if (const auto found = ops.by_file_name.find(file_name); found != ops.by_file_name.end())
      return InvalidArgument("operator '", name, "': files' '", file_name, "' is operator '",
                             found->second->name(), "' already");
  for (const std::string& file_name : file_names) ops.by_file_name.emplace(file_name, def.get());
  ops.by_name.emplace(name, std::move(def));
  ops.any.store(true, std::memory_order_release);
  return Status::Ok();
}

void SetKernelCreator(KernelCreator creator) {
  OwnOps& ops = TheOwnOps();
  MutexLock lock(ops.mutex);
  ops.creator = std::move(creator);
}

KernelCreator DefaultKernelCreator() {
  OwnOps& ops = TheOwnOps();
  MutexLock lock(ops.mutex);
  return ops.creator;
}

const OpDef* FindOwnOp(std::string_view name) {
  OwnOps& ops = TheOwnOps();
  if (!ops.any.load(std::memory_order_acquire)) return nullptr;
  MutexLock lock(ops.mutex);
  const auto found = ops.by_name.find(name);
  return found == ops.by_name.end() ? nullptr : found->second.get();
}

const OpDef* FindOwnOpOfFile(std::string_view name) {
  OwnOps& ops = TheOwnOps();
  if (!ops.any.load(std::memory_order_acquire)) return nullptr;
  {
    MutexLock lock(ops.mutex);
    const auto found = ops.by_file_name.find(name);
    if (found != ops.by_file_name.end()) return found->second;
  }
  return FindOwnOp(name);
}

std::vector<const OpDef*> AllOwnOps() {
  OwnOps& ops = TheOwnOps();
  MutexLock lock(ops.mutex);
  std::vector<const OpDef*> all;
  for (const auto& [name, def] : ops.by_name) all.push_back(def.get());
  return all;
}

}  // namespace heddle
