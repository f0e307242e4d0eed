#include "executor/compiled.h"

#include <algorithm>

#include "core/error.h"
#include "core/lazy_buffer.h"

namespace heddle::internal {
namespace {

template <typename T>
void Append(std::string* key, T value) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

bool Replaced(const Scope& scope, const std::vector<std::pair<std::string, Scope::Stamp>>& used) {
  for (const auto& [name, stamp] : used)
    if (scope.StampOf(name) != stamp) return true;
  return false;
}

// Does what is fed fit what the program declares?
Status CheckFeed(const TensorInfo& info, const Value& value) {
  if (!value.initialized())
    return InvalidArgument("feed '", info.name, "' holds nothing (no tensor was given)");
  if (!value.is_tensor()) return Status::Ok();
  const Tensor& t = value.tensor();
  if (info.dtype != DType::kUnknown && t.dtype() != info.dtype)
    return InvalidArgument("feed '", info.name, "' has dtype ", Name(t.dtype()), "; ",
                           Name(info.dtype), " is expected");
  if (!info.shape.known_rank()) return Status::Ok();
  if (t.rank() != info.shape.rank())
    return InvalidArgument("feed '", info.name, "' has rank ", t.rank(), ", shape ",
                           t.shape().ToString(), "; rank ", info.shape.rank(), ", shape ",
                           info.shape.ToString(), " is expected");
  for (int i = 0; i < t.rank(); ++i)
    if (info.shape[i] >= 0 && info.shape[i] != t.shape()[i])
      return InvalidArgument("feed '", info.name, "' has shape ", t.shape().ToString(),
                             ": dimension ", i, " is ", t.shape()[i], "; ", info.shape.ToString(),
                             " is expected");
  return Status::Ok();
}

const TensorInfo* FindInfo(const std::vector<TensorInfo>& list, const std::string& name) {
  for (const TensorInfo& i : list)
    if (i.name == name) return &i;
  return nullptr;
}

std::string NamesOf(const std::vector<TensorInfo>& list) {
  std::string s;
  for (const TensorInfo& i : list) s += (s.empty() ? "'" : ", '") + i.name + "'";
  return s.empty() ? "none" : s;
}

}  // namespace

Status CheckFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds) {
  for (const Feed& f : feeds) {
    const TensorInfo* info = FindInfo(c.inputs, f.name);
    if (c.declared_inputs) {
      if (info == nullptr)
        return InvalidArgument("there is no input '", f.name, "'; the inputs are ",
                               NamesOf(c.inputs));
      HEDDLE_RETURN_IF_ERROR(CheckFeed(*info, f.value));
    } else if (!f.value.initialized()) {
      return InvalidArgument("feed '", f.name, "' holds nothing (no tensor was given)");
    }
  }
  for (const TensorInfo& info : c.inputs) {
    const bool fed =
        std::any_of(feeds.begin(), feeds.end(), [&](const Feed& f) { return f.name == info.name; });
    if (!fed && c.declared_inputs)
      return InvalidArgument("input '", info.name, "' is not fed (", Name(info.dtype), " ",
                             info.shape.ToString(), " is expected)");
  }
  return Status::Ok();
}

Status CheckMaxShapes(const CompiledImpl& c) {
  for (const auto& [name, shape] : c.options.max_shapes) {
    const TensorInfo* info = FindInfo(c.inputs, name);
    if (info == nullptr)
      return InvalidArgument("largest shapes: there is no input '", name, "'; the inputs are ",
                             NamesOf(c.inputs));
    bool fits =
        shape.is_static() && (!info->shape.known_rank() || shape.rank() == info->shape.rank());
    for (int d = 0; fits && info->shape.known_rank() && d < shape.rank(); ++d)
      fits = info->shape[d] < 0 || info->shape[d] == shape[d];
    if (!fits)
      return InvalidArgument("largest shapes: ", shape.ToString(), " does not fit input '", name,
                             "', ", info->shape.ToString());
  }
  return Status::Ok();
}

// Those of one file share a shelf: the first one that waits speaks for all.
void DropWaiting(const Scope& scope, const CompiledImpl::Form& form) {
  for (const auto& [name, stamp] : form.optimized.used) {
    if (scope.StampOf(name) != stamp || !stamp.value->is_tensor() ||
        !LazyShelf::IsWaiting(stamp.value->tensor()))
      continue;
    LazyShelf::DropWaiting(stamp.value->tensor());
    return;
  }
}

