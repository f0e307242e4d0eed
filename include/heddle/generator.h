// Generator: random numbers that go on from run to run.
//
// Operators whose `seed` is 0 draw from it in program order: the values of Paddle's CPU generator
// after `paddle.seed(seed)`, bit by bit. Threads: runs that share one must not overlap, otherwise
// each of them may draw the same numbers; the object stays valid in any case only when the caller
// sees to that.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "heddle/status.h"

namespace heddle {

class Generator {
 public:
  explicit Generator(uint64_t seed = 0) { Seed(seed); }
  void Seed(uint64_t seed);

  // The generator's state as text; a generator that is given this text continues from there.
  std::string State() const;
  // Changes nothing unless `state` is a text of State().
  Status SetState(const std::string& state);

  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace heddle
