// OpMaker: adds operators to a draft, for readers of formats with operators of their own. It
// converts attributes to the declared types, inserts casts where an operator has no kernel for a
// dtype, and infers what can be known of the results before any run.
//
// Ownership: refers to the graph, which must outlive it. Threads: one at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/op_def.h"
#include "formats/lowering/draft.h"
#include "formats/lowering/graph_lowering.h"

namespace heddle::formats {

using Ins = std::vector<std::pair<std::string_view, std::vector<int>>>;
using Outs = Ins;
using Attrs = std::vector<std::pair<std::string_view, AttrValue>>;

class OpMaker {
 public:
  virtual ~OpMaker() = default;
  OpMaker(const OpMaker&) = delete;
  OpMaker& operator=(const OpMaker&) = delete;

  GraphLowering& graph() { return graph_; }

  // --- variables
  DType dtype(int v) const { return v == kNoDraft ? DType::kUnknown : graph_.var(v).dtype; }
  const Shape& shape(int v) const { return graph_.known(v).shape; }
  int rank(int v) const { return v == kNoDraft ? -1 : shape(v).rank(); }  // -1: not known
  // The format's element type; 0: not known.
  int type(int v) const { return v == kNoDraft ? 0 : graph_.known(v).type; }
  // Adds a variable named after `stem`, or after the file's operator.
  int NewVar(DType dtype, std::string_view stem = "");
  DraftVar& draft_var(int v) { return graph_.var(v); }
  void SetShape(int v, const Shape& shape) { graph_.known(v).shape = shape; }
  // The contents of a constant of at most kMostLookedInto elements; null for any other variable.
  const Tensor* Constant(int v);
  std::optional<Ints> ConstantInts(int v);
  std::optional<Floats> ConstantFloats(int v);

  // --- operators
  //
  // Adds an operator with one output and returns its variable. Where the operator has no kernel for
  // the dtype of its inputs, it computes in a wider one, between casts.
  int Make(std::string_view type, Ins ins, Attrs attrs = {}, std::string_view out = "Out");
  // The same with several outputs. Those that share a name form one slot with a list.
  std::vector<int> MakeMany(std::string_view type, Ins ins, Attrs attrs,
                            const std::vector<std::string_view>& outs);
  // Adds an operator without casts or inference, with existing variables as outputs.
  DraftOp& Emit(std::string_view type, Ins ins, Attrs attrs, Outs outs);
  static bool HasOperator(std::string_view type);
  int Cast(int v, DType to);
  int Reshape(int v, Ints shape) {
    return Make("reshape2", {{"X", {v}}}, {{"shape", std::move(shape)}});
  }
  int Unsqueeze(int v, Ints axes) {
    return Make("unsqueeze2", {{"X", {v}}}, {{"axes", std::move(axes)}});
  }
  int Squeeze(int v, Ints axes) {
    return Make("squeeze2", {{"X", {v}}}, {{"axes", std::move(axes)}});
  }
  int Binary(std::string_view type, int x, int y) { return Make(type, {{"X", {x}}, {"Y", {y}}}); }
  int Unary(std::string_view type, int x, Attrs attrs = {}) {
    return Make(type, {{"X", {x}}}, std::move(attrs));
  }
  // x * factor. The bias is -0, which changes no number and keeps the sign of zeros.
  int Times(int x, double factor) {
    return Make("scale", {{"X", {x}}}, {{"scale", factor}, {"bias", -0.0}});
  }
  // The dimensions of `v`, as int64.
  int ShapeOf(int v) { return Cast(Make("shape", {{"Input", {v}}}), DType::kI64); }
  // The axes from `first` on, but for the last `kept`, of a tensor whose rank a run tells.
  int AxesFrom(int v, int64_t first, int64_t kept = 0) {
    const int rank = Make("size", {{"Input", {ShapeOf(v)}}});
    return Make("range", {{"Start", {IntConstant(first)}},
                          {"End", {Binary("elementwise_sub", rank, IntConstant(kept))}},
                          {"Step", {IntConstant(1)}}});
  }

  // --- constants
  //
  // Adds a constant of `type`; 0 means the type whose storage is the tensor's dtype.
  int HoldConstant(Tensor value, int type = 0);
  int StringsConstant(const Strings& values, int type);
  int IntsConstant(const Ints& values, int rank = 1);
  int IntConstant(int64_t value, DType dtype = DType::kI64);
  int FloatConstant(double value, DType dtype);
  int FloatsConstant(const Floats& values, DType dtype);

  // --- texts in lists
  //
  // The numbers of the texts `v` in the program's pool, to be put into a list; and the texts that
  // have these numbers, as a variable of the format's type `type`.
  int NumbersOf(int v);
  int TextsOf(int numbers, int type);
  // The same for whole lists, as the program is fed them and gives them.
  int NumbersOfList(int v);
  int TextsOfList(int numbers);

  // --- blocks
  int block() const { return graph_.block(); }
  int NewBlock() { return graph_.NewBlock(); }
  int SwitchBlock(int block) { return graph_.SwitchBlock(block); }

 protected:
  // `index`, `source` and `stem`: the place, the address for DraftLabel and the name of the file's
  // operator that is being lowered.
  OpMaker(GraphLowering& graph, int index, const void* source, std::string_view stem)
      : graph_(graph), index_(index), source_(source), stem_(stem) {}

  virtual void SayProblem(const std::string& text) = 0;
  // Called when the operator has just made this variable and its dtype and shape are inferred.
  virtual void FollowValues(const DraftOp&, int) {}
  // The storage of one of ONNX's element types, by which some of heddle's operators name types in
  // attributes.
  virtual DType StorageOfOnnxType(int64_t) const { return DType::kUnknown; }

 private:
  void Infer(const DraftOp& op, const OpDef& def);  // op_infer.cc
  int RankOf(const DraftOp& op) const;
  Shape JoinedShape(const DraftOp& op) const;
  Shape ProductShape(const DraftOp& op) const;
  // One choice of stand-ins for operands that are not known before a run.
  struct Trial {
    // Values of `values`; the first kContents differ in content alone.
    static constexpr int kValues = 7, kContents = 3;
    int rank = -1;     // for operands of unknown rank; -1: shapes stay as they are
    int64_t size = 0;  // for open dimensions
    DType dtype = DType::kUnknown;
    int values = 0;        // contents of operands that determine a shape; 0: none
    bool vectors = false;  // operands of unknown rank, except the first, are vectors
    int64_t length() const { return values <= 2 ? 1 : values <= 4 ? rank : 2 * rank; }
    int64_t content() const { return values % 2; }
  };
  std::vector<DType> DTypesMade(const DraftOp& op, const OpDef& def);
  std::vector<DType> Try(const DraftOp& op, const OpDef& def, const Trial& trial);
  DType SaidDType(const DraftOp& op) const;
  AttrValue Converted(AttrValue value, const AttrValue& like, std::string_view name);
  DType WiderKernel(const OpDef& def, const Ins& ins) const;

  std::string FreshStem(std::string_view stem) const;

  GraphLowering& graph_;
  const int index_;
  const void* const source_;
  const std::string_view stem_;
};

}  // namespace heddle::formats
