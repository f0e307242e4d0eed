// From an ElementProgram and its shapes to a loop over rows: which values are registers, and how
// each step reads values of which there is one a row or one a column.
#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/tile_ops.h"
#include "kernels/fused/row_loop.h"

namespace heddle {
namespace {

constexpr size_t kBlockMemory = 24 << 10;     // what a block touches should fit into the cache
constexpr int64_t kMostElements = 1024;       // of a block: what is longer saves nothing
constexpr int64_t kShortRow = 128;            // of no whole groups: several make a block
constexpr float kElement = 1.0f / (1 << 15);  // work (TileStep) of access to an element

int64_t WholeGroups(int64_t n) { return (n + TileStep::kGroup - 1) & -TileStep::kGroup; }

class RowBuilder {
 public:
  using Extent = RowLoop::Extent;
  using Where = RowLoop::Where;
  using Action = RowLoop::Action;

  RowBuilder(const ElementProgram& program, const ElementShapes& shapes, DType dtype)
      : p_(program), shapes_(shapes), dtype_(dtype), size_(SizeOf(dtype)) {}

  Result<std::unique_ptr<RowLoop>> Run() {
    HEDDLE_RETURN_IF_ERROR(FindRows());
    HEDDLE_RETURN_IF_ERROR(FindExtents());
    HEDDLE_RETURN_IF_ERROR(MakePrototypes());
    // A block's size depends on the number of registers, which hardly depends on the size: a first
    // build counts them.
    HEDDLE_RETURN_IF_ERROR(Build(1));
    HEDDLE_RETURN_IF_ERROR(Build(BlockFor(full_registers_ + Streams())));
    HEDDLE_RETURN_IF_ERROR(CheckColumns());
    ChooseGrain();
    return std::move(loop_);
  }

 private:
  using Step = ElementProgram::Step;
  const ElementProgram::Kind& KindOf(const Step& s) const { return p_.kinds[s.kind]; }
  uint32_t ResultOf(size_t step) const { return p_.inputs + static_cast<uint32_t>(step); }

  // All reductions are of values of one shape.
  Status FindRows() {
    for (const Step& s : p_.steps) {
      if (KindOf(s).reshapes) return InvalidArgument("rows are given another shape");
      if (!KindOf(s).reduces) continue;
      const Shape& x = shapes_.Of(s.in[0]);
      if (domain_ == nullptr) domain_ = &x;
      if (!(x == *domain_))
        return InvalidArgument("rows of ", domain_->ToString(), " and of ", x.ToString(),
                               " are reduced");
    }
    if (domain_ == nullptr) return InvalidArgument("no step reduces rows");
    const int at = domain_->rank() - p_.axes;
    rows_ = domain_->Product(0, at);
    cols_ = domain_->Product(at, domain_->rank());
    return Status::Ok();
  }

  // Whether a step repeats values of this shape along rows when it combines them with elements.
  bool StandAtRows(const Shape& s) const {
    const int at = domain_->rank() - p_.axes;
    if (s.rank() != domain_->rank()) return s.numel() == 1;
    for (int i = 0; i < s.rank(); ++i)
      if (s[i] != (i < at ? (*domain_)[i] : 1)) return false;
    return true;
  }

  Result<Extent> ExtentOf(const Shape& s) const {
    const Shape& d = *domain_;
    const int at = d.rank() - p_.axes;
    if (s == d) return RowLoop::kFull;
    if (s.numel() == 1) return RowLoop::kOne;
    bool column = s.rank() <= d.rank();
    // A dimension of a row that it lacks would be repeated within each row.
    for (int i = at; i < d.rank() - s.rank() && column; ++i) column = d[i] == 1;
    for (int i = 0; i < s.rank() && column; ++i) {
      const int in = i + d.rank() - s.rank();
      column = s[i] == (in < at ? 1 : d[in]);
    }
    if (StandAtRows(s)) return RowLoop::kRow;
    if (column) return RowLoop::kColumn;
    return InvalidArgument("an operand of shape ", s.ToString(),
                           " has no value for each element, row or column of ", d.ToString());
  }

