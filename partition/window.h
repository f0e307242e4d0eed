// The best grouping of a few operators, all others left as they are: every set of them that makes a
// legal group, the cheapest sequence of units for each, and the best choice of sets that do not
// overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "partition/groups.h"
#include "partition/quotient.h"

namespace heddle::partition {

// What a grouping is worth; less is better.
struct Score {
  int64_t key = 0;  // objective cover: groups, less a large number for each operator covered
  double cost = 0;
  static constexpr int64_t kCovered = 1 << 20;

  friend Score operator+(const Score& a, const Score& b) {
    return {a.key + b.key, a.cost + b.cost};
  }
  // Better by more than rounding.
  bool BetterThan(const Score& other) const;
};
Score ScoreOfGroup(const Target& target, size_t ops, double cost);
Score ScoreOfHost(double cost);

// The most operators and helpers that a window may have.
inline constexpr size_t kMostInWindow = 14;

// Finds such groupings, one after another. Ownership: refers to the matches and the quotient.
// Threads: one at a time.
class WindowSolver {
 public:
  WindowSolver(const Matches& matches, const Quotient& quotient);

  // `ops`: in no group of the quotient; operators that a unit takes, and helpers; at most
  // kMostInWindow. Nothing where no grouping is better than `present`, or where `budget`, in steps,
  // does not suffice. The budget is reduced by what was spent.
  std::optional<std::vector<Group>> Best(std::span<const OpIndex> ops, const Score& present,
                                         int64_t* budget);

 private:
  friend class Window;
  // Tables for all operators, so that a window need not make its own. A number counts in the round
  // that it was written in.
  template <typename T>
  class Table {
   public:
    explicit Table(size_t size) : rounds_(size), items_(size) {}
    void NextRound() { ++round_; }
    T* Find(size_t i) { return rounds_[i] == round_ ? &items_[i] : nullptr; }
    void Set(size_t i, T item) {
      rounds_[i] = round_;
      items_[i] = item;
    }

   private:
    std::vector<uint32_t> rounds_;
    std::vector<T> items_;
    uint32_t round_ = 0;
  };

  const Matches& matches_;
  const Quotient& quotient_;
  Table<int> places_;        // of operators in the window
  Table<int> values_;        // among those that the window passes on
  Table<uint32_t> reached_;  // of nodes outside: what reaches them
};

}  // namespace heddle::partition
