// Open batch dimensions where a file fixes them.
//
// A large prime stands for the batch while shapes are inferred: dimensions that it divides count
// samples. What an operator says of shapes as constants is changed where the samples are the
// outermost axis before and after it, so that the order of elements stays.
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "core/error.h"
#include "core/shapes.h"
#include "gradient/tuning/edit.h"
#include "gradient/tuning/tuning.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::Op;
using ir::VarId;

constexpr int64_t kMark = 1000003;

int MarkedAxis(const Shape& shape) {
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] != 0 && shape[d] % kMark == 0) return d;
  return -1;
}
int MarksIn(const Shape& shape) {
  int marks = 0;
  for (const int64_t d : shape) marks += d != 0 && d % kMark == 0 ? 1 : 0;
  return marks;
}

// Operators that only put elements into another shape.
bool IsReshape(const Op& op) { return op.type() == "reshape2" || op.type() == "reshape"; }
bool KeepsElements(const Op& op) {
  static constexpr std::string_view kTypes[] = {"flatten",   "flatten2", "flatten_contiguous_range",
                                                "squeeze",   "squeeze2", "unsqueeze",
                                                "unsqueeze2"};
  return IsReshape(op) ||
         std::find(std::begin(kTypes), std::end(kTypes), op.type()) != std::end(kTypes);
}

// Whether the operator works along `axis` of an operand with `rank` axes: a softmax, a sum, a
// concatenation.
bool WorksAlong(const Op& op, int axis, int rank) {
  if (op.def->has(kElementwise) || op.def->has(kBroadcasts) || KeepsElements(op) ||
      op.type().starts_with("transpose") || op.type() == "stack")
    return false;
  const auto is = [&](int64_t at) { return (at < 0 ? at + rank : at) == axis; };
  for (size_t a = 0; a < op.attrs.size(); ++a) {
    const std::string& name = op.def->attrs()[a].name;
    const auto* one = std::get_if<int64_t>(&op.attrs[a]);
    const auto* several = std::get_if<Ints>(&op.attrs[a]);
    const auto* flag = std::get_if<bool>(&op.attrs[a]);
    if (name == "begin_norm_axis" && one != nullptr && axis >= *one) return true;
    if (name == "reduce_all" && flag != nullptr && *flag) return true;
    if (name != "axis" && name != "dim" && name != "axes") continue;
    if (one != nullptr && is(*one)) return true;
    if (several != nullptr && std::any_of(several->begin(), several->end(), is)) return true;
  }
  return false;
}

class BatchOpener {
 public:
  BatchOpener(const Program& program, const Scope& scope) : edit_(program), scope_(scope) {}

  Result<OpenedBatch> Run(const std::vector<std::string>& inputs) {
    std::string names;
    for (const std::string& name : inputs) {
      const VarId v = edit_.ir().Find(0, name);
      if (v == kNoVar) return NotFound("input '", name, "': the program has no such variable");
      Shape& shape = edit_.var(v).shape;
      if (!shape.known_rank() || shape.rank() == 0 || shape[0] <= 0)
        return InvalidArgument("input '", name, "' has no fixed first dimension");
      if (size_ != 0 && shape[0] != size_)
        return InvalidArgument("the inputs fix batches of ", size_, " and of ", shape[0]);
      size_ = shape[0];
      Shape marked = shape;
      marked[0] = kMark;
      marked_.emplace(v, marked);
      names += (names.empty() ? "'" : ", '") + name + "'";
    }
    for (size_t k = 0; k < edit_.ops().size(); ++k) {
      // Operators that repeat a constant come before the one that reads it.
      const size_t before = edit_.ops().size();
      HEDDLE_RETURN_IF_ERROR(Look(k));
      k += edit_.ops().size() - before;
    }
    for (const auto& [v, marked] : marked_) {
      Shape open = marked;
      for (int d = 0; d < open.rank(); ++d)
        if (open[d] % kMark == 0) open[d] = -1;
      edit_.var(v).shape = open;
    }
    OpenedBatch opened;
    opened.said =
        StrCat("batch: the file fixes ", size_, " for ", names, "; any size is taken now",
               mended_ == 0 ? ""
                            : StrCat(", and ", mended_, mended_ == 1 ? " operator" : " operators",
                                     " that repeated the size in a shape follow it"));
    opened.program = std::move(edit_).Finish();
    return opened;
  }

