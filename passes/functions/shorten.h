// Optimises a program of many equal layers by way of one with few of them: passes treat all inner
// layers alike, so the layers that were left out are put back as calls of the function that the
// others became.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/programs/ir.h"
#include "passes/pass_manager.h"

namespace heddle::passes {

struct Shortened {
  std::shared_ptr<const ir::Program> program;  // with the first kKeptLayers
  size_t layers = 0;                           // that there were
  // Names of the parameters that each layer has of its own, by layer and number.
  std::vector<std::vector<std::string>> parameters;
};

inline constexpr size_t kKeptLayers = 3;
inline constexpr size_t kLeastLayers = 6;  // of which some are left out

// nullopt: there are no such layers. They may exchange values only with their neighbours, and their
// own parameters are read nowhere else. `kept`: as for OutlineFunctions.
std::optional<Shortened> Shorten(const ir::Program& program, const std::set<ir::VarId>& kept);

// Makes of what passes made of the shortened program what they would have made of `before`, with
// the layers as calls (outline_functions.h). False: that is not certain, and `optimized` is of no
// use: the layers that are left are not equal, or passes have made the values of parameters that
// differ from layer to layer part of the program. `kept`: names that no call may hide.
bool Lengthen(const Shortened& shortened, const ir::Program& before, const Scope& scope,
              const std::set<std::string>& kept, Optimized* optimized);

}  // namespace heddle::passes
