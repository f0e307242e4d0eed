#include "formats/paddle/known_attrs.h"

#include <algorithm>
#include <iterator>

#include "core/op_registry.h"
#include "formats/paddle/desc_fields.h"
#include "formats/wire_fields.h"

namespace heddle::paddle {
namespace {

using wire::Field;
using wire::Fields;

class Filter {
 public:
  bool Program(std::string_view bytes, std::string* out) {
    Field f;
    for (Fields fields(bytes); !fields.done();) {
      if (!fields.Next(&f)) return false;
      if (!f.Is(desc::kBlocks)) {
        (f.Is(desc::kOpVersions) ? versions_ : *out).append(f.whole);
        continue;
      }
      block_.clear();
      if (!Block(f.payload)) return false;
      wire::AppendBytesField(desc::kBlocks, block_, out);
    }
    if (versioned_) out->append(versions_);
    return true;
  }

 private:
  bool Block(std::string_view bytes) {
    Field f;
    for (Fields fields(bytes); !fields.done();) {
      if (!fields.Next(&f)) return false;
      if (!f.Is(desc::kOps)) {
        block_.append(f.whole);
        continue;
      }
      op_.clear();
      if (!Op(f.payload)) return false;
      wire::AppendBytesField(desc::kOps, op_, &block_);
    }
    return true;
  }
  bool Op(std::string_view bytes) {
    const OpDef* def = nullptr;  // writers put the type before the attributes
    Field f;
    for (Fields fields(bytes); !fields.done();) {
      if (!fields.Next(&f)) return false;
      if (f.Is(desc::kOpType)) {
        def = f.payload == "feed" || f.payload.starts_with("fetch") ? nullptr : FindOp(f.payload);
        versioned_ = versioned_ || (def != nullptr && def->FindAttr("op_version") >= 0);
      }
      if (def == nullptr || !f.Is(desc::kAttrs) || IsRead(*def, f.payload)) op_.append(f.whole);
    }
    return true;
  }
  static bool IsRead(const OpDef& def, std::string_view attr) {
    std::string_view name;
    bool typed = false, says = false;
    Field f;
    for (Fields fields(attr); !fields.done();) {
      if (!fields.Next(&f)) return true;  // the parser reports the error
      if (f.Is(desc::kAttrName)) name = f.payload;
      typed |= f.number == desc::kAttrType;
      says |= f.Is(desc::kStrings) || (f.IsVarint(desc::kAttrInt) && f.varint != 0);
    }
    // Most operators of a file are forward, and say so.
    if (typed && (name == kRoleAttr || name == kRolePairsAttr)) return says;
    return !typed || name.empty() || def.FindAttr(name) >= 0 || name == kDeviceAttr ||
           std::find(std::begin(kHintAttrs), std::end(kHintAttrs), name) != std::end(kHintAttrs);
  }

  std::string block_, op_, versions_;
  bool versioned_ = false;  // some operator's meaning depends on its version
};

}  // namespace

std::string WithKnownAttrs(std::string_view bytes) {
  std::string out;
  return Filter().Program(bytes, &out) ? out : std::string();
}

}  // namespace heddle::paddle
