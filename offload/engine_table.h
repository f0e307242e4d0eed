// What an engine's table has to be. Seen by the process engine's worker, too, which says the same
// of it as heddle would: no heddle but the interface is needed.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "heddle/heddle_engine.h"

// A member that the table of this size has, and that is not left out.
#define HEDDLE_HAS(table, member)                                                      \
  ((table)->size >= offsetof(heddle_engine_table, member) + sizeof((table)->member) && \
   (table)->member != nullptr)

namespace heddle::offload {

// Which flags heddle does not know; empty: none. Not to heed one might give wrong results.
inline std::string UnknownFlags(uint32_t flags) {
  constexpr uint32_t kKnown = HEDDLE_ENGINE_REENTRANT | HEDDLE_ENGINE_WANTS_ONNX |
                              HEDDLE_ENGINE_ONE_RUN | HEDDLE_ENGINE_SAVES_LATER |
                              HEDDLE_ENGINE_TAKES_MANY | HEDDLE_ENGINE_RESTORES_ALONE |
                              HEDDLE_ENGINE_KEEPS_SAVED;
  const uint32_t unknown = flags & ~kKnown;
  return unknown == 0
             ? ""
             : "the engine has flags that this heddle does not know: " + std::to_string(unknown);
}

// Why an engine with this table cannot be used; empty: it can.
inline std::string WhyNoEngine(const heddle_engine_table* table) {
  const std::string here = std::to_string(HEDDLE_ENGINE_VERSION);
  if (table == nullptr) return "has no engine for version " + here + " of the interface";
  const bool has_version =
      table->size >= offsetof(heddle_engine_table, version) + sizeof(table->version);
  if (has_version && table->version != HEDDLE_ENGINE_VERSION)
    return "the engine is made for version " + std::to_string(table->version) +
           " of the interface, and this heddle has version " + here;
  for (const auto& [has, what] :
       {std::pair(HEDDLE_HAS(table, name), "name"), std::pair(HEDDLE_HAS(table, open), "open"),
        std::pair(HEDDLE_HAS(table, compile), "compile"), std::pair(HEDDLE_HAS(table, run), "run"),
        std::pair(HEDDLE_HAS(table, free_module), "free_module"),
        std::pair(HEDDLE_HAS(table, close), "close")})
    if (!has) return std::string("the engine's table lacks '") + what + "'";
  const bool fingerprint = HEDDLE_HAS(table, fingerprint), save = HEDDLE_HAS(table, save),
             restore = HEDDLE_HAS(table, restore);
  if (fingerprint != save || save != restore)
    return "the engine's table has not all of 'fingerprint', 'save' and 'restore', nor none";
  return UnknownFlags(table->flags);
}

}  // namespace heddle::offload
