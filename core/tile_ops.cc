#include "core/tile_ops.h"

#include <iterator>
#include <mutex>
#include <variant>

#include "core/error.h"
#include "core/kernel_context.h"
#include "core/tables/static_name_table.h"

namespace heddle {

#define HEDDLE_DECLARE_TILE(name, file) TileOp TileOf_##name();
#include "kernels/all_tiles.inc"
#undef HEDDLE_DECLARE_TILE

namespace {

#define HEDDLE_DECLARE_TILE(name, file) #name "\0"
constexpr char kNames[] =
#include "kernels/all_tiles.inc"
    ;
#undef HEDDLE_DECLARE_TILE
#define HEDDLE_DECLARE_TILE(name, file) &TileOf_##name,
constexpr TileOp (*kTiles[])() = {
#include "kernels/all_tiles.inc"
};
#undef HEDDLE_DECLARE_TILE

constexpr StaticNameTable<std::size(kTiles), sizeof(kNames)> kTable(kNames);
static_assert(kTable.unique());

// Made at the first request, like definitions of operators.
struct Made {
  std::once_flag once;
  TileOp tile;
};

}  // namespace

const TileOp* FindTileOp(std::string_view op) {
  static constinit Made made[kTable.size()];
  const size_t at = kTable.Find(op);
  if (at == kTable.kNone) return nullptr;
  std::call_once(made[at].once, [at] { made[at].tile = kTiles[at](); });
  return &made[at].tile;
}

Status MakeTileStep(const OpDef& def, const std::vector<AttrValue>& attrs, DType dtype,
                    TileStep* step) {
  const TileOp* tile = FindTileOp(def.name());
  if (tile == nullptr || tile->make(dtype) == nullptr)
    return Unimplemented("operator ", def.name(), " is no step of a fused loop for ", Name(dtype));
  BoundOp op;  // without operands
  op.def = &def;
  op.attrs = attrs.data();
  for (size_t i = 0; i <= def.inputs().size(); ++i) op.in_begin.push_back(0);
  for (size_t i = 0; i <= def.outputs().size(); ++i) op.out_begin.push_back(0);
  Services services;
  return tile->make(dtype)(KernelContext(op, nullptr, services, nullptr), step);
}

bool PackNumbers(const OpDef& def, const std::vector<AttrValue>& attrs, Floats* values) {
  for (size_t i = 0; i < attrs.size(); ++i) {
    if (const auto* b = std::get_if<bool>(&attrs[i]))
      values->push_back(*b ? 1 : 0);
    else if (const auto* n = std::get_if<int64_t>(&attrs[i]))
      values->push_back(static_cast<double>(*n));
    else if (const auto* d = std::get_if<double>(&attrs[i]))
      values->push_back(*d);
    else if (attrs[i] != def.attrs()[i].default_value)
      return false;
  }
  return true;
}

bool IsNumber(const AttrValue& value) {
  return std::holds_alternative<bool>(value) || std::holds_alternative<int64_t>(value) ||
         std::holds_alternative<double>(value);
}

std::vector<AttrValue> UnpackNumbers(const OpDef& def, const Floats& values, size_t* at) {
  std::vector<AttrValue> attrs;
  attrs.reserve(def.attrs().size());
  for (const AttrDef& a : def.attrs()) {
    AttrValue v = a.default_value;
    if (IsNumber(v)) {
      const double x = values.at((*at)++);
      if (std::holds_alternative<bool>(v))
        v = x != 0;
      else if (std::holds_alternative<int64_t>(v))
        v = static_cast<int64_t>(x);
      else
        v = x;
    }
    attrs.push_back(std::move(v));
  }
  return attrs;
}

}  // namespace heddle
