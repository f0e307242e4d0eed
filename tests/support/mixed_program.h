// Random programs of what lets schedules, memory and places disagree: nested loops and branches,
// variables that are written again and in place, aliases and views, arrays, updated parameters,
// random numbers, operators with side effects, products and normalisations. There is no model of
// the results: ways to run one program are compared with each other.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {

class MixedProgram {
 public:
  // `steps`: about as many operators as are drawn; 0: some dozen. Blocks add theirs.
  explicit MixedProgram(uint32_t seed, int steps = 0);

  const std::string& bytes() const { return bytes_; }
  std::vector<heddle::Feed> Feeds() const;
  std::shared_ptr<Scope> NewScope() const;
  const std::vector<std::string>& parameters() const { return parameters_; }
  // Operators of each type, all blocks together.
  std::map<std::string, int> OpCounts() const;

 private:
  // What is visible from one block but not outside it, and what the block takes from outside.
  struct Level {
    std::map<std::string, Shape> own;
    std::set<std::string> read, written;
  };

  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  bool Chance(int percent) { return Pick(100) < percent; }
  std::string Name(const char* stem) { return stem + std::to_string(++names_); }
  std::vector<std::string> Visible(const Shape& shape) const;
  std::string Any(const Shape& shape);
  std::string Target(const Shape& shape);
  void Uses(const std::string& name, bool writes);
  void Emit(const std::string& type, const Slots& ins, const Slots& outs, const Attrs& attrs = {});

  void Start();
  void Steps(int count);
  void Step();
  void Unary(const Shape& shape);
  void Binary(const Shape& shape);
  void Joined();
  void Product();
  void Normalised(const Shape& shape);
  void Moved();
  void Alias(const Shape& shape);
  void Drawn(const Shape& shape);
  void Array();
  void Update();
  void Checked();
  void Branch();
  void Loop();
  Level Body(int block);
  void End();
  void Annotate();

  std::mt19937 rng_;
  ProgramBuilder builder_;
  std::vector<Level> levels_;
  std::vector<std::string> parameters_;
  int names_ = 0;
  bool flags_[2] = {false, false};
  std::string bytes_;
};

}  // namespace heddle::testing
