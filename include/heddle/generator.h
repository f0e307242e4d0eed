// Generator: random numbers that continue from run to run.
//
// Operators whose `seed` is 0 draw from it in program order: exactly the values of Paddle's CPU
// generator after `paddle.seed(seed)`. Threads: any, except for engine(). Overlapping runs that
// share one may draw the same numbers: each begins with the state that it finds.
#pragma once

#include <cstdint>
#include <mutex>
#include <random>
#include <string>

#include "heddle/status.h"

namespace heddle {

class Generator {
 public:
  explicit Generator(uint64_t seed = 0) { Seed(seed); }
  Generator(const Generator& other) : engine_(other.Engine()) {}
  Generator& operator=(const Generator& other) {
    if (this != &other) SetEngine(other.Engine());
    return *this;
  }
  void Seed(uint64_t seed);

  // The state as text; a generator with this state continues from there.
  std::string State() const;
  // Sets the state; an error, without a change, unless `state` is a text of State().
  Status SetState(const std::string& state);

  // Returns a copy of the engine; replaces the engine.
  std::mt19937_64 Engine() const;
  void SetEngine(const std::mt19937_64& engine);
  // Precondition: no other thread uses the generator.
  std::mt19937_64& engine() { return engine_; }

 private:
  mutable std::mutex mutex_;
  std::mt19937_64 engine_;
};

}  // namespace heddle
