#include "partition/graph.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <unordered_set>

#include "core/op_registry.h"

namespace heddle::partition {
namespace {

constexpr std::string_view kRandomTypes[] = {"uniform_random",
                                             "uniform_random_inplace",
                                             "gaussian_random",
                                             "gaussian_random_inplace",
                                             "truncated_gaussian_random",
                                             "randint",
                                             "randperm",
                                             "bernoulli",
                                             "multinomial",
                                             "poisson",
                                             "exponential",
                                             "binomial",
                                             "sampling_id",
                                             "shuffle_batch",
                                             "random_crop",
                                             "rrelu",
                                             "class_center_sample",
                                             "uniform_random_batch_size_like",
                                             "gaussian_random_batch_size_like",
                                             "standard_gamma",
                                             "dirichlet"};
constexpr std::string_view kEffectTypes[] = {
    "print",        "assert",       "save",     "save_combine",    "load",
    "load_combine", "py_func",      "py_layer", "send_v2",         "recv_v2",
    "partial_send", "partial_recv", "barrier",  "listen_and_serv", "delete_var",
    "enqueue",      "dequeue",      "read",     "get_places"};
constexpr std::string_view kDropoutTypes[] = {"dropout", "dropout_nd", "fused_dropout_add"};

template <size_t n>
bool IsOneOf(std::string_view type, const std::string_view (&types)[n]) {
  return std::find(std::begin(types), std::end(types), type) != std::end(types);
}

// Facts that follow from an operator's type, computed once for each type.
struct TypeFacts {
  bool feed = false, fetch = false, effect = false, random = false, dropout = false;
  // Draws random numbers, unless an attribute says that the operator is not training.
  bool random_in_training = false;
  bool batch_norm = false;
};

TypeFacts FactsOf(std::string_view type) {
  const OpDef* def = FindOp(type);
  const unsigned traits = def == nullptr ? 0 : def->traits();
  TypeFacts facts;
  facts.feed = type == "feed";
  facts.fetch = type == "fetch";
  facts.effect =
      IsOneOf(type, kEffectTypes) || type.starts_with("c_") || (traits & kSideEffect) != 0;
  facts.random = IsOneOf(type, kRandomTypes);
  facts.dropout = IsOneOf(type, kDropoutTypes);
  facts.random_in_training = facts.dropout || (traits & kRandom) != 0;
  facts.batch_norm = type == "batch_norm" || type == "sync_batch_norm";
  return facts;
}

bool IsTrue(const Description& d, const Operator& op, std::string_view name) {
  const Attr* attr = d.FindAttr(op, name);
  const std::optional<Literal> value = attr == nullptr ? std::nullopt : ValueOf(*attr);
  return value && !value->items.empty() && value->items[0].number != 0;
}

bool DrawsRandomNumbers(const Description& d, const Operator& op, const TypeFacts& facts) {
  if (facts.random || !facts.random_in_training) return facts.random;
  if (IsTrue(d, op, "is_test")) return false;
  const Attr* probability = d.FindAttr(op, "dropout_prob");
  return probability == nullptr || IsTrue(d, op, "dropout_prob");
}

}  // namespace

std::string_view Reason(Never never) {
  switch (never) {
    case Never::kNo:
      return "";
    case Never::kFeed:
      return "feed";
    case Never::kFetch:
      return "fetch";
    case Never::kControlFlow:
      return "control flow: it runs blocks";
    case Never::kSideEffect:
      return "it has side effects";
    case Never::kRandom:
      return "it draws random numbers";
    case Never::kWritesPersistable:
      return "it writes a persistable variable";
    case Never::kNotDense:
      return "it reads or writes what is no dense tensor";
  }
  return "";
}

// Makes the graph from the operators, in order.
class Graph::Maker {
 public:
  explicit Maker(Graph* graph)
      : g_(*graph), d_(g_.description_), text_(d_.blocks()[At(graph->block_)]) {}

