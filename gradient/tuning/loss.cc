// A loss on an output of the model.
#include <algorithm>

#include "core/error.h"
#include "core/shapes.h"
#include "gradient/tuning/edit.h"
#include "gradient/tuning/tuning.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::VarId;

std::string DimsText(const TensorInfo& info) {
  return StrCat(Name(info.dtype), " ", info.shape.ToString());
}

class LossMaker {
 public:
  LossMaker(const Program& program, const LossRequest& request)
      : edit_(program), request_(request) {}

  Result<AddedLoss> Run() {
    const std::string& op = request_.op;
    HEDDLE_ASSIGN_OR_RETURN(output_, edit_.Output(request_.output, "--output"));
    if (edit_.ir().Find(0, request_.labels.name) != kNoVar)
      return InvalidArgument("the labels '", request_.labels.name,
                             "' are a new input, and the model has a variable of that name");
    FindActivation();
    HEDDLE_RETURN_IF_ERROR(AddLabels());
    VarId each = kNoVar;
    if (op == "softmax_with_cross_entropy" || op == "cross_entropy") {
      HEDDLE_ASSIGN_OR_RETURN(each, CrossEntropy());
    } else if (op == "mse") {
      HEDDLE_ASSIGN_OR_RETURN(const VarId labels, LabelsLike(output_));
      const VarId gap =
          edit_.Emit("elementwise_sub", {{"X", {Wide(output_)}}, {"Y", {labels}}}, {}, "loss@GAP");
      each = edit_.Emit("square", {{"X", {gap}}}, {}, "loss@EACH");
      how_ = StrCat("the mean squared distance of output '", edit_.NameOf(output_), "' from '",
                    request_.labels.name, "'");
    } else {
      HEDDLE_ASSIGN_OR_RETURN(each, BinaryCrossEntropy());
    }
    AddedLoss added;
    const VarId loss = edit_.Emit("reduce_mean", {{"X", {each}}}, {{"reduce_all", true}}, "loss");
    added.loss = edit_.var(loss).name;
    added.said = StrCat("loss '", added.loss, "': ", how_);
    added.program = std::move(edit_).Finish();
    return added;
  }

 private:
  // The softmax or sigmoid that makes the output, perhaps with copies behind it.
  void FindActivation() {
    const VarId made = edit_.Source(output_);
    int at = edit_.WriterOf(made);
    // A softmax of a matrix may be given another shape, as readers of old ONNX files do.
    if (at >= 0 && OpAt(at).type() == "reshape2") {
      const VarId inner = edit_.Source(OpAt(at).In("X")[0]);
      const int before = edit_.WriterOf(inner);
      if (before >= 0 && OpAt(before).type().ends_with("softmax") &&
          edit_.var(inner).shape.rank() == 2)
        at = before;
    }
    if (at < 0) return;
    const std::string& type = OpAt(at).type();
    if (type != "softmax" && type != "log_softmax" && type != "sigmoid") return;
    activation_ = type;
    logits_ = OpAt(at).In("X")[0];
    if (type != "sigmoid") axis_ = OpAt(at).Attr<int64_t>("axis");
  }
  const ir::Op& OpAt(int at) { return edit_.ops()[static_cast<size_t>(at)]; }

  Status AddLabels() {
    ir::Var like;
    like.dtype = request_.labels.dtype;
    like.shape = request_.labels.shape;
    labels_ = edit_.shared().AddVar(request_.labels.name, 0, like);
    edit_.var(labels_).input = true;
    // A program without ports is fed by the names of its variables.
    if (edit_.ir().feeds.empty()) return Status::Ok();
    ir::Port port;
    port.var = labels_;
    for (const ir::Port& feed : edit_.ir().feeds) port.col = std::max(port.col, feed.col + 1);
    edit_.ir().feeds.push_back(port);
    return Status::Ok();
  }

  VarId Wide(VarId v) {
    const DType dtype = edit_.var(v).dtype;
    return dtype == DType::kF16 || dtype == DType::kBF16 ? Cast(v, DType::kF32) : v;
  }
  VarId Cast(VarId v, DType to) {
    const DType from = edit_.var(v).dtype;
    if (from == to || to == DType::kUnknown) return v;
    return edit_.Emit("cast", {{"X", {v}}},
                      {{"in_dtype", DTypeToProto(from)}, {"out_dtype", DTypeToProto(to)}},
                      edit_.var(v).name + "@CAST");
  }

  Status LabelsDoNotFit(VarId v, std::string_view wanted) {
    return InvalidArgument("the labels '", request_.labels.name, "' are ",
                           DimsText(request_.labels), "; for ", request_.op, " on '",
                           edit_.NameOf(v), "' ",
                           DimsText({"", edit_.var(v).dtype, edit_.var(v).shape}), " ", wanted);
  }

  // The labels in the dtype and with the rank of a value that they are compared with.
  Result<VarId> LabelsLike(VarId v) {
    const Shape shape = edit_.var(v).shape;
    VarId labels = Cast(labels_, edit_.var(Wide(v)).dtype);
    if (!shape.known_rank() || shape.rank() == request_.labels.shape.rank()) {
      for (int k = 0; shape.known_rank() && k < shape.rank(); ++k)
        if (shape[k] >= 0 && request_.labels.shape[k] >= 0 && shape[k] != request_.labels.shape[k])
          return LabelsDoNotFit(v, "the same shape is expected");
      return labels;
    }
    const int64_t last = shape.rank() > 0 ? shape.dim(-1) : 0;
    if (shape.rank() != request_.labels.shape.rank() + 1 || last != 1)
      return LabelsDoNotFit(v, "the same shape is expected");
    return edit_.Emit("unsqueeze2", {{"X", {labels}}}, {{"axes", Ints{shape.rank() - 1}}},
                      edit_.var(labels).name + "@COLUMN");
  }