 private:
  bool IsMarked(VarId v) const {
    const auto found = marked_.find(v);
    return found != marked_.end() && MarksIn(found->second) > 0;
  }

  template <typename... Parts>
  Status Refuse(size_t k, const Parts&... parts) const {
    return Unimplemented("the file fixes batches of ", size_, ", and other sizes would need ",
                         edit_.PlaceOf(static_cast<int>(k)), " to be another one: ", parts...);
  }

  // Shapes of the outputs for marked operands; false: the operator does not accept them, or its
  // shape depends on values.
  bool Infer(const Op& op, std::vector<std::pair<VarId, Shape>>* shapes) {
    std::deque<passes::Fact> facts;
    std::vector<passes::FactInference::Operand> operands;
    for (const auto& slot : op.inputs)
      for (const VarId v : slot) {
        if (v == kNoVar) {
          operands.push_back({});
          continue;
        }
        const auto found = marked_.find(v);
        const ir::Var& var = edit_.var(v);
        facts.push_back({var.dtype, found != marked_.end() ? found->second : var.shape});
        const auto contents = contents_.find(v);
        operands.push_back(
            {.fact = &facts.back(),
             .contents = contents == contents_.end() ? nullptr : &contents->second.second,
             .is_array = var.kind == ir::VarKind::kArray});
      }
    std::vector<std::optional<passes::Fact>> outputs;
    if (!inference_.Infer(op, operands, &outputs)) return false;
    size_t k = 0;
    for (const auto& slot : op.outputs)
      for (const VarId v : slot) {
        const size_t at = k++;
        if (v == kNoVar) continue;
        if (at >= outputs.size() || !outputs[at] || !outputs[at]->shape.known_rank()) {
          if (at == 0) return false;
          continue;
        }
        shapes->emplace_back(v, outputs[at]->shape);
      }
    return true;
  }

  // Whether a parameter is the same for each sample along `axis`.
  bool IsSameAlong(VarId v, int axis) const {
    const Value* value = scope_.Find(edit_.var(v).name);
    if (value == nullptr || !value->is_tensor() || !value->initialized()) return false;
    const Tensor tensor = value->tensor().Contiguous();
    const Shape& shape = tensor.shape();
    if (shape.rank() <= axis || shape[axis] != size_ || tensor.numel() == 0) return false;
    const auto inner =
        static_cast<size_t>(shape.Product(axis + 1, shape.rank())) * SizeOf(tensor.dtype());
    const auto* bytes = static_cast<const char*>(tensor.raw());
    for (int64_t o = 0; o < shape.Product(0, axis); ++o)
      for (int64_t s = 1; s < size_; ++s) {
        const char* first = bytes + static_cast<size_t>(o * size_) * inner;
        if (std::memcmp(first, first + static_cast<size_t>(s) * inner, inner) != 0) return false;
      }
    return true;
  }

  // Parameters that the file repeats for each sample, such as initial states of a recurrent
  // network, are repeated for as many samples as there are: if the operator accepts them so.
  bool RepeatConstants(size_t k) {
    constexpr int kMostAxes = 4;
    VarId like = kNoVar;
    for (const auto& slot : edit_.ops()[k].inputs)
      for (const VarId v : slot)
        if (like == kNoVar && v != kNoVar && IsMarked(v) &&
            marked_.at(v)[MarkedAxis(marked_.at(v))] == kMark)
          like = v;
    if (like == kNoVar) return false;
    for (int axis = 0; axis < kMostAxes; ++axis) {
      std::map<VarId, VarId> repeated;
      for (const auto& slot : edit_.ops()[k].inputs)
        for (const VarId v : slot) {
          if (v == kNoVar || !edit_.var(v).persistable || !IsFloat(edit_.var(v).dtype)) continue;
          if (edit_.WriterOf(v) < 0 && IsSameAlong(v, axis)) repeated.emplace(v, kNoVar);
        }
      if (repeated.empty()) continue;
      Op trial = edit_.ops()[k];
      for (auto& [v, marked] : repeated) {
        Shape shape = edit_.var(v).shape;
        shape[axis] = kMark;
        marked_[v] = shape;
      }
      std::vector<std::pair<VarId, Shape>> shapes;
      const bool fits = Infer(trial, &shapes);
      for (const auto& [v, marked] : repeated) marked_.erase(v);
      if (!fits) continue;
      int at = static_cast<int>(k);
      for (auto& [v, made] : repeated) {
        const ir::Var var = edit_.var(v);
        Ints dims(var.shape.begin(), var.shape.end());
        const VarId zeros = edit_.Emit("fill_constant_batch_size_like", {{"Input", {like}}},
                                       {{"shape", dims},
                                        {"dtype", DTypeToProto(var.dtype)},
                                        {"input_dim_idx", int64_t{MarkedAxis(marked_.at(like))}},
                                        {"output_dim_idx", int64_t{axis}}},
                                       var.name + "@ZEROS", {}, at++);
        const VarId one = edit_.Emit("slice", {{"Input", {v}}},
                                     {{"axes", Ints{axis}}, {"starts", Ints{0}}, {"ends", Ints{1}}},
                                     var.name + "@ONE", {}, at++);
        made = edit_.Emit("elementwise_add", {{"X", {zeros}}, {"Y", {one}}}, {},
                          var.name + "@REPEATED", {}, at++);
        Shape shape = var.shape;
        shape[axis] = kMark;
        marked_[zeros] = marked_[made] = shape;
      }
      for (auto& slot : edit_.ops()[static_cast<size_t>(at)].inputs)
        for (VarId& v : slot)
          if (const auto found = repeated.find(v); found != repeated.end()) v = found->second;
      ++mended_;
      return true;
    }
    return false;
  }