  void Run() {
    for (TypeId t = 0; t < d_.num_types(); ++t) facts_.push_back(FactsOf(d_.type(t)));
    g_.vars_.reserve(text_.declared.size());
    for (const Variable& var : text_.declared) g_.vars_.push_back(&var);
    present_.assign(g_.vars_.size(), kNone);
    marks_.assign(At(g_.size()), kNoOp);
    for (OpIndex i = 0; i < g_.size(); ++i) AddOp(i);
    KeepValues();
    Flatten();
    FindAfter();
    Walk();
  }

 private:
  static constexpr ValueId kNone = ~0u;

  const TypeFacts& facts(OpIndex i) const { return facts_[g_.op(i).type]; }

  // The variable with this name in the block or an outer block, or a new one if none declares it.
  VarId VarOf(std::string_view name) {
    if (const auto at = text_.names.find(name); at != text_.names.end()) return at->second;
    const auto [at, is_new] = others_.emplace(name, static_cast<VarId>(g_.vars_.size()));
    if (!is_new) return at->second;
    const Variable* found = nullptr;
    for (int b = text_.parent; b >= 0 && found == nullptr; b = d_.blocks()[At(b)].parent)
      if (const auto var = d_.blocks()[At(b)].names.find(name);
          var != d_.blocks()[At(b)].names.end())
        found = &d_.blocks()[At(b)].declared[var->second];
    outer_vars_.push_back(found != nullptr);
    if (found == nullptr) {
      found = &undeclared_.emplace_back();
      undeclared_.back().name = name;
    }
    g_.vars_.push_back(found);
    present_.push_back(kNone);
    return at->second;
  }
  bool IsOuter(VarId var) const {
    return var >= text_.declared.size() && outer_vars_[var - text_.declared.size()];
  }

  ValueId NewValue(VarId var, OpIndex maker) {
    Value value;
    value.var = var;
    value.maker = maker;
    value.constant = maker == kNoOp && g_.vars_[var]->persistable;
    const auto id = static_cast<ValueId>(g_.values_.size());
    g_.values_.push_back(value);
    reader_lists_.emplace_back();
    present_[var] = id;
    return id;
  }

  // Whether the slot is an output that the operator names but does not change in test mode.
  bool IsAlias(OpIndex i, std::string_view slot) const {
    const TypeFacts& f = facts(i);
    if (f.batch_norm &&
        ((IsTrue(d_, g_.op(i), "is_test") && !IsTrue(d_, g_.op(i), "trainable_statistics")) ||
         IsTrue(d_, g_.op(i), "use_global_stats")))
      return slot != "Y";
    return f.dropout && slot == "Mask" && g_.type(i) == "dropout" &&
           IsTrue(d_, g_.op(i), "is_test");
  }

  void Read(OpIndex i, std::string_view slot, std::string_view name) {
    const VarId var = VarOf(name);
    const ValueId value = present_[var] == kNone ? NewValue(var, kNoOp) : present_[var];
    g_.reads_.Add({slot, value});
    std::vector<OpIndex>& readers = reader_lists_[value];
    if (readers.empty() || readers.back() != i) readers.push_back(i);
    const OpIndex maker = g_.values_[value].maker;
    if (maker != kNoOp && marks_[At(maker)] != i) {
      marks_[At(maker)] = i;
      g_.before_.Add(maker);
      ++makers_;
    }
    if (!g_.vars_[var]->dense) not_dense_ = true;
  }

  void Write(OpIndex i, std::string_view slot, std::string_view name) {
    const VarId var = VarOf(name);
    if (const ValueId old = present_[var]; old != kNone) {
      for (const OpIndex reader : reader_lists_[old]) Late(i, reader);
      if (g_.values_[old].maker != kNoOp) Late(i, g_.values_[old].maker);
    }
    if (IsOuter(var) && ever_written_.insert(var).second) outer_written_.push_back(var);
    g_.writes_.Add({slot, NewValue(var, i)});
    if (!g_.vars_[var]->dense) not_dense_ = true;
    if (g_.vars_[var]->persistable) persistable_ = true;
    if (slot != "XShape") elements_ = std::max(elements_, g_.vars_[var]->elements());
  }

