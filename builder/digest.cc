#include "builder/digest.h"

#include <xxhash.h>

#include <string_view>
#include <type_traits>
#include <vector>

namespace heddle::builder {
namespace {

class Digest {
 public:
  template <typename T>
  void Add(const T& v) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      hash_ = XXH64(&v, sizeof(v), hash_);
    } else if constexpr (std::is_same_v<T, BlockRef>) {
      Add(v.id);
    } else {
      Add(v.size());  // so that the boundary between two of them counts
      if constexpr (std::is_same_v<T, std::string>) {
        hash_ = XXH64(v.data(), v.size(), hash_);
      } else {
        for (const auto& item : v) Add(item);
      }
    }
  }
  void AddOp(const ir::Op& op) {
    Add(op.def->name());
    Add(op.inputs);
    Add(op.outputs);
    Add(op.var_attrs);
    for (const AttrValue& a : op.attrs) {
      Add(a.index());
      std::visit([this](const auto& v) { Add(v); }, a);
    }
    if (!op.has_control_edges()) return;
    Add(op.hints->marks);
    Add(op.hints->after);
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0;
};

}  // namespace

uint64_t DigestOf(const ir::Program& program) {
  Digest digest;
  for (const ir::Var& var : program.vars) {
    digest.Add(var.name);
    digest.Add(var.block);
    digest.Add(var.kind);
    digest.Add(var.dtype);
    digest.Add(var.persistable);
    digest.Add(var.shape.rank());
    for (int64_t d : var.shape) digest.Add(d);
  }
  for (const ir::Block& block : program.blocks) {
    digest.Add(block.parent);
    for (const ir::Op& op : block.ops) digest.AddOp(op);
  }
  for (const auto* ports : {&program.feeds, &program.fetches}) {
    digest.Add(ports->size());
    for (const ir::Port& port : *ports) digest.Add(port.var);
  }
  return digest.value();
}

}  // namespace heddle::builder
