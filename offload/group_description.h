// A group in the words of heddle/heddle_engine.h.
//
// Ownership: holds the group's program and parameters, and all that the structures point to.
// Threads: any may read.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/heddle_engine.h"
#include "offload/group.h"
#include "offload/onnx/write.h"

namespace heddle::offload {

class GroupDescription {
 public:
  // Operators first .. last - 1 of the group.
  struct Range {
    size_t first, last;
  };
  enum class Onnx {
    kNone,
    kWritten,
    kOutlined,  // its outline is known, and WriteOnnx writes it
  };
  explicit GroupDescription(const Group& group, Onnx onnx = Onnx::kNone);
  // Some of its operators, whose operands are then inputs, and whose results outputs. `onnx`: a
  // writer of the group's program, for engines that want its words; null: for others.
  GroupDescription(const Group& group, Range part, OnnxWriter* onnx);
  GroupDescription(const GroupDescription&) = delete;
  GroupDescription& operator=(const GroupDescription&) = delete;

  const heddle_engine_group& get() const { return group_; }
  void set_symbol(std::string symbol);
  // Writes the ONNX model that has an outline. Nothing that get() points to moves.
  void WriteOnnx();
  // The engine writes it itself, where it needs it, unless `is_same` then says no: that the group
  // is what it was.
  void WriteOnnxLater(std::function<bool()> is_same);
  // What tells its ONNX model from those of groups with equal parameters; empty: none is wanted, or
  // there are no words for it.
  const std::string& onnx_outline() const { return onnx_outline_; }
  // Why the group is not given as ONNX, where that was wanted; OK: it is, or was not.
  const Status& onnx_status() const { return onnx_status_; }

 private:
  using Pointers = std::vector<const heddle_engine_slot*>;

  void AddValues();
  void Finish(const std::vector<ir::VarId>& inputs, const std::vector<ir::VarId>& outputs);
  static const void* Later(void* description, size_t* bytes);
  void SetTypes(const OnnxWriter& onnx);
  void SetOnnx(Result<std::string> written);
  void AddOperator(const ir::Op& op);
  const heddle_engine_slot* const* AddSlots(const std::vector<SlotDef>& defs,
                                            const std::vector<std::vector<ir::VarId>>& slots,
                                            size_t* count);
  void AddAttributes(const ir::Op& op, heddle_engine_operator* to);
  const std::vector<int32_t>& Indices(const std::vector<ir::VarId>& vars);

  std::string symbol_;
  const std::shared_ptr<const ir::Program> program_;
  const std::vector<std::pair<ir::VarId, Tensor>> parameters_;

  // Addresses of what lies in a deque stay.
  std::deque<heddle_engine_value> values_;
  std::deque<std::vector<int64_t>> integers_;
  std::deque<std::vector<int32_t>> indices_;
  std::deque<std::vector<const char*>> texts_;
  std::deque<heddle_engine_slot> slots_;
  std::deque<Pointers> slot_lists_;
  std::deque<heddle_engine_attribute> attributes_;
  std::deque<std::vector<const heddle_engine_attribute*>> attribute_lists_;
  std::deque<heddle_engine_operator> operators_;
  std::vector<const heddle_engine_value*> value_list_;
  std::vector<const heddle_engine_operator*> operator_list_;
  std::unique_ptr<OnnxWriter> writer_;  // of what is outlined and not written
  std::function<bool()> is_same_;
  std::string onnx_, onnx_outline_;
  Status onnx_status_;
  heddle_engine_group group_ = {};
};

}  // namespace heddle::offload