  Status FindExtents() {
    for (uint32_t v = 0; v < p_.inputs; ++v) {
      HEDDLE_ASSIGN_OR_RETURN(const Extent e, ExtentOf(shapes_.Of(v)));
      extents_.push_back(e);
    }
    for (const Step& s : p_.steps) {
      bool full = false, row = false, column = false;
      for (uint32_t k = 0; k < KindOf(s).operands; ++k) {
        full = full || extents_[s.in[k]] == RowLoop::kFull;
        row = row || extents_[s.in[k]] == RowLoop::kRow;
        column = column || extents_[s.in[k]] == RowLoop::kColumn;
      }
      full = full || (row && column);
      if (KindOf(s).reduces) full = false, row = true;
      HEDDLE_RETURN_IF_ERROR(CheckResult(s, full, row));
      extents_.push_back(full ? RowLoop::kFull : RowLoop::kRow);
    }
    return Status::Ok();
  }

  // The result has the shape that operands of each extent give it in this loop.
  Status CheckResult(const Step& s, bool full, bool row) const {
    const Shape& out = shapes_.Of(ResultOf(static_cast<size_t>(&s - p_.steps.data())));
    bool fits = full ? out == *domain_ : row && out.numel() == rows_;
    const ElementProgram::Kind& kind = KindOf(s);
    for (uint32_t k = 0; k < kind.operands && full; ++k)
      fits = fits && (extents_[s.in[k]] != RowLoop::kRow || StandAtRows(shapes_.Of(s.in[k])));
    if (kind.broadcasts && kind.axis >= 0) {  // operands of other ranks are aligned at the end
      const int a = shapes_.Of(s.in[0]).rank(), b = shapes_.Of(s.in[1]).rank();
      fits = fits && (a == b || kind.axis + std::min(a, b) == std::max(a, b));
    }
    if (fits) return Status::Ok();
    return InvalidArgument("a step's result of shape ", out.ToString(),
                           " does not go with rows of ", domain_->ToString());
  }

  // An output may lie in the memory of any operand of its size. If that operand is a column, later
  // blocks read it again, after results of one value per row have overwritten it.
  Status CheckColumns() const {
    if (extents_[p_.outs[0]] != RowLoop::kRow || rows_ != cols_ || loop_->block >= rows_)
      return Status::Ok();
    const auto inputs = std::span(extents_).first(p_.inputs);
    if (std::find(inputs.begin(), inputs.end(), RowLoop::kColumn) == inputs.end())
      return Status::Ok();
    return InvalidArgument("the first result may lie in the memory of an operand of ", cols_,
                           " columns");
  }

  Status MakePrototypes() {
    prototypes_.resize(p_.kinds.size());
    for (size_t k = 0; k < p_.kinds.size(); ++k) {
      if (p_.kinds[k].reduces) continue;
      size_t at = p_.kinds[k].first_number;
      const auto attrs = UnpackNumbers(*p_.kinds[k].def, *p_.numbers, &at);
      HEDDLE_RETURN_IF_ERROR(MakeTileStep(*p_.kinds[k].def, attrs, dtype_, &prototypes_[k]));
    }
    return Status::Ok();
  }

  // Tensors with a value for each element.
  size_t Streams() const {
    size_t n = 0;
    for (uint32_t v = 0; v < p_.inputs; ++v) n += extents_[v] == RowLoop::kFull;
    for (const uint32_t v : p_.outs) n += extents_[v] == RowLoop::kFull;
    return n;
  }

  bool Aligned() const { return cols_ % TileStep::kGroup == 0; }

  int64_t BlockFor(size_t tiles) const {
    if (!Aligned() && cols_ > kShortRow) return 1;
    const size_t row =
        std::max<size_t>(1, tiles) * static_cast<size_t>(std::max<int64_t>(cols_, 1)) * size_;
    const int64_t most = std::min(static_cast<int64_t>(kBlockMemory / row),
                                  kMostElements / std::max<int64_t>(cols_, 1));
    return std::clamp<int64_t>(most, 1, std::max<int64_t>(rows_, 1));
  }

  Status Build(int64_t block) {
    loop_ = std::make_unique<RowLoop>();
    loop_->dtype = dtype_;
    loop_->rows = rows_;
    loop_->cols = cols_;
    loop_->block = block;
    loop_->apart = !Aligned();
    full_registers_ = 0;
    free_full_.clear();
    spread_.clear();
    filled_.clear();
    place_.assign(p_.values(), 0);
    last_use_.assign(p_.values(), 0);
    for (size_t s = 0; s < p_.steps.size(); ++s)
      for (uint32_t k = 0; k < KindOf(p_.steps[s]).operands; ++k) last_use_[p_.steps[s].in[k]] = s;
    for (uint32_t v = 0; v < p_.inputs; ++v) place_[v] = PlaceOfInput(v);
    out_of_.assign(p_.values(), -1);
    for (size_t o = 0; o < p_.outs.size(); ++o) out_of_[p_.outs[o]] = static_cast<int>(o);
    for (size_t s = 0; s < p_.steps.size(); ++s) AddStep(s);
    ListPlaces();
    return Status::Ok();
  }

