#include "tools/plans/tvm_graph.h"

#include <map>

namespace heddle::tools {
namespace {

// DLPack's device types.
constexpr int kDlCpu = 1, kDlCuda = 2, kDlExtension = 12;

int DeviceTypeOf(const std::string& place) {
  return place == "cpu" ? kDlCpu : place.starts_with("cuda") ? kDlCuda : kDlExtension;
}

class Writer {
 public:
  explicit Writer(const PlanDescription& plan) : plan_(plan) {}

  Result<Json> Run() {
    for (const auto& port : plan_.feeds) {
      if (Status s = AddNull(port.slot); !s.ok()) return s;
    }
    // In the order in which one thread could follow.
    for (size_t k = 0; k < plan_.instructions.size(); ++k) {
      const size_t i = k < plan_.order.size() ? static_cast<size_t>(plan_.order[k]) : k;
      if (Status s = Add(plan_.instructions[i]); !s.ok()) return s;
    }
    Json heads = Json::array();
    for (const auto& port : plan_.fetches) {
      const int slot = RootOf(port.slot);
      if (entry_of_.find(slot) == entry_of_.end())
        if (Status s = AddNull(slot); !s.ok()) return s;
      heads.push_back(Entry(slot));
    }
    Json graph;
    graph["nodes"] = std::move(nodes_);
    graph["arg_nodes"] = std::move(arg_nodes_);
    graph["heads"] = std::move(heads);
    Json& attrs = graph["attrs"];
    attrs["dltype"] = {"list_str", std::move(dltypes_)};
    attrs["device_index"] = {"list_int", std::move(devices_)};
    attrs["storage_id"] = {"list_int", std::move(storages_)};
    attrs["shape"] = {"list_shape", std::move(shapes_)};
    graph["node_row_ptr"] = std::move(rows_);
    return graph;
  }

 private:
  // Views are the value that they look at: reading one is reading its base.
  int RootOf(int slot) const {
    const auto& s = plan_.slots[static_cast<size_t>(slot)];
    return s.storage == "view" && s.base >= 0 ? s.base : slot;
  }
  Json Entry(int slot) const {
    const auto& [node, index] = entry_of_.at(slot);
    return {node, index, 0};
  }

  Status AddValue(int slot, int node, int index, const std::string& whose) {
    const auto& s = plan_.slots[static_cast<size_t>(slot)];
    if (!s.is_static)
      return Status(StatusCode::kUnimplemented,
                    "TVM's graph needs every shape ahead of time; "
                    "that of '" +
                        s.variable + "' (" + whose + ") is found while running");
    entry_of_[slot] = {node, index};
    dltypes_.push_back(std::string(Name(s.dtype)));
    shapes_.push_back(std::vector<int64_t>(s.shape.begin(), s.shape.end()));
    storages_.push_back(s.storage_id);
    devices_.push_back(DeviceTypeOf(s.place));
    return Status::Ok();
  }

  Status AddNull(int slot) {
    const int node = static_cast<int>(nodes_.size());
    const std::string& name = plan_.slots[static_cast<size_t>(slot)].variable;
    nodes_.push_back({{"op", "null"}, {"name", name}, {"inputs", Json::array()}});
    arg_nodes_.push_back(node);
    if (Status s = AddValue(slot, node, 0, "a feed or parameter"); !s.ok()) return s;
    rows_.push_back(rows_.back().get<int>() + 1);
    return Status::Ok();
  }

  Status Add(const PlanDescription::Instruction& in) {
    if (in.block != 0 || !in.blocks.empty())
      return Status(StatusCode::kUnimplemented,
                    "TVM's graph has no blocks; " + in.op + " runs some");
    Json inputs = Json::array();
    for (int slot : in.inputs) {
      if (slot < 0) continue;
      const int root = RootOf(slot);
      if (entry_of_.find(root) == entry_of_.end())
        if (Status s = AddNull(root); !s.ok()) return s;
      inputs.push_back(Entry(root));
    }
    const int node = static_cast<int>(nodes_.size());
    int outputs = 0;
    std::string first;
    for (int slot : in.outputs) {
      if (slot < 0) continue;
      if (first.empty()) first = plan_.slots[static_cast<size_t>(slot)].variable;
      if (Status s = AddValue(slot, node, outputs++, in.op); !s.ok()) return s;
    }
    Json attrs = {{"func_name", in.op},
                  {"num_inputs", std::to_string(inputs.size())},
                  {"num_outputs", std::to_string(outputs)},
                  {"flatten_data", "0"}};
    if (!in.implementation.empty()) attrs["implementation"] = in.implementation;
    nodes_.push_back({{"op", "tvm_op"},
                      {"name", first.empty() ? in.op : first},
                      {"attrs", std::move(attrs)},
                      {"inputs", std::move(inputs)}});
    rows_.push_back(rows_.back().get<int>() + outputs);
    return Status::Ok();
  }

  const PlanDescription& plan_;
  std::map<int, std::pair<int, int>> entry_of_;  // per slot: node and output
  Json nodes_ = Json::array(), arg_nodes_ = Json::array(), rows_ = {0};
  Json dltypes_ = Json::array(), shapes_ = Json::array(), storages_ = Json::array(),
       devices_ = Json::array();
};

}  // namespace

Result<Json> TvmGraph(const PlanDescription& plan) { return Writer(plan).Run(); }

}  // namespace heddle::tools
