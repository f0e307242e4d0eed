// Lowers a PIR program to heddle's operators: values become variables, lists are expanded,
// constants become attributes where heddle's operator has them, and if and while become operators
// with sub-blocks.
//
// A value is a variable of its own, with two exceptions: the result of an in-place operator is its
// operand's variable, and a value that a loop carries is one variable before, in and after the
// loop.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/programs/program_builder.h"
#include "formats/lowering/graph_lowering.h"
#include "formats/pir/file.h"
#include "formats/pir/numbers.h"
#include "formats/pir/op_table.h"
#include "formats/pir/uses.h"

namespace heddle::pir {

using formats::Draft;
using formats::DraftBlock;
using formats::DraftOp;
using formats::DraftVar;
using formats::kNoDraft;

// Restores products that Paddle's translator took apart: reshapes around a matmul become one mul
// where they compute the same.
void RestoreProducts(Draft* draft);

class Lowering : public formats::GraphLoweringOf<formats::ValueFacts> {
 public:
  // Errors are reported to `builder`. Both arguments must outlive this.
  Lowering(const File& file, ir::ProgramBuilder* builder);

  // Lowers the program. kUnimplemented: operators that heddle lacks, all listed with their number
  // and where each occurs first.
  Result<Draft> Run();

 private:
  // How a value of the file is represented in the draft.
  struct Binding {
    enum class Kind : uint8_t { kNothing, kVar, kList, kStack };
    Kind kind = Kind::kNothing;
    int var = kNoDraft;
    std::vector<int> list;
    size_t stack = 0;
    bool missing = false;  // heddle's operator does not compute this output
  };
  // Values that a forward block saves for its gradient: an array per element of the tuple, and a
  // variable that counts the tuples.
  struct Stack {
    int block = 0, depth = kNoDraft;
    std::vector<int> arrays;
  };
  using Handler = void (Lowering::*)(const Operation&);
  using Yields = std::vector<Binding>;

  // --- lower.cc: blocks, values, what all operators need
  void LowerOperations(const Block& block);
  void Lower(const Operation& op);
  template <typename... Parts>
  void Problem(const Operation& op, const Parts&... parts) {
    builder_.Problem(Where(block_, op), ": ", parts...);
  }
  bool HasOperands(const Operation& op, size_t operands, size_t results);
  // The binding of operand `i`. Null: the file has none there, or an unreadable one, which was
  // reported.
  const Binding* Operand(const Operation& op, size_t i);
  // The variable of operand `i`. kNoDraft, and an error is reported: there is none, or it is not a
  // single one.
  int OperandVar(const Operation& op, size_t i);
  int NewVar(const Type& type, ValueId id);
  int NewOwn(std::string_view stem, DType dtype);
  Binding NewBinding(const Definition& result);
  void Bind(ValueId id, Binding binding);
  void BindVar(ValueId id, int var);
  DraftOp& Emit(std::string_view type, const Operation& op);
  // What the file says that the operator is for: ir::OpRole::bits.
  static int64_t RoleOf(const Operation& op);
  static void In(DraftOp* to, std::string_view slot, std::vector<int> vars);
  static void Out(DraftOp* to, std::string_view slot, std::vector<int> vars);
  void Copy(int from, int to, const Operation& op);
  int CopyOf(int var, const Operation& op);

  // --- lower_mapped.cc: operators in the table
  void LowerMapped(const Operation& op, const std::vector<Mapping>& mappings);
  std::string Misfit(const Operation& op, const Mapping& m);
  void MapOperand(const Operation& op, const Mapping& m, size_t i, DraftOp* to);
  void MapAttributes(const Operation& op, const Mapping& m, DraftOp* to);
  void MapResults(const Operation& op, const Mapping& m, DraftOp* to);
  bool IsOneTensor(const Binding& binding) const;
  const Numbers* ConstantOf(const Binding& binding, Numbers* joined) const;

  // --- lower_structure.cc: inputs, outputs, lists, constants
  static Handler HandlerOf(std::string_view name);
  void LowerParameter(const Operation& op);
  void LowerData(const Operation& op);
  void LowerFetch(const Operation& op);
  void LowerStore(const Operation& op);
  void LowerCombine(const Operation& op);
  void LowerSplit(const Operation& op);
  void LowerSlice(const Operation& op);
  void LowerFull(const Operation& op);
  void LowerIntArray(const Operation& op);
  void LowerAssignValue(const Operation& op);
  void LowerCreateArray(const Operation& op);
  void NameVar(int var, const std::string& name, bool persistable);
  bool MayBeNamed(const Operation& op, int var);

  // --- lower_composite.cc: operators that become several
  void LowerArange(const Operation& op);
  void LowerShape64(const Operation& op);
  void LowerMedian(const Operation& op);
  void LowerLpPool(const Operation& op);
  int Step(const Operation& op, std::string_view type, int x, DType dtype,
           DraftOp::Slots<AttrValue> attributes);

  // --- lower_control.cc: if, while, select, stacks
  void LowerIf(const Operation& op);
  void LowerWhile(const Operation& op);
  void LowerYield(const Operation& op);
  void LowerSelectInput(const Operation& op);
  void LowerSelectOutput(const Operation& op);
  void LowerStackCreate(const Operation& op);
  void LowerPush(const Operation& op);
  void LowerPop(const Operation& op);
  void LowerHasElements(const Operation& op);
  Yields LowerRegion(const Block& block);
  bool IsFake(const Operation& op) const;
  int Deliver(const Operation& op, const Block& from, size_t i, Yields* yields);
  bool IsConditionInPlace(const Operation& op) const;
  int CarryIn(const Operation& op, size_t i);
  void CarryOn(const Operation& op, const Block& body, const std::vector<int>& carried,
               const Yields& next);
  void Run(const Operation& op, std::string_view condition_slot, int condition, const Block& body);

  const File& file_;
  OpTable table_;
  const Uses uses_;
  std::unordered_map<ValueId, Binding> values_;  // of the blocks in scope
  std::unordered_map<int, Numbers> constants_;   // by variable
  std::unordered_map<std::string, int> named_;   // variables by the file's names
  std::vector<Stack> stacks_;
  std::vector<Yields> yields_;  // of the open regions
};

}  // namespace heddle::pir