  // Shapes as values: what `shape` gives, and its copies.
  void FollowContents(const Op& op) {
    if (op.outputs.empty() || op.outputs[0].size() != 1 || op.outputs[0][0] == kNoVar) return;
    const VarId out = op.outputs[0][0];
    const DType dtype = edit_.var(out).dtype;
    if (dtype != DType::kI32 && dtype != DType::kI64) return;
    Ints values;
    if (op.type() == "shape") {
      const VarId x = op.In("Input").at(0);
      if (!IsMarked(x)) return;
      values.assign(marked_.at(x).begin(), marked_.at(x).end());
    } else if (op.type() == "cast" || op.type() == "assign") {
      const auto found = contents_.find(op.In("X").at(0));
      if (found == contents_.end()) return;
      values = found->second.first;
    } else {
      return;
    }
    Tensor tensor = Tensor::Zeros(dtype, Shape{static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) {
      if (dtype == DType::kI32)
        tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(values[i]);
      else
        tensor.mutable_data<int64_t>()[i] = values[i];
    }
    contents_[out] = {std::move(values), std::move(tensor)};
  }

  Status Look(size_t k) {
    const size_t had = edit_.ops().size();
    Op& op = edit_.ops()[k];
    FollowContents(op);
    bool reads = false;
    for (size_t s = 0; s < op.inputs.size(); ++s)
      for (const VarId v : op.inputs[s]) {
        const bool decides =
            s < op.def->inputs().size() && (op.def->inputs()[s].flags & kShapeValue) != 0;
        reads = reads || (v != kNoVar && (IsMarked(v) || (decides && contents_.contains(v))));
      }
    if (!reads) return Status::Ok();
    if (op.def->has(kControlFlow)) return Refuse(k, "it runs blocks");
    if (IsReshape(op)) HEDDLE_RETURN_IF_ERROR(Mend(k));
    std::vector<std::pair<VarId, Shape>> shapes;
    if (!Infer(op, &shapes)) {
      if (RepeatConstants(k)) return Look(k + edit_.ops().size() - had);
      return Refuse(k, "its shape function does not accept samples in any number, or needs values");
    }
    bool marks = false, one = true;
    for (const auto& [v, shape] : shapes) {
      marks = marks || MarksIn(shape) > 0;
      one = one && shape.is_static() && shape.numel() == 1;
      if (MarksIn(shape) > 1) return Refuse(k, "it combines samples with each other");
      HEDDLE_RETURN_IF_ERROR(Compare(k, v, shape));
    }
    HEDDLE_RETURN_IF_ERROR(CheckAxes(k, shapes, one));
    for (const auto& [v, shape] : shapes) marked_[v] = shape;
    if (!marks && !one && op.type() != "shape")
      return Refuse(k,
                    "its result is the same for any number of samples, so that it takes them "
                    "apart or drops some");
    return Status::Ok();
  }

  // Whether the samples stay apart, and in their order. `one`: the result is one number.
  Status CheckAxes(size_t k, const std::vector<std::pair<VarId, Shape>>& shapes, bool one) const {
    const Op& op = edit_.ops()[k];
    for (size_t s = 0; s < op.inputs.size(); ++s)
      for (const VarId v : op.inputs[s]) {
        if (v == kNoVar || !IsMarked(v)) continue;
        const Shape& from = marked_.at(v);
        const int axis = MarkedAxis(from);
        // An axis is one of the first operand: indices have others.
        if (!one && s == 0 && WorksAlong(op, axis, from.rank()))
          return Refuse(k, "it works along axis ", axis, " of '", edit_.NameOf(v),
                        "', which counts samples");
        if (!KeepsElements(op) || MarksIn(shapes[0].second) == 0) continue;
        const Shape& to = shapes[0].second;
        if (from.Product(0, axis) != to.Product(0, MarkedAxis(to)))
          return Refuse(k, "the samples are not the outer elements of an axis of '",
                        edit_.NameOf(shapes[0].first), "'");
      }
    return Status::Ok();
  }

  // Each dimension is as before, or as many times larger as there are more samples.
  Status Compare(size_t k, VarId v, const Shape& now) const {
    const Shape& before = edit_.var(v).shape;
    if (!before.is_static()) return Status::Ok();
    // Files declare outputs that nobody reads in odd ways.
    const bool read = !edit_.ReadersOf(v).empty() ||
                      std::any_of(edit_.ir().fetches.begin(), edit_.ir().fetches.end(),
                                  [v](const ir::Port& fetch) { return fetch.var == v; });
    if (!read) return Status::Ok();
    bool fits = before.rank() == now.rank();
    for (int d = 0; fits && d < now.rank(); ++d)
      fits = now[d] == before[d] ||
             (now[d] % kMark == 0 && before[d] % size_ == 0 && now[d] / kMark == before[d] / size_);
    if (fits || edit_.ops()[k].def->name() == "shape") return Status::Ok();
    return Refuse(k, "'", edit_.var(v).name, "' has the shape ", before.ToString(),
                  ", which does not follow the number of samples");
  }

  // A reshape with a constant shape: [1, -1], [1, 512], [12, 64] for a batch of 1.
  Status Mend(size_t k) {
    Op& op = edit_.ops()[k];
    const VarId x = op.In("X").at(0), out = op.Out("Out").at(0);
    for (const char* const slot : {"Shape", "ShapeTensor"})
      if (const int s = op.def->FindInput(slot);
          s >= 0 && !op.inputs[static_cast<size_t>(s)].empty())
        return Status::Ok();  // from values
    const Shape from = marked_.at(x), to = edit_.var(out).shape;
    Ints& dims = std::get<Ints>(op.attrs[static_cast<size_t>(op.def->FindAttr("shape"))]);
    const int axis = MarkedAxis(from);
    if (!to.is_static()) return Refuse(k, "the shape of '", edit_.var(out).name, "' is not known");
    // The samples' axis in the result: as many elements lie outside of it as before.
    const int64_t outside = from.Product(0, axis);
    int at = 0;
    int64_t product = 1;
    while (at < to.rank() && product < outside) product *= to[at++];
    if (product != outside || at >= to.rank() || to[at] % size_ != 0 ||
        (outside != 1 && to[at] != size_))
      return Refuse(k, "its result ", to.ToString(),
                    " has no axis of samples where its operand has it");
    Ints wanted(to.begin(), to.end());
    wanted[static_cast<size_t>(at)] = -1;
    Shape now = to;
    now[at] = to[at] / size_ * kMark;
    // Where the file's own words give the right shape for any number, they stay.
    std::vector<std::pair<VarId, Shape>> shapes;
    if (Infer(op, &shapes) && shapes[0].second == now) return Status::Ok();
    dims = wanted;
    ++mended_;
    return Status::Ok();
  }

  Edit edit_;
  const Scope& scope_;
  passes::FactInference inference_;
  std::map<VarId, Shape> marked_;                      // of what depends on the inputs
  std::map<VarId, std::pair<Ints, Tensor>> contents_;  // of values that are shapes
  int64_t size_ = 0;
  int mended_ = 0;
};

}  // namespace

Result<OpenedBatch> OpenBatch(const Program& program, const Scope& scope,
                              const std::vector<std::string>& inputs) {
  return BatchOpener(program, scope).Run(inputs);
}

}  // namespace heddle::gradient
