// From an ElementProgram and its shapes to loops: which values are registers, which lie in memory.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "kernels/fused/element_loop.h"
#include "kernels/fused/row_loop.h"

namespace heddle {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr int64_t kFewPeriods = 4, kLongRow = 32;  // see IsBestInPlace
constexpr int64_t kMostTile = 1024;                // elements: what is longer saves nothing
constexpr float kTraffic = 1.0f / (1 << 15);       // work (TileStep) of access to an element
constexpr float kLightStep = 1.0f / (1 << 17);     // of a step that alone is bound by memory
constexpr size_t kTileMemory = 20 << 10;  // registers and spreads should fit into the cache

class Builder {
 public:
  Builder(const ElementProgram& program, const ElementShapes& shapes, DType dtype)
      : p_(program), shapes_(shapes), dtype_(dtype), loops_(std::make_unique<ElementLoops>()) {}

  Result<std::unique_ptr<ElementLoops>> Run() {
    HEDDLE_RETURN_IF_ERROR(MakePrototypes());
    FindRoots();
    FindCuts();
    FindPlaces();
    for (size_t c = 0; c + 1 < cuts_.size(); ++c)
      HEDDLE_RETURN_IF_ERROR(AddLoop(cuts_[c], cuts_[c + 1]));
    return std::move(loops_);
  }

 private:
  using Step = ElementProgram::Step;

  uint32_t ResultOf(uint32_t step) const { return p_.inputs + step; }
  uint32_t Operands(const Step& step) const { return p_.kinds[step.kind].operands; }

  Status MakePrototypes() {
    prototypes_.resize(p_.kinds.size());
    for (size_t k = 0; k < p_.kinds.size(); ++k) {
      if (p_.kinds[k].reduces || p_.kinds[k].reshapes) continue;
      size_t at = p_.kinds[k].first_number;
      const auto attrs = UnpackNumbers(*p_.kinds[k].def, *p_.numbers, &at);
      HEDDLE_RETURN_IF_ERROR(MakeTileStep(*p_.kinds[k].def, attrs, dtype_, &prototypes_[k]));
    }
    return Status::Ok();
  }

  bool Reduces(uint32_t step) const { return p_.kinds[p_.steps[step].kind].reduces; }

  bool Reshapes(uint32_t step) const { return p_.kinds[p_.steps[step].kind].reshapes; }

  // Finds for each value the one whose elements it has: for a reshape, that of its operand.
  void FindRoots() {
    root_.resize(p_.values());
    std::iota(root_.begin(), root_.end(), 0u);
    for (uint32_t s = 0; s < p_.steps.size(); ++s)
      if (Reshapes(s)) root_[ResultOf(s)] = root_[p_.steps[s].in[0]];
  }

  // A loop ends where the number of results changes, and before and after a reduction.
  void FindCuts() {
    const auto n = static_cast<uint32_t>(p_.steps.size());
    loop_of_.assign(p_.values(), kNone);
    uint32_t last = kNone;  // the last step that is no reshape
    for (uint32_t s = 0; s < n; ++s) {
      if (Reshapes(s)) continue;
      if (last == kNone || Reduces(s) || Reduces(last) ||
          shapes_.Of(ResultOf(s)).numel() != shapes_.Of(ResultOf(last)).numel())
        cuts_.push_back(s);
      last = s;
      loop_of_[ResultOf(s)] = static_cast<uint32_t>(cuts_.size() - 1);
    }
    cuts_.push_back(n);
  }

  // Operands, outputs, results of reductions, and what a later loop reads lie in memory.
  void FindPlaces() {
    place_of_.resize(p_.values());
    in_memory_.assign(p_.values(), false);
    for (uint32_t v = 0; v < p_.inputs; ++v) Put(v, {ElementPlace::kInput, v});
    for (uint32_t o = 0; o < p_.outs.size(); ++o) Put(p_.outs[o], {ElementPlace::kOutput, o});
    for (uint32_t s = 0; s < p_.steps.size(); ++s) {
      if (Reshapes(s)) continue;
      for (uint32_t k = 0; k < Operands(p_.steps[s]); ++k) {
        const uint32_t v = root_[p_.steps[s].in[k]];
        if (loop_of_[v] != loop_of_[ResultOf(s)]) PutBetween(v);
      }
      if (Reduces(s)) PutBetween(ResultOf(s));
    }
  }
  void PutBetween(uint32_t value) {
    if (in_memory_[value]) return;
    Put(value, {ElementPlace::kBetween, static_cast<uint32_t>(loops_->between.size())});
    loops_->between.push_back(shapes_.Of(value));
  }
  void Put(uint32_t value, ElementPlace place) {
    place_of_[value] = place;
    in_memory_[value] = true;
  }

