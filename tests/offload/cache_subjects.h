// Random programs for tests of the cache, and the same programs with other names.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "heddle/engine.h"
#include "proto/framework.pb.h"
#include "tests/support/mixed_program.h"
#include "tests/support/net_program.h"
#include "tests/support/random_program.h"

namespace heddle::testing {

// Without answers.
inline std::vector<EngineCacheEntry> ModulesOf(const EngineCacheContents& contents) {
  std::vector<EngineCacheEntry> modules;
  for (const EngineCacheEntry& entry : contents.entries)
    if (!entry.answers) modules.push_back(entry);
  return modules;
}

struct CacheSubject {
  std::string bytes;
  std::vector<heddle::Feed> feeds;
  std::function<std::shared_ptr<Scope>()> scope;

  Result<Model> Load() const {
    HEDDLE_ASSIGN_OR_RETURN(Program program, Program::Parse(bytes));
    return Model{std::move(program), scope()};
  }
};

// A network, variables that are written again and again, or a mixture, by turns.
inline CacheSubject SubjectOf(uint32_t seed) {
  if (seed % 3 == 0) {
    auto net = std::make_shared<NetProgram>(seed, 25);
    return {net->Bytes(), net->feeds(), [net] { return net->NewScope(); }};
  }
  if (seed % 3 == 1) {
    auto random = std::make_shared<RandomProgram>(seed, RandomProgram::Options());
    return {random->bytes(), random->Feeds(), [random] { return random->NewScope(); }};
  }
  auto mixed = std::make_shared<MixedProgram>(seed);
  return {mixed->bytes(), mixed->Feeds(), [mixed] { return mixed->NewScope(); }};
}

// Every variable gets another name; their order by name changes, too.
class Renaming {
 public:
  explicit Renaming(uint32_t seed) : random_(seed) {}

  CacheSubject Of(const CacheSubject& subject) {
    proto::ProgramDesc desc;
    if (!desc.ParseFromString(subject.bytes)) std::abort();
    std::set<std::string> declared;
    for (const auto& block : desc.blocks())
      for (const auto& var : block.vars()) declared.insert(var.name());
    for (auto& block : *desc.mutable_blocks()) {
      for (auto& var : *block.mutable_vars()) var.set_name(Name(var.name()));
      for (auto& op : *block.mutable_ops()) {
        for (auto* slots : {op.mutable_inputs(), op.mutable_outputs()})
          for (auto& slot : *slots)
            for (std::string& name : *slot.mutable_arguments()) name = Name(name);
        for (auto& attr : *op.mutable_attrs()) {
          if (attr.has_var_name()) attr.set_var_name(Name(attr.var_name()));
          for (std::string& name : *attr.mutable_vars_name()) name = Name(name);
          // What loops carry is told by texts.
          if (attr.has_s() && declared.contains(attr.s())) attr.set_s(Name(attr.s()));
          for (std::string& text : *attr.mutable_strings())
            if (declared.contains(text)) text = Name(text);
        }
      }
    }
    CacheSubject renamed{desc.SerializeAsString(), subject.feeds, {}};
    for (heddle::Feed& feed : renamed.feeds) feed.name = Name(feed.name);
    std::vector<std::pair<std::string, std::string>> parameters;
    const auto program = Program::Parse(subject.bytes);
    for (const TensorInfo& info : program->persistables())
      parameters.emplace_back(info.name, Name(info.name));
    renamed.scope = [parameters, original = subject.scope] {
      const auto from = original();
      auto to = std::make_shared<Scope>();
      for (const auto& [was, is] : parameters)
        if (const Value* value = from->Find(was)) to->Set(is, *value);
      return to;
    };
    return renamed;
  }

 private:
  std::string Name(const std::string& old) {
    if (old.empty() || old == "feed" || old == "fetch" || old.starts_with("@")) return old;
    std::string& name = names_[old];
    if (name.empty()) name = "r" + std::to_string(random_()) + "_" + std::to_string(names_.size());
    return name;
  }

  std::mt19937 random_;
  std::map<std::string, std::string> names_;
};

}  // namespace heddle::testing
