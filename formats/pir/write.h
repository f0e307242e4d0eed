// Writes a program as a PIR file of version 4, which Paddle 3.3 loads and runs.
//
// A variable that is written several times becomes one value per write; if and while get operands
// and results for what their blocks write; attributes that are operands in PIR become constants.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/programs/ir.h"
#include "formats/pir/file.h"
#include "formats/pir/write_table.h"
#include "heddle/status.h"

namespace heddle::pir {

constexpr int64_t kWrittenVersion = 4;

// kUnimplemented: operators that PIR cannot express, all listed with their number, where each
// occurs first, and why.
Result<std::string> WriteProgram(const ir::Program& program);

class Writer {
 public:
  explicit Writer(const ir::Program& program);
  Result<std::string> Run();

 private:
  // The parts of an operator's text.
  struct Text {
    std::string_view name;
    std::vector<std::string> attributes = {};
    std::vector<ValueId> operands = {};
    std::vector<std::string> results = {};  // types of the results
    std::vector<std::string> regions = {};
  };
  struct Unsaid {
    int count = 0;
    std::string first, why;
  };
  using Handler = void (Writer::*)(const ir::Op&);

  // --- write.cc: values, blocks, inputs and outputs, if and while
  bool ReadsParameters() const;
  void AddParameters();
  void AddInputs();
  void AddOutputs();
  void Operators(int block);
  void Add(const ir::Op& op);
  std::vector<ValueId> Emit(Text text);
  ValueId EmitOne(Text text) { return Emit(std::move(text))[0]; }
  void MakePersistable(const std::vector<ValueId>& values);
  void BeginRegion();
  std::string EndRegion(const std::vector<std::string>& arguments);
  ValueId ValueOf(ir::VarId v) const { return v == ir::kNoVar ? 0 : now_[v]; }
  ValueId ValueFor(ir::VarId v);
  void Set(ir::VarId v, ValueId id) {
    if (v != ir::kNoVar) now_[v] = id;
  }
  template <typename... Parts>
  void CannotSay(const ir::Op& op, const Parts&... parts) {
    Note(op, StrCat(parts...));
  }
  void Note(const ir::Op& op, std::string why);
  const ir::Var& VarOf(ir::VarId v) const { return p_.vars[v]; }
  bool Within(int block, int outer) const;
  std::vector<ir::VarId> WrittenOutside(int sub) const;
  bool NeededOutside(ir::VarId v, int sub) const;
  void MakeArrays(int block);
  void AddBranch(const ir::Op& op);
  void AddLoop(const ir::Op& op);

  // --- write_ops.cc: operators in the table
  void AddMapped(const ir::Op& op);
  std::string Misfit(const ir::Op& op, const Phrase& phrase) const;
  ValueId OperandFor(const ir::Op& op, const Phrase::Operand& operand);
  ValueId Constant(const AttrValue& value, bool several);
  std::string ListedValues(const ir::Op& op) const;
  std::string AttributeFor(const ir::Op& op, const Phrase::Attribute& attribute);
  static size_t ListSize(const ir::Op& op, std::string_view slot);
  void AddResults(const ir::Op& op, const Phrase& phrase, Text text);
  ValueId Combined(const std::vector<ir::VarId>& vars);
  ValueId IntArray(const Ints& values);
  ValueId Full(DType dtype, const Shape& shape, double value);

  // --- write_special.cc: operators that become several, or that the table cannot express
  static Handler HandlerOf(std::string_view type);
  void AddElementwise(const ir::Op& op);
  void AddInPaddlesWords(const ir::Op& op);
  void AddMul(const ir::Op& op);
  void AddFill(const ir::Op& op);
  void AddEmbedding(const ir::Op& op);
  void AddSelect(const ir::Op& op);
  void AddArrayWrite(const ir::Op& op);
  void AddAssign(const ir::Op& op);
  void AddRnn(const ir::Op& op);
  void AddShapeGradient(const ir::Op& op);
  void AddTransposeGradient(const ir::Op& op);
  void AddRowsGradient(const ir::Op& op);
  ValueId Reshaped(ValueId x, DType dtype, const Ints& shape);

  const ir::Program& p_;
  std::vector<ir::VarId> feeds_, fetches_;
  std::vector<ValueId> now_;                   // per variable: its present value; 0: none
  std::vector<ValueId> stored_;                // per variable: the value in the scope
  std::vector<std::vector<std::string>> ops_;  // texts of the operators of the open regions
  std::vector<int> regions_;                   // numbers of the open regions
  struct Maker {
    size_t op, result, results;
  };
  std::map<ValueId, Maker> makers_;  // of values made in block 0: the operator
  std::map<std::string, Unsaid> unsaid_;
  ValueId results_ = 0, arguments_ = 0;
  ValueId dropout_state_ = 0;  // of the operator that is being written
  int next_region_ = 0;
  int block_ = 0;     // the block that is being written
  int64_t role_ = 0;  // of the operator that is being written
};

}  // namespace heddle::pir