  Status AddLoop(uint32_t begin, uint32_t end) {
    ElementLoop& loop = loops_->loops.emplace_back();
    loop.numel = shapes_.Of(ResultOf(begin)).numel();
    if (Reduces(begin)) return SetReduction(begin, &loop);
    last_use_.clear();
    for (uint32_t s = begin; s < end; ++s)
      for (uint32_t k = 0; k < Operands(p_.steps[s]); ++k) last_use_[root_[p_.steps[s].in[k]]] = s;
    registers_.clear();
    free_.clear();
    streams_.clear();
    spreads_.clear();
    kind_of_.clear();
    float work = kTraffic;
    loop.steps.reserve(end - begin);
    for (uint32_t s = begin; s < end; ++s) {
      if (Reshapes(s)) continue;
      HEDDLE_RETURN_IF_ERROR(AddStep(s, &loop));
      const float step = loop.steps.back().work;
      work += step <= kTraffic ? kLightStep : step;
    }
    Number(&loop);
    ChooseTile(&loop);
    const double tiles = 1 / (static_cast<double>(work) * static_cast<double>(loop.tile));
    loop.grain = std::max<int64_t>(1, static_cast<int64_t>(tiles));
    return Status::Ok();
  }

  Status SetReduction(uint32_t step, ElementLoop* loop) const {
    const uint32_t x = p_.steps[step].in[0];
    const Shape& shape = shapes_.Of(x);
    loop->reduce =
        FindRowReduction(p_.kinds[p_.steps[step].kind].def->name(), dtype_, shape.numel());
    const uint32_t all = (1u << shape.rank()) - 1, kept = (1u << (shape.rank() - p_.axes)) - 1;
    loop->reduce_plan = MakeReducePlan(shape.dims(), all & ~kept);
    loop->from = place_of_[root_[x]];
    loop->to = place_of_[ResultOf(step)];
    return Status::Ok();
  }

  // At first operands are numbered by kind; the upper bits say which kind it is.
  static constexpr uint32_t kSpread = 1u << 30, kStream = 2u << 30, kMark = 3u << 30;

  Status AddStep(uint32_t s, ElementLoop* loop) {
    const Step& from = p_.steps[s];
    TileStep step = prototypes_[from.kind];
    for (uint32_t k = 0; k < Operands(from); ++k) {
      HEDDLE_ASSIGN_OR_RETURN(step.in[k], Operand(s, k, loop));
    }
    // The result may take a register that is read for the last time here.
    for (uint32_t k = 0; k < Operands(from); ++k) {
      const uint32_t v = root_[from.in[k]];
      if (const auto it = registers_.find(v); it != registers_.end() && last_use_.at(v) == s) {
        free_.push_back(it->second);
        registers_.erase(it);
      }
    }
    const uint32_t result = ResultOf(s);
    if (in_memory_[result]) {
      step.out = StreamOf(result, loop);
      loop->streams[step.out & ~kMark].written = true;
    } else {
      step.out = registers_[result] = NewRegister(loop);
    }
    loop->steps.push_back(step);
    kind_of_.push_back(from.kind);
    return Status::Ok();
  }

  uint32_t NewRegister(ElementLoop* loop) {
    if (free_.empty()) return loop->registers++;
    const uint32_t r = free_.back();
    free_.pop_back();
    return r;
  }

  uint32_t StreamOf(uint32_t value, ElementLoop* loop) {
    const auto [it, added] =
        streams_.emplace(value, kStream | static_cast<uint32_t>(loop->streams.size()));
    if (added) loop->streams.push_back({place_of_[value]});
    return it->second;
  }

  Result<uint32_t> Operand(uint32_t s, uint32_t k, ElementLoop* loop) {
    const uint32_t v = p_.steps[s].in[k], root = root_[v];
    if (!in_memory_[root]) return registers_.at(root);
    const Shape& domain = shapes_.Of(ResultOf(s));
    if (shapes_.Of(v).numel() == domain.numel()) {
      const uint32_t at = StreamOf(root, loop);
      ElementLoop::Stream& stream = loop->streams[at & ~kMark];
      if (!stream.written) stream.read = true;
      return at;
    }
    return SpreadOf(v, p_.steps[s], loop, domain);
  }

