// NodeMaker: an OpMaker that reads the inputs and attributes of a node of any format.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/lowering/op_maker.h"
#include "formats/lowering/unsigned_use.h"

namespace heddle::formats {

// `Attribute` has a kind (kInt, kFloat, kString or others), IsInts(), and the values i, f, s, ints,
// floats, strings. Getters return `otherwise` for an attribute that is absent or of another kind.
template <typename Attribute>
class NodeMaker : public OpMaker {
 public:
  // Reports an error in the node; reading goes on, and the file is refused with all errors.
  template <typename... Parts>
  void Problem(const Parts&... parts) {
    SayProblem(StrCat(parts...));
  }

  // --- inputs
  virtual size_t inputs() const = 0;
  // The variable of input `i`. Where it is missing: reports an error and returns a variable of
  // unknown type.
  virtual int Required(size_t i) = 0;
  std::vector<int> AllInputs(size_t from = 0) {
    std::vector<int> all;
    for (size_t i = from; i < inputs(); ++i) all.push_back(Required(i));
    return all;
  }

  // Has operands and results of unsigned types converted as `use` requires, from now on. False, and
  // an error is reported: there is no form for operands of this type.
  bool SetUnsigned(std::optional<UnsignedUse> use, int type) {
    if (use)
      unsigned_.Set(*use, type);
    else
      Problem("computes with operands of ", graph().types().Find(type)->name,
              ", which heddle has no form of this operator for");
    return use.has_value();
  }

  // --- attributes
  //
  // Null: the attribute is absent.
  virtual const Attribute* Find(std::string_view name) const = 0;
  int64_t Int(std::string_view name, int64_t otherwise) const {
    const Attribute* a = Find(name);
    return a != nullptr && a->kind == Attribute::kInt ? a->i : otherwise;
  }
  // The default is rounded to float32, as a number in a file is.
  double Float(std::string_view name, double otherwise) const {
    const Attribute* a = Find(name);
    if (a != nullptr && a->kind == Attribute::kInt) return static_cast<double>(a->i);
    return a != nullptr && a->kind == Attribute::kFloat ? double{a->f}
                                                        : double{static_cast<float>(otherwise)};
  }
  std::string Str(std::string_view name, std::string_view otherwise) const {
    const Attribute* a = Find(name);
    return std::string(a != nullptr && a->kind == Attribute::kString ? a->s : otherwise);
  }
  Ints IntList(std::string_view name, Ints otherwise = {}) const {
    const Attribute* a = Find(name);
    if (a != nullptr && a->kind == Attribute::kInt) return {a->i};
    return a != nullptr && a->IsInts() ? a->ints : std::move(otherwise);
  }
  Floats FloatList(std::string_view name) const {
    const Attribute* a = Find(name);
    return a != nullptr ? a->floats : Floats{};
  }

 protected:
  using OpMaker::OpMaker;
  UnsignedForm unsigned_{*this};
};

}  // namespace heddle::formats
