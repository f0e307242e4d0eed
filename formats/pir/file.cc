#include "formats/pir/file.h"

#include <array>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "heddle/bounds.h"

namespace heddle::pir {
namespace {

// Dialects by number: "1.relu" in a file means "pd_op.relu".
constexpr std::array<std::string_view, 5> kDialects = {"builtin", "pd_op", "cf", "custom_op",
                                                       "dist"};

std::string FullName(std::string_view name) {
  const size_t dot = name.find('.');
  size_t dialect = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), dialect);
  if (dot == std::string_view::npos || error != std::errc() || end != name.data() + dot ||
      dialect >= kDialects.size())
    return std::string(name);
  return std::string(kDialects[dialect]) + std::string(name.substr(dot));
}

DType DTypeOf(std::string_view element) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"0.t_bool", DType::kBool}, {"0.t_i8", DType::kI8},     {"0.t_ui8", DType::kU8},
      {"0.t_i16", DType::kI16},   {"0.t_i32", DType::kI32},   {"0.t_i64", DType::kI64},
      {"0.t_f16", DType::kF16},   {"0.t_bf16", DType::kBF16}, {"0.t_f32", DType::kF32},
      {"0.t_f64", DType::kF64},   {"0.t_c64", DType::kC64},   {"0.t_c128", DType::kC128}};
  for (const auto& [name, dtype] : kTypes)
    if (name == element) return dtype;
  return DType::kUnknown;
}

class Reader {
 public:
  explicit Reader(const JsonDocument& document) : document_(document) {}

  Result<File> Run() {
    File file;
    const Json root = document_.root();
    std::string_view magic;
    if (!root["base_code"]["magic"].Get(&magic) || magic != "pir")
      return DataLoss("no PIR program: base_code.magic is not \"pir\"");
    if (!root["base_code"]["version"].Get(&file.version) || file.version < 0)
      return DataLoss("no PIR program: base_code.version is no number");
    if (file.version > kNewestVersion)
      return Unimplemented("is of version ", file.version, " of the PIR format; versions up to ",
                           kNewestVersion, " are read");
    const Json regions = root["program"]["regions"];
    if (regions.size() != 1) return DataLoss("'program' must have one region");
    HEDDLE_RETURN_IF_ERROR(ReadRegion(*regions.begin(), &file.main, 0));
    file.blocks = blocks_;
    return file;
  }

 private:
  Status ReadRegion(Json region, Block* block, int depth) {
    if (depth > kMostNestedBlocks)
      return DataLoss("more than ", kMostNestedBlocks, " levels of blocks in blocks");
    const Json blocks = region["blocks"];
    if (blocks.size() != 1) return DataLoss("a region of ", blocks.size(), " blocks; each has one");
    return ReadBlock(*blocks.begin(), block, depth);
  }

  Status ReadBlock(Json json, Block* block, int depth) {
    const int number = block->number = blocks_++;
    for (const Json argument : json["args"]) {
      Definition& d = block->arguments.emplace_back();
      if (!argument["#"].Get(&d.id)) return DataLoss("block ", number, ": an argument has no id");
      HEDDLE_RETURN_IF_ERROR(Define(d.id, number, nullptr));
      ReadType(argument["TT"], &d.type, 0);
    }
    const Json ops = json["ops"];
    if (!ops.is_array()) return DataLoss("block ", number, " has no list 'ops'");
    block->operations.reserve(ops.size());
    for (const Json op : ops) {
      Operation& o = block->operations.emplace_back();
      o.index = static_cast<int>(block->operations.size() - 1);
      HEDDLE_RETURN_IF_ERROR(ReadOperation(op, number, depth, &o));
    }
    return Status::Ok();
  }