  void ListPlaces() {
    std::vector<bool> padded(loop_->places.size(), false);
    for (const Action& a : loop_->actions)
      for (size_t k = 0; k <= a.operands && a.what == Action::kStep; ++k)
        padded[a.at[k]] = padded[a.at[k]] || a.extent == RowLoop::kRow;
    for (uint32_t i = 0; i < loop_->places.size(); ++i) {
      const Where where = loop_->places[i].where;
      const bool tensor = where == RowLoop::kInput || where == RowLoop::kOutput;
      if (where == RowLoop::kTaken) loop_->taken.push_back(i);
      if (where == RowLoop::kGiven) loop_->given.push_back(i);
      if (tensor) loop_->moving.push_back(i);
      if (where == RowLoop::kFilled) loop_->filled.push_back(i);
      if (!tensor && (padded[i] || loop_->apart)) loop_->padded.push_back(i);
    }
  }

  uint32_t Add(Where where, Extent extent, Extent tensor, uint32_t slot) {
    RowLoop::Place place{where, extent, tensor, slot, 0};
    if (where != RowLoop::kInput && where != RowLoop::kOutput) {
      const int64_t elements =
          WholeGroups(extent == RowLoop::kFull ? loop_->block * cols_ : loop_->block);
      place.offset = loop_->work_bytes;
      loop_->work_bytes += (static_cast<size_t>(elements) * size_ + 63) / 64 * 64;
      full_registers_ += extent == RowLoop::kFull;
    }
    loop_->places.push_back(place);
    return static_cast<uint32_t>(loop_->places.size() - 1);
  }

  uint32_t PlaceOfInput(uint32_t v) {
    const Extent e = extents_[v];
    switch (e) {
      case RowLoop::kFull:
        return Add(loop_->apart ? RowLoop::kTaken : RowLoop::kInput, e, e, v);
      case RowLoop::kRow:
        return Add(RowLoop::kTaken, e, e, v);
      case RowLoop::kColumn:
        if (loop_->apart) return Add(RowLoop::kFilled, RowLoop::kFull, e, v);
        break;
      case RowLoop::kOne:
        break;
    }
    return Add(RowLoop::kInput, e, e, v);
  }

  Extent At(uint32_t place) const { return loop_->places[place].extent; }

  // A register of one value per row or element, filled from `v`, which has fewer values.
  uint32_t SpreadOf(uint32_t v, Extent to) {
    if (extents_[v] == RowLoop::kOne || extents_[v] == RowLoop::kColumn) {
      const auto [it, added] = filled_.emplace(std::pair(v, to), 0);
      if (added) it->second = Add(RowLoop::kFilled, to, extents_[v], v);
      return it->second;
    }
    const auto it = spread_.find(v);
    if (it != spread_.end()) return it->second;
    Action action;
    action.what = Action::kSpread;
    action.operands = 1;
    action.at = {place_[v], Add(RowLoop::kRegister, RowLoop::kFull, RowLoop::kFull, 0)};
    loop_->actions.push_back(action);
    return spread_[v] = action.at[1];
  }

  void AddStep(size_t s) {
    const Step& from = p_.steps[s];
    const ElementProgram::Kind& kind = KindOf(from);
    Action action;
    action.operands = static_cast<uint8_t>(kind.operands);
    action.extent = extents_[ResultOf(s)];
    for (uint32_t k = 0; k < kind.operands; ++k) action.at[k] = place_[from.in[k]];
    if (kind.reduces) {
      action.what = Action::kReduce;
      action.reduce = FindRowReduction(kind.def->name(), dtype_, rows_ * cols_);
    } else {
      action.step = prototypes_[from.kind];
      Read(from, &action);
      for (uint32_t k = 0; k < TileStep::kMaxIn; ++k) action.step.in[k] = k;
      action.step.out = kind.operands;
    }
    for (uint32_t k = 0; k < kind.operands; ++k) Release(from.in[k], s);
    action.at[kind.operands] = place_[ResultOf(s)] = PlaceOfResult(ResultOf(s), kind.reduces);
    loop_->actions.push_back(action);
  }

