// Random programs of what lets schedules, memory and places disagree: nested loops and branches,
// variables that are written again and in place, storages with several names and parts, views,
// arrays, rows, updated parameters, random numbers, operators with side effects, operands of which
// only the shape is read, shapes that depend on values, other layouts, products and normalisations,
// named places and copies between places. There is no model of the results: ways to run one program
// are compared with each other.
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
  // `steps`: about as many operators as are drawn; 0: some dozen. Blocks add theirs. `scale` > 1:
  // tensors have scale^2 times as many elements, and most of the work is in one loop.
  explicit MixedProgram(uint32_t seed, int steps = 0, int scale = 1);

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
    // How the block uses a storage of several names that lies outside it.
    struct Use {
      std::string name;  // the first one
      bool several = false, written = false;
    };
    std::map<int, Use> uses;  // by storage
  };

  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  bool Chance(int percent) { return Pick(100) < percent; }
  std::string Name(const char* stem) { return stem + std::to_string(++names_); }
  std::vector<std::string> Visible(const Shape& shape, bool writes = false) const;
  size_t LevelOf(const std::string& name) const;
  // An operator that runs blocks may not let them write to one name of a storage and use another.
  bool MayUse(const std::string& name, bool writes) const;
  void NoteUse(const std::string& name, bool writes);
  int StorageOf(const std::string& name);
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
  void SharedBuffers();
  void Parts();
  void OfShape();
  void OfUnknownSize();
  void Convolved();
  void Rows();
  void Copied(const Shape& shape);
  void Drawn(const Shape& shape);
  void Array();
  void Update();
  void Checked();
  void Branch();
  void Loop();
  Level Body(int block);
  void End();
  void Annotate();

  const int64_t scale_;
  const Shape flat_, wide_, tall_, square_, row_;
  const Shape parts_;  // a flat and a wide tensor in one
  const Shape table_;
  std::mt19937 rng_;
  ProgramBuilder builder_;
  std::vector<Level> levels_;
  std::vector<std::string> parameters_;
  std::map<std::string, int> storages_;  // of the names that share one
  std::set<std::string> only_read_;      // a block's names of what lies outside it
  int names_ = 0, storage_count_ = 0;
  bool flags_[2] = {false, false};
  std::string bytes_;
};

}  // namespace heddle::testing