  Status ReadOperation(Json json, int block, int depth, Operation* op) {
    std::string_view name;
    if (!json["#"].Get(&name))
      return DataLoss("operator ", op->index, " of block ", block, " has no name");
    op->name = FullName(name);
    if (name == "p") return ReadParameter(json, block, op);
    for (const Json attribute : json["A"]) {
      Attribute& a = op->attributes.emplace_back();
      a.value = attribute["AT"];
      if (!attribute["N"].Get(&a.name) || !a.value)
        return DataLoss(Where(block, *op), ": an attribute without name or value");
    }
    for (const Json operand : json["I"]) {
      ValueId& id = op->operands.emplace_back();
      if (!operand["%"].Get(&id) && !operand["#"].Get(&id))
        return DataLoss(Where(block, *op), ": operand ", op->operands.size() - 1, " has no id");
    }
    for (const Json result : json["O"]) HEDDLE_RETURN_IF_ERROR(ReadResult(result, block, op));
    for (const Json attribute : json["OA"]) {
      std::string_view which;
      if (attribute["N"].Get(&which) && which == "persistable")
        for (const Json flag : attribute["AT"]["D"]) {
          flag["D"].Get(&op->persistable);
          break;
        }
    }
    const Json regions = json["regions"];
    op->regions.resize(regions.size());
    size_t i = 0;
    for (const Json region : regions)
      HEDDLE_RETURN_IF_ERROR(ReadRegion(region, &op->regions[i++], depth + 1));
    return Status::Ok();
  }

  Status ReadResult(Json json, int block, Operation* op) {
    Definition& d = op->results.emplace_back();
    if (!json["%"].Get(&d.id) && !json["#"].Get(&d.id))
      return DataLoss(Where(block, *op), ": result ", op->results.size() - 1, " has no id");
    ReadType(json["TT"], &d.type, 0);
    return Define(d.id, block, op);
  }

  Status ReadParameter(Json json, int block, Operation* op) {
    int i = 0;
    for (const Json a : json["A"])
      if (i++ == 3) a.Get(&op->parameter);
    if (op->parameter.empty()) return DataLoss(Where(block, *op), ": a parameter without a name");
    op->persistable = true;  // in files without "OA" all parameters are persistable
    i = 0;
    for (const Json flag : json["OA"])
      if (i++ == 0) flag.Get(&op->persistable);
    return ReadResult(json["O"], block, op);
  }

  // Checks that a value is defined once. Its number cannot be larger than the document has values.
  Status Define(ValueId id, int block, const Operation* op) {
    const auto where = [&] {
      return op != nullptr ? Where(block, *op) : "block " + std::to_string(block);
    };
    const auto limit = static_cast<int64_t>(document_.size());
    if (id == 0 || id > limit || id < -limit)
      return DataLoss(where(), ": defines a value %", id, ", which is no value's number");
    std::vector<bool>& known = id > 0 ? results_ : arguments_;
    const auto at = static_cast<size_t>(id > 0 ? id : -id);
    if (known.size() <= at) known.resize(at + 1);
    if (known[at]) return DataLoss(where(), ": defines value %", id, " again");
    known[at] = true;
    return Status::Ok();
  }

  // Reads a type. An unknown one is kOther, which is reported where the type matters.
  static void ReadType(Json json, Type* type, int depth) {
    std::string_view name;
    type->kind = Type::Kind::kOther;
    if (!json["#"].Get(&name) || name == "NULL") {
      if (!name.empty()) type->kind = Type::Kind::kNone;
      return;
    }
    const Json data = json["D"];
    if (name == "0.t_vec") {
      type->kind = Type::Kind::kList;
      for (const Json element : data)
        if (depth < 4) ReadType(element, &type->elements.emplace_back(), depth + 1);
      return;
    }
    if (name == "2.t_stack" || name == "2.t_inlet" || name == "2.t_outlet")
      type->kind = Type::Kind::kStack;
    else if (name == "0.t_dtensor")
      type->kind = Type::Kind::kTensor;
    else if (name == "1.t_dense_tensor_array")
      type->kind = Type::Kind::kArray;
    else if (name == "1.t_selected_rows")
      type->kind = Type::Kind::kRows;
    else if (name == "1.t_sparse_coo_tensor" || name == "1.t_sparse_csr_tensor")
      type->kind = Type::Kind::kSparse;
    int i = 0;
    for (const Json part : data) {
      std::string_view element;
      if (i == 0 && part["#"].Get(&element)) type->dtype = DTypeOf(element);
      if (i == 1 && part.is_array()) {
        type->ranked = true;
        for (const Json d : part) type->ranked &= d.Get(&type->dims.emplace_back(-1));
      }
      ++i;
    }
  }

  const JsonDocument& document_;
  int blocks_ = 0;
  std::vector<bool> results_, arguments_;  // defined values, by number
};

}  // namespace

const Attribute* Operation::Find(std::string_view attribute) const {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

std::string Where(int block, const Operation& op) {
  return StrCat("block ", block, ", op ", op.index, " (", op.name, ")");
}

Result<File> ReadFile(const JsonDocument& document) { return Reader(document).Run(); }

}  // namespace heddle::pir
