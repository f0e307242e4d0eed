#include "formats/lowering/unsigned_use.h"

namespace heddle::formats {

bool UnsignedForm::IsUint64(int type) const {
  const ElementType* element = maker_.graph().types().Find(type);
  return element != nullptr && element->name == "uint64";
}

void UnsignedForm::Set(UnsignedUse use, int type) {
  use_ = use;
  type_ = type;
}

int UnsignedForm::Operand(int v) {
  if (use_ != UnsignedUse::kOrders || !IsUint64(maker_.type(v))) return v;
  for (const auto& [operand, turned] : turned_)
    if (operand == v) return turned;
  const int turned = TurnHighestBit(maker_, v);
  turned_.emplace_back(v, turned);
  return turned;
}

int UnsignedForm::Result(int v, bool is_position, bool of_nothing) {
  const bool orders = use_ == UnsignedUse::kOrders;
  if (!ChangesResults()) return v;
  GraphLowering& graph = maker_.graph();
  const ElementType& element = *graph.types().Find(type_);
  if (maker_.dtype(v) != element.storage) return v;
  for (const auto& [operand, turned] : turned_)
    if (turned == v) return operand;
  if (orders && is_position) return v;
  int made = v;
  if (IsUint64(type_)) {
    if (orders) made = TurnHighestBit(maker_, v);
  } else if (!orders || of_nothing) {
    made = CutToBits(maker_, v, element.bits);
  }
  graph.SetType(made, type_);
  return made;
}

}  // namespace heddle::formats