  void Late(OpIndex i, OpIndex earlier) {
    if (earlier == i || marks_[At(earlier)] == i) return;
    marks_[At(earlier)] = i;
    late_.push_back(earlier);
  }

  void AddOp(OpIndex i) {
    const Operator& op = g_.op(i);
    const TypeFacts& f = facts(i);
    makers_ = 0;
    elements_ = 0;
    not_dense_ = persistable_ = false;
    late_.clear();
    const std::vector<int> blocks = d_.SubBlocks(op);
    const Argument* arguments = d_.arguments(op);
    for (uint32_t k = 0; k < op.num_arguments; ++k)
      if (!arguments[k].output && !f.feed && IsName(arguments[k].name))
        Read(i, arguments[k].slot, arguments[k].name);
    ForInner(blocks, false, [&](std::string_view name) {
      if (!f.feed) Read(i, "", name);
    });
    g_.reads_.EndList();
    for (uint32_t k = 0; k < op.num_arguments; ++k)
      if (arguments[k].output && !f.fetch && IsName(arguments[k].name) &&
          !IsAlias(i, arguments[k].slot))
        Write(i, arguments[k].slot, arguments[k].name);
    ForInner(blocks, true, [&](std::string_view name) {
      bool written = f.fetch;
      for (uint32_t k = 0; k < op.num_arguments && !written; ++k)
        written = arguments[k].output && arguments[k].name == name;
      if (!written) Write(i, "", name);
    });
    g_.writes_.EndList();
    const bool random = DrawsRandomNumbers(d_, op, f);
    if (random || f.effect) {
      if (last_ordered_ != kNoOp) Late(i, last_ordered_);
      last_ordered_ = i;
    }
    std::sort(late_.begin(), late_.end());
    for (const OpIndex earlier : late_) g_.before_.Add(earlier);
    g_.before_.EndList();
    g_.num_makers_.push_back(makers_);
    g_.elements_.push_back(elements_);
    g_.never_.push_back(f.feed            ? Never::kFeed
                        : f.fetch         ? Never::kFetch
                        : !blocks.empty() ? Never::kControlFlow
                        : f.effect        ? Never::kSideEffect
                        : random          ? Never::kRandom
                        : persistable_    ? Never::kWritesPersistable
                        : not_dense_      ? Never::kNotDense
                                          : Never::kNo);
  }

  template <typename Fn>
  void ForInner(const std::vector<int>& blocks, bool writes, Fn&& fn) {
    if (blocks.empty()) return;
    std::unordered_set<std::string_view> seen;
    for (const int b : blocks) {
      if (b <= g_.block_ || At(b) >= d_.outer_names().size()) continue;
      const OuterNames& names = d_.outer_names()[At(b)];
      for (const std::string_view name : writes ? names.writes : names.reads)
        if (seen.insert(name).second) fn(name);
    }
  }

  // Marks the fetched values and, in an inner block, the last values of outer variables that it
  // writes.
  void KeepValues() {
    for (OpIndex i = 0; i < g_.size(); ++i) {
      if (!facts(i).fetch) continue;
      int64_t col = i;
      if (const Attr* attr = d_.FindAttr(g_.op(i), "col"))
        if (const auto value = ValueOf(*attr); value && !value->items.empty())
          col = value->items[0].integer;
      fetches_.emplace_back(col, i);
      for (const Use& use : g_.reads(i)) g_.values_[use.value].kept = true;
    }
    std::stable_sort(fetches_.begin(), fetches_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const VarId var : outer_written_) g_.values_[present_[var]].kept = true;
  }