  // A step reads one operand that has fewer values than its result as one value, row by row or for
  // all of the block; other such operands are spread.
  void Read(const Step& from, Action* action) {
    const ElementProgram::Kind& kind = KindOf(from);
    const Extent result = action->extent;
    bool one_taken = false, rows = false;
    for (uint32_t k = 0; k < kind.operands; ++k) {
      const uint32_t v = from.in[k];
      const Extent e = At(place_[v]);
      if (e == result) continue;
      if (e == RowLoop::kColumn) {
        rows = true;
        continue;
      }
      const TileStep::Fn repeat =
          kind.operands == 2 ? kind.tile->repeat(dtype_, k) : TileStep::Fn(nullptr);
      const bool row_by_row = e == RowLoop::kRow;
      if (repeat == nullptr || one_taken || from.in[0] == from.in[1] ||
          (row_by_row && loop_->apart && loop_->block > 1)) {
        action->at[k] = SpreadOf(v, result);
        continue;
      }
      one_taken = true;
      action->step.fn = repeat;
      rows = rows || row_by_row;
    }
    if (rows) action->what = Action::kEachRow;
  }

  // The result may take a register that is read for the last time.
  void Release(uint32_t v, size_t step) {
    if (v < p_.inputs || last_use_[v] != step || out_of_[v] >= 0) return;
    if (At(place_[v]) != RowLoop::kFull) return;
    if (std::find(free_full_.begin(), free_full_.end(), place_[v]) == free_full_.end())
      free_full_.push_back(place_[v]);
  }

  // Whether steps read `v` in whole groups of rows; the last group may be incomplete.
  bool ReadInGroups(uint32_t v) const {
    return std::any_of(p_.steps.begin(), p_.steps.end(), [&](const Step& s) {
      const auto at = static_cast<size_t>(&s - p_.steps.data());
      const auto operands = std::span(s.in).first(KindOf(s).operands);
      return extents_[ResultOf(at)] == RowLoop::kRow &&
             std::find(operands.begin(), operands.end(), v) != operands.end();
    });
  }

  uint32_t PlaceOfResult(uint32_t v, bool reduced) {
    const Extent e = extents_[v];
    if (const int out = out_of_[v]; out >= 0) {
      const bool in_place = e == RowLoop::kFull ? !loop_->apart : reduced && !ReadInGroups(v);
      return Add(in_place ? RowLoop::kOutput : RowLoop::kGiven, e, e, static_cast<uint32_t>(out));
    }
    if (e == RowLoop::kFull && !free_full_.empty()) {
      const uint32_t place = free_full_.back();
      free_full_.pop_back();
      return place;
    }
    return Add(RowLoop::kRegister, e, e, 0);
  }

  void ChooseGrain() {
    float work = kElement;
    for (const Action& a : loop_->actions)
      work += a.what == Action::kReduce    ? kElement
              : a.extent == RowLoop::kFull ? std::max(a.step.work, kElement / 4)
                                           : 0.0f;
    const double elements = static_cast<double>(loop_->block) * static_cast<double>(cols_);
    loop_->grain = std::max<int64_t>(
        1, static_cast<int64_t>(1 / (static_cast<double>(work) * std::max(elements, 1.0))));
  }

  const ElementProgram& p_;
  const ElementShapes& shapes_;
  const DType dtype_;
  const size_t size_;
  const Shape* domain_ = nullptr;
  int64_t rows_ = 0, cols_ = 0;
  std::vector<Extent> extents_;       // of each value
  std::vector<TileStep> prototypes_;  // of each kind
  // State of the loop that is being built:
  std::unique_ptr<RowLoop> loop_;
  std::vector<uint32_t> place_;  // of each value
  std::vector<size_t> last_use_;
  std::vector<int> out_of_;  // of each value; -1: none
  std::vector<uint32_t> free_full_;
  std::unordered_map<uint32_t, uint32_t> spread_;  // places by value
  std::map<std::pair<uint32_t, Extent>, uint32_t> filled_;
  size_t full_registers_ = 0;
};

}  // namespace

Result<std::unique_ptr<RowLoop>> MakeRowLoop(const ElementProgram& program,
                                             const ElementShapes& shapes, DType dtype) {
  return RowBuilder(program, shapes, dtype).Run();
}

}  // namespace heddle