  Result<uint32_t> SpreadOf(uint32_t value, const Step& step, ElementLoop* loop,
                            const Shape& domain) {
    const int64_t axis = p_.kinds[step.kind].axis;
    Shape x, y;
    if (!AlignShapes(shapes_.Of(step.in[0]), shapes_.Of(step.in[1]), axis, &x, &y))
      return Internal("operands of a fused loop do not fit");
    const Shape& shape = step.in[0] == value ? x : y;
    auto& known = spreads_[value];
    for (const KnownSpread& spread : known)
      if (spread.aligned == shape && spread.domain == domain) return spread.at;
    ElementLoop::Spread spread;
    spread.from = place_of_[root_[value]];
    HEDDLE_ASSIGN_OR_RETURN(spread.plan, MakeBroadcastPlan(domain, shape, -1));
    const uint32_t at = kSpread | static_cast<uint32_t>(loop->spreads.size());
    loop->spreads.push_back(spread);
    known.push_back({shape, domain, at});
    return at;
  }

  // Turns marked numbers into indices into the table.
  static void Number(ElementLoop* loop) {
    const auto spreads = static_cast<uint32_t>(loop->spreads.size());
    const auto index = [&](uint32_t marked) {
      const uint32_t n = marked & ~kMark;
      if ((marked & kMark) == kSpread) return loop->registers + n;
      return (marked & kMark) == kStream ? loop->registers + spreads + n : n;
    };
    for (TileStep& step : loop->steps) {
      for (uint32_t& in : step.in) in = index(in);
      step.out = index(step.out);
    }
  }

  static bool StandsStill(const ElementLoop::Spread& s) {  // along the last dimension
    return s.plan.y_strides[static_cast<size_t>(s.plan.rank - 1)] == 0;
  }

  // Which spreads all steps could take as one value, if tiles did not go over the ends of rows.
  std::vector<bool> FindOnes(const ElementLoop& loop) const {
    std::vector<bool> ones;
    for (const ElementLoop::Spread& s : loop.spreads) ones.push_back(StandsStill(s));
    const auto one = [&](uint32_t in) {
      const bool spread = in >= loop.registers && in - loop.registers < loop.spreads.size();
      return spread && ones[in - loop.registers];
    };
    for (size_t i = 0; i < loop.steps.size(); ++i) {
      const TileStep& step = loop.steps[i];
      if (p_.kinds[kind_of_[i]].operands != 2) continue;  // others have no spreads
      for (uint32_t k = 0; k < 2; ++k)
        if (one(step.in[k]) && (RepeatOf(kind_of_[i], k) == nullptr || one(step.in[1 - k])))
          ones[step.in[k] - loop.registers] = false;
    }
    return ones;
  }
  TileStep::Fn RepeatOf(uint32_t kind, uint32_t operand) const {
    return p_.kinds[kind].tile->repeat(dtype_, operand);
  }

  // The greatest part of `cols` up to `most` that is a multiple of `unit` and worth a tile; 0:
  // none.
  static int64_t PartOf(int64_t cols, int64_t unit, int64_t most, int64_t least = 64) {
    for (int64_t t = std::min(most, cols) / unit * unit; t >= least; t -= unit)
      if (cols % t == 0) return t;
    return 0;
  }

  // As long as the cache allows, and so that spreads need no filling: either no tile goes over the
  // end of a row, or tiles are a multiple of the periods with which operands repeat.
  void ChooseTile(ElementLoop* loop) const {
    const size_t tiles = std::max<size_t>(1, loop->registers + loop->spreads.size());
    const int64_t budget = static_cast<int64_t>(kTileMemory / (tiles * SizeOf(dtype_)));
    const int64_t most = std::clamp(budget & -TileStep::kGroup, TileStep::kGroup, kMostTile);
    const std::vector<bool> ones = FindOnes(*loop);
    int64_t cols = 0;  // common to the rows of single values; 0: there are none
    for (size_t i = 0; i < ones.size(); ++i)
      if (ones[i] && loop->spreads[i].plan.rank > 1)
        cols = std::gcd(cols, loop->spreads[i].plan.cols);
    const int64_t part = cols > 0 ? PartOf(cols, TileStep::kGroup, most) : 0;
    const int64_t unit = FillOnce(loop, part > 0 ? part : most, part > 0);
    const int64_t needed = (loop->numel + unit - 1) / unit * unit;
    loop->tile = part > 0 ? part : std::max(unit, std::min(most / unit * unit, needed));
    if (part == 0) FitRows(loop, unit);
    for (size_t i = 0; i < ones.size(); ++i)
      loop->spreads[i].one = ones[i] && (loop->spreads[i].plan.rank == 1 || part > 0);
    for (size_t i = 0; i < loop->steps.size(); ++i)
      for (uint32_t k = 0; k < 2; ++k)
        if (const uint32_t s = loop->steps[i].in[k] - loop->registers;
            k < p_.kinds[kind_of_[i]].operands && s < ones.size() && loop->spreads[s].one)
          loop->steps[i].fn = RepeatOf(kind_of_[i], k);
  }