std::vector<Feed> LargestFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds) {
  std::vector<Feed> largest;
  for (const Feed& f : feeds) {
    if (!f.value.is_tensor() || f.value.tensor().has_lod()) return {};
    Shape shape = f.value.tensor().shape();
    for (const auto& [name, bound] : c.options.max_shapes) {
      if (name != f.name) continue;
      if (shape.rank() != bound.rank()) return {};
      for (int d = 0; d < shape.rank(); ++d)
        if (shape[d] > bound[d]) return {};
      shape = bound;
    }
    Tensor bare;
    bare.SetMeta(f.value.tensor().dtype(), shape);
    largest.push_back({f.name, Value(std::move(bare))});
  }
  return largest;
}

void FeedKey(const CompiledImpl::Form& form, const std::vector<Feed>& feeds, std::string* key) {
  *key = form.key;
  for (const Feed& f : feeds) {
    *key += f.name;
    *key += '\0';
    Append(key, f.value.kind());
    if (!f.value.is_tensor()) continue;
    const Tensor& t = f.value.tensor();
    Append(key, t.dtype());
    Append(key, t.has_lod());
    Append(key, t.rank());
    for (int64_t d : t.shape()) Append(key, d);
  }
}

Result<std::shared_ptr<CompiledImpl::Form>> CompiledImpl::Make() const {
  auto form = std::make_shared<Form>();
  std::lock_guard writes(scope->write_mutex());  // parameters are read
  form->packs = std::make_shared<PackCache>(packed);
  form->version = form->packs_version = scope->version();
  const OptimizeOptions optimize{options.opt_level, fetch_names, options.passes, fed_};
  HEDDLE_ASSIGN_OR_RETURN(const auto program, source.Get());
  HEDDLE_ASSIGN_OR_RETURN(form->optimized,
                          passes::Optimize(program, scope, optimize, !options.lean));
  for (const std::string& name : fetch_names)
    form->fetches.push_back(form->optimized.program->Find(0, name));
  if (!declared_inputs)
    for (const auto& [name, stamp] : form->optimized.used) form->constants.insert(name);
  Append(&form->key, source.hash());
  Append(&form->key, options.opt_level);
  Append(&form->key, options.schedule);
  Append(&form->key, options.shuffle_seed);
  Append(&form->key, options.placement);
  Append(&form->key, options.placement_seed);
  Append(&form->key, options.tune);
  Append(&form->key, options.reuse);
  Append(&form->key, options.lean);
  for (const auto& [name, shape] : options.max_shapes) form->key += name + shape.ToString() + '\0';
  form->key += options.tuning_file + '\0';
  form->key += options.packed_weights + '\0';
  form->key += options.force + '\0';
  form->key += options.machine + '\0';
  Append(&form->key, form->optimized.scope.get());
  for (const std::string& name : fetch_names) form->key += name + '\0';
  return form;
}

// Without feed operators anything may be fed: such parameters are remembered.
bool CompiledImpl::FeedsConstants(const std::vector<Feed>& feeds) {
  if (declared_inputs || form_->constants.empty()) return false;
  bool any = false;
  for (const Feed& f : feeds) {
    if (form_->constants.count(f.name) == 0) continue;
    fed_.push_back(f.name);
    any = true;
  }
  return any;
}

Result<std::shared_ptr<CompiledImpl::Form>> CompiledImpl::Current(const std::vector<Feed>& feeds) {
  std::lock_guard lock(mutex_);
  const uint64_t version = scope->version();
  if (form_ && form_->version != version) {
    form_->version = version;
    if (Replaced(*scope, form_->optimized.used)) form_ = nullptr;
  }
  while (!form_ || FeedsConstants(feeds)) {
    form_ = nullptr;
    HEDDLE_ASSIGN_OR_RETURN(form_, Make());
    report_ = form_->optimized.report;
    if (options.lean) source.LetGo();
  }
  return form_;
}

PassReport CompiledImpl::pass_report() const {
  std::lock_guard lock(mutex_);
  return report_;
}

}  // namespace heddle::internal

namespace heddle {

const std::vector<TensorInfo>& CompiledProgram::inputs() const { return impl_->inputs; }
const std::vector<TensorInfo>& CompiledProgram::outputs() const { return impl_->outputs; }
const std::shared_ptr<Scope>& CompiledProgram::scope() const { return impl_->scope; }
PassReport CompiledProgram::pass_report() const { return impl_->pass_report(); }
TuningReport CompiledProgram::tuning_report() const {
  return impl_->tuning ? impl_->tuning->report() : TuningReport();
}
PackedWeightsReport CompiledProgram::packed_weights_report() const {
  return impl_->packed ? impl_->packed->report() : PackedWeightsReport();
}

}  // namespace heddle