  void Flatten() {
    for (ValueId v = 0; v < g_.values_.size(); ++v) {
      g_.values_[v].first_reader = static_cast<uint32_t>(g_.readers_.size());
      g_.values_[v].num_readers = static_cast<uint32_t>(reader_lists_[v].size());
      g_.readers_.insert(g_.readers_.end(), reader_lists_[v].begin(), reader_lists_[v].end());
      constexpr int64_t kUnknownWidth = 4;
      const Variable& var = g_.var(v);
      g_.bytes_.push_back(var.elements() * (var.dtype == DType::kUnknown
                                                ? kUnknownWidth
                                                : static_cast<int64_t>(SizeOf(var.dtype))));
    }
    g_.undeclared_.assign(std::make_move_iterator(undeclared_.begin()),
                          std::make_move_iterator(undeclared_.end()));
    size_t next = 0;
    for (size_t k = 0; k < outer_vars_.size(); ++k)
      if (!outer_vars_[k]) g_.vars_[text_.declared.size() + k] = &g_.undeclared_[next++];
  }

  void FindAfter() {
    const auto n = At(g_.size());
    std::vector<uint32_t> begins(n + 1);
    size_t edges = 0;
    for (OpIndex i = 0; i < g_.size(); ++i) {
      for (const OpIndex p : g_.before(i)) ++begins[At(p) + 1];
      edges += g_.before(i).size();
    }
    for (size_t i = 0; i < n; ++i) begins[i + 1] += begins[i];
    std::vector<OpIndex> items(edges);
    std::vector<uint32_t> at(begins.begin(), begins.end() - 1);
    for (OpIndex i = 0; i < g_.size(); ++i)
      for (const OpIndex p : g_.before(i)) items[at[At(p)]++] = i;
    for (size_t i = 0; i < n; ++i) {
      for (uint32_t k = begins[i]; k < begins[i + 1]; ++k) g_.after_.Add(items[k]);
      g_.after_.EndList();
    }
  }

  void Walk() {
    std::vector<bool> done(At(g_.size()));
    g_.walk_.reserve(At(g_.size()));
    for (const auto& [col, i] : fetches_) WalkFrom(i, &done);
    for (const VarId var : outer_written_) WalkFrom(g_.values_[present_[var]].maker, &done);
    for (OpIndex i = 0; i < g_.size(); ++i) WalkFrom(i, &done);
    g_.places_.resize(g_.walk_.size());
    for (size_t k = 0; k < g_.walk_.size(); ++k)
      g_.places_[At(g_.walk_[k])] = static_cast<int32_t>(k);
  }
  void WalkFrom(OpIndex root, std::vector<bool>* done) {
    if ((*done)[At(root)]) return;
    (*done)[At(root)] = true;
    std::vector<std::pair<OpIndex, size_t>> stack = {{root, 0}};
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      const auto before = g_.before(i);
      while (next < before.size() && (*done)[At(before[next])]) ++next;
      if (next == before.size()) {
        g_.walk_.push_back(i);
        stack.pop_back();
        continue;
      }
      const OpIndex p = before[next++];
      (*done)[At(p)] = true;
      stack.emplace_back(p, 0);
    }
  }

  Graph& g_;
  const Description& d_;
  const BlockText& text_;
  std::vector<TypeFacts> facts_;
  std::unordered_map<std::string_view, VarId> others_;  // names that the block does not declare
  std::vector<bool> outer_vars_;  // of those: whether an outer block declares it
  std::deque<Variable> undeclared_;
  std::vector<ValueId> present_;  // of each variable: its present value
  std::unordered_set<VarId> ever_written_;
  std::vector<VarId> outer_written_;  // in the order of their first writes
  std::vector<std::vector<OpIndex>> reader_lists_;
  std::vector<OpIndex> marks_;  // of each operator: the last one that has an edge from it
  std::vector<std::pair<int64_t, OpIndex>> fetches_;
  OpIndex last_ordered_ = kNoOp;
  // Facts about the present operator.
  std::vector<OpIndex> late_;
  uint32_t makers_ = 0;
  int64_t elements_ = 0;
  bool not_dense_ = false, persistable_ = false;
};

Graph::Graph(const Description& description, int block)
    : description_(description),
      block_(block),
      ops_(description.blocks()[static_cast<size_t>(block)].ops) {
  Maker(this).Run();
}

}  // namespace heddle::partition