  // Marks spreads that are the same in every tile of at most `most` elements, or of exactly so
  // many; returns what the tile must be a multiple of.
  static int64_t FillOnce(ElementLoop* loop, int64_t most, bool exact) {
    int64_t unit = TileStep::kGroup;
    for (ElementLoop::Spread& s : loop->spreads) {
      const int64_t period = PeriodOf(s.plan);
      const int64_t both = period == 0 ? 0 : std::lcm(unit, period);
      if (both == 0 || both > most || (exact && most % both != 0)) continue;
      if (!exact && IsBestInPlace(s, period, loop->numel)) continue;
      unit = both;
      s.filled_once = true;
    }
    return unit;
  }

  // Whether a row should be read in place. With few rows, each of whole groups, a tile filled with
  // copies of it would be read only once, right after it was written.
  static bool IsBestInPlace(const ElementLoop::Spread& s, int64_t period, int64_t numel) {
    return !StandsStill(s) && period == s.plan.cols && period >= kLongRow &&
           period % TileStep::kGroup == 0 && numel <= kFewPeriods * period;
  }

  // Makes a tile a part of a row if rows are read in place.
  static void FitRows(ElementLoop* loop, int64_t unit) {
    int64_t cols = 0;
    for (const ElementLoop::Spread& s : loop->spreads)
      if (!s.filled_once && !StandsStill(s)) cols = std::gcd(cols, s.plan.cols);
    if (cols == 0) return;
    const int64_t least = loop->numel <= kFewPeriods * cols ? kLongRow : 64;
    if (const int64_t part = PartOf(cols, unit, loop->tile, least); part > 0) loop->tile = part;
  }

  // After how many elements the spread operand begins anew; 0: not before the end.
  static int64_t PeriodOf(const BroadcastPlan& plan) {
    int64_t period = 1;
    bool still = true;  // from the front, dimensions along which it stands still
    for (int i = 0; i < plan.rank; ++i) {
      const auto k = static_cast<size_t>(i);
      still = still && plan.y_strides[k] == 0;
      if (!still) period *= plan.dims[k];
      if (period > kMostTile) return 0;
    }
    return period == plan.numel && plan.numel > 1 ? 0 : period;
  }

  const ElementProgram& p_;
  const ElementShapes& shapes_;
  const DType dtype_;
  std::unique_ptr<ElementLoops> loops_;
  std::vector<TileStep> prototypes_;  // per kind
  std::vector<uint32_t> cuts_;        // first step of each loop, and the end
  std::vector<uint32_t> root_;        // per value: see FindRoots
  std::vector<uint32_t> loop_of_;     // per value; kNone: an operand
  std::vector<ElementPlace> place_of_;
  std::vector<bool> in_memory_;
  // State of the loop that is being built:
  std::map<uint32_t, uint32_t> last_use_, registers_, streams_;
  struct KnownSpread {  // with reshapes, the steps of a loop have results of several shapes
    Shape aligned, domain;
    uint32_t at = 0;
  };
  std::map<uint32_t, std::vector<KnownSpread>> spreads_;
  std::vector<uint32_t> free_, kind_of_;  // free registers; of each step
};

}  // namespace

Result<std::unique_ptr<ElementLoops>> MakeElementLoops(const ElementProgram& program,
                                                       const ElementShapes& shapes, DType dtype) {
  auto loops = Builder(program, shapes, dtype).Run();
  if (!loops.ok()) return loops;
  (*loops)->dtype = dtype;
  for (ElementLoop& loop : (*loops)->loops) FindSmall(&loop);
  return loops;
}

}  // namespace heddle
