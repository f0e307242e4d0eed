#include "partition/partition.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <unordered_set>

#include "core/error.h"
#include "core/programs/ir.h"
#include "formats/paddle/format.h"
#include "partition/improve.h"

namespace heddle::partition {
namespace {

using Clock = std::chrono::steady_clock;

// Groups the operators of one block, target by target.
class BlockWork {
 public:
  BlockWork(const Description& description, int block, const std::vector<Target>& targets)
      : graph_(description, block),
        targets_(targets),
        quotient_(graph_),
        claimed_(static_cast<size_t>(graph_.size())),
        owner_(static_cast<size_t>(graph_.size()), -1) {}

  BlockPartition Run() {
    BlockPartition result;
    result.block = graph_.block();
    result.operators = graph_.size();
    for (size_t t = 0; t < targets_.size(); ++t) {
      const Matches& matches = matches_.emplace_back(graph_, targets_[t]);
      auto& left = left_.emplace_back(static_cast<size_t>(graph_.size()), Left::kNo);
      std::vector<Group> groups = GroupGreedily(matches, &quotient_, &claimed_, &left);
      Improve(matches, &quotient_, &claimed_, &groups);
      std::sort(groups.begin(), groups.end(), [this](const Group& a, const Group& b) {
        return graph_.place(a.ops[0]) < graph_.place(b.ops[0]);
      });
      Measure measure(matches);
      for (const Group& group : groups) {
        result.groups.push_back(Describe(group, static_cast<int>(t), &measure));
        result.groups_cost += result.groups.back().cost;
        const auto index = static_cast<int>(result.groups.size()) - 1;
        for (const OpIndex i : group.ops) owner_[static_cast<size_t>(i)] = index;
        for (const OpIndex i : group.helpers) owner_[static_cast<size_t>(i)] = index;
      }
    }
    for (OpIndex i = 0; i < graph_.size(); ++i) {
      if (owner_[static_cast<size_t>(i)] >= 0) continue;
      result.host_cost += matches_[0].host_cost(i);
      result.rest.push_back({i, std::string(graph_.type(i)), ReasonOf(i)});
    }
    return result;
  }

 private:
  std::vector<std::string> NamesOf(const std::vector<ValueId>& values) const {
    std::vector<std::string> names;
    std::unordered_set<VarId> seen;  // the versions of a variable share a name
    for (const ValueId v : values)
      if (seen.insert(graph_.value(v).var).second) names.emplace_back(graph_.var(v).name);
    return names;
  }

  PlacedGroup Describe(const Group& group, int t, Measure* measure) const {
    const Boundary boundary = measure->BoundaryOf(group);
    PlacedGroup placed;
    placed.target = t;
    placed.operators.assign(group.ops.begin(), group.ops.end());
    for (const UnitId unit : group.units)
      placed.units.push_back(
          targets_[static_cast<size_t>(t)].units[static_cast<size_t>(unit)].name);
    placed.helpers.assign(group.helpers.begin(), group.helpers.end());
    placed.inputs = NamesOf(boundary.inputs);
    placed.outputs = NamesOf(boundary.outputs);
    placed.cost = measure->CostOf(group, boundary);
    return placed;
  }

  std::string ReasonOf(OpIndex i) const {
    if (graph_.never(i) != Never::kNo) return std::string(Reason(graph_.never(i)));
    std::string text;
    for (size_t t = 0; t < targets_.size(); ++t)
      text += (t == 0 ? "" : "; ") + ReasonOf(i, matches_[t], left_[t][static_cast<size_t>(i)]);
    return text;
  }

  std::string ReasonOf(OpIndex i, const Matches& matches, Left left) const {
    const Target& target = matches.target();
    if (matches.helper(i)) return HelperReason(i, target);
    if (!matches.taken(i)) return matches.WhyNot(i);
    std::string units;
    for (const Choice& choice : matches.choices(i))
      units += (units.empty() ? "" : ", ") + target.units[static_cast<size_t>(choice.unit)].name;
    switch (left) {
      case Left::kUnreachable:
        return StrCat("no unit of ", target.name, " that takes it (", units,
                      ") can be reached from a start unit");
      case Left::kLimits:
        return StrCat("alone it already breaks the limits of inputs or outputs of ", target.name);
      case Left::kSmall:
        return StrCat("its group would be smaller than min_group of ", target.name, ", ",
                      target.limits.min_group);
      case Left::kCostly:
        return StrCat("its group on ", target.name, " would cost as much as the host, or more");
      case Left::kNo:
        break;
    }
    return StrCat("unit ", units, " of ", target.name,
                  " takes it, and the whole is better with it on the host");
  }

  std::string HelperReason(OpIndex i, const Target& target) const {
    const std::string helper = "a helper of " + target.name;
    int group = -1;
    bool read = false;
    for (const Use& use : graph_.writes(i)) {
      if (graph_.value(use.value).kept) return helper + " whose result is needed outside";
      for (const OpIndex r : graph_.readers(use.value)) {
        const int other = owner_[static_cast<size_t>(r)];
        if (other < 0)
          return StrCat(helper, ", and operator ", r, " (", std::string(graph_.type(r)),
                        "), which reads it, is in no group");
        if (read && other != group) return helper + " whose readers are in several groups";
        group = other;
        read = true;
      }
    }
    return read ? helper + " that does not fit into the group of its readers"
                : helper + " that nothing reads";
  }

  const Graph graph_;
  const std::vector<Target>& targets_;
  Quotient quotient_;
  Claimed claimed_;
  std::vector<int> owner_;  // of each operator: an index into the result's groups
  std::deque<Matches> matches_;
  std::vector<std::vector<Left>> left_;
};

}  // namespace

Result<std::string> ProgramBytesOf(const Program& program) {
  const ir::Program& ir = program.ir();
  // Uses the file's bytes, since in a newly written program operators would have other indices.
  if (const auto* file = dynamic_cast<const paddle::ProgramBytes*>(ir.source.get());
      file != nullptr && ir.as_parsed())
    return file->serialized();
  return program.Serialize("paddle");
}

Result<Partition> PartitionBytes(std::string_view program_desc,
                                 const std::vector<Target>& targets) {
  if (targets.empty()) return InvalidArgument("no target is named");
  for (size_t t = 0; t < targets.size(); ++t)
    for (size_t other = 0; other < t; ++other)
      if (targets[t].name == targets[other].name)
        return InvalidArgument("two targets are called '", targets[t].name, "'");
  HEDDLE_ASSIGN_OR_RETURN(const Description description, Description::Parse(program_desc));
  const auto start = Clock::now();
  Partition partition;
  for (const Target& target : targets) partition.targets.push_back(target.name);
  for (size_t b = 0; b < description.blocks().size(); ++b)
    partition.blocks.push_back(BlockWork(description, static_cast<int>(b), targets).Run());
  partition.ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return partition;
}

}  // namespace heddle::partition