  // The axis of the classes: the softmax's, or the one that the labels lack.
  Result<int64_t> ClassAxis(const Shape& shape) {
    const int rank = shape.rank();
    if (axis_) return *axis_ < 0 ? *axis_ + rank : *axis_;
    const Shape& labels = request_.labels.shape;
    if (labels.rank() != rank - 1 || rank < 3) return rank - 1;
    const auto fits = [&](int axis) {
      for (int k = 0, j = 0; k < rank; ++k) {
        if (k == axis) continue;
        const int64_t a = shape[k], b = labels[j++];
        if (a >= 0 && b >= 0 && a != b) return false;
      }
      return true;
    };
    return fits(rank - 1) || !fits(1) ? rank - 1 : 1;
  }

  Result<VarId> CrossEntropy() {
    const bool seen = !activation_.empty() && activation_ != "sigmoid";
    // Without a softmax, cross_entropy takes the output for probabilities.
    const bool probabilities = !seen && request_.op == "cross_entropy";
    const VarId x = Wide(seen ? logits_ : output_);
    const Shape shape = edit_.var(x).shape;
    if (!shape.known_rank() || shape.rank() < 1)
      return InvalidArgument("the rank of '", edit_.NameOf(output_),
                             "' is not known, so that its classes are not");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, ClassAxis(shape));
    const int rank = shape.rank(), given = request_.labels.shape.rank();
    const bool soft =
        IsFloat(request_.labels.dtype) && given == rank &&
        !(request_.labels.shape[static_cast<int>(axis)] == 1 && shape[static_cast<int>(axis)] != 1);
    VarId labels = labels_;
    if (soft) {
      labels = Cast(labels, edit_.var(x).dtype);
    } else {
      if (given == rank - 1)
        labels = edit_.Emit("unsqueeze2", {{"X", {labels}}}, {{"axes", Ints{axis}}},
                            request_.labels.name + "@COLUMN");
      else if (given != rank || (request_.labels.shape[static_cast<int>(axis)] != 1 &&
                                 request_.labels.shape[static_cast<int>(axis)] != -1))
        return LabelsDoNotFit(
            x,
            "class numbers (without the axis of classes, or with a 1 there) or a probability "
            "for each class are expected");
      labels = Cast(labels, DType::kI64);
    }
    const VarId each =
        edit_.Emit("softmax_with_cross_entropy", {{"Logits", {x}}, {"Label", {labels}}},
                   {{"axis", axis}, {"soft_label", soft}, {"use_softmax", !probabilities}},
                   "loss@EACH", "Loss");
    const std::string of = "output '" + edit_.NameOf(output_) + "'";
    how_ = StrCat("the mean cross entropy of ",
                  seen ? StrCat(of, ", which a ", activation_, " makes: computed from its input '",
                                edit_.var(logits_).name, "'")
                  : probabilities ? StrCat(of, ", which no softmax makes: taken for probabilities")
                                  : StrCat("the softmax of ", of, ", which no softmax makes"),
                  ", and ", soft ? "probabilities '" : "classes '", request_.labels.name, "'");
    return each;
  }

  Result<VarId> BinaryCrossEntropy() {
    const bool seen = activation_ == "sigmoid";
    const VarId x = Wide(seen ? logits_ : output_);
    HEDDLE_ASSIGN_OR_RETURN(const VarId labels, LabelsLike(seen ? logits_ : output_));
    const bool logits = seen || request_.op == "bce_with_logits";
    const std::string of = "output '" + edit_.NameOf(output_) + "'";
    how_ = StrCat("the mean binary cross entropy of ",
                  seen     ? StrCat(of, ", which a sigmoid makes: computed from its input '",
                                    edit_.var(logits_).name, "'")
                  : logits ? StrCat("the sigmoid of ", of, ", which no sigmoid makes")
                           : StrCat(of, ", which no sigmoid makes: taken for probabilities"),
                  ", and '", request_.labels.name, "'");
    return edit_.Emit(logits ? "sigmoid_cross_entropy_with_logits" : "bce_loss",
                      {{"X", {x}}, {"Label", {labels}}}, {}, "loss@EACH");
  }

  Edit edit_;
  const LossRequest& request_;
  VarId output_ = kNoVar, logits_ = kNoVar, labels_ = kNoVar;
  std::string activation_;
  std::optional<int64_t> axis_;
  std::string how_;
};

}  // namespace

std::vector<std::string> LossKinds() {
  return {"softmax_with_cross_entropy", "cross_entropy", "mse", "bce", "bce_with_logits"};
}

Result<AddedLoss> AddLoss(const Program& program, const LossRequest& request) {
  const std::vector<std::string> kinds = LossKinds();
  if (std::find(kinds.begin(), kinds.end(), request.op) == kinds.end())
    return InvalidArgument("there is no loss '", request.op, "'");
  return LossMaker(program, request).Run();
}

}  // namespace heddle::gradient
