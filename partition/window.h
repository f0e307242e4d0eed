// The best grouping of a few operators while all others stay as they are: all sets of them that
// make a legal group, the cheapest sequence of units for each, and the best choice of disjoint
// sets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "partition/groups.h"
#include "partition/quotient.h"

namespace heddle::partition {

// The value of a grouping; less is better.
struct Score {
  // Objective cover: the number of groups, minus a large number per operator in a group.
  int64_t key = 0;
  double cost = 0;
  static constexpr int64_t kCovered = 1 << 20;

  friend Score operator+(const Score& a, const Score& b) {
    return {a.key + b.key, a.cost + b.cost};
  }
  // Whether it is better by more than rounding.
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

  // The best grouping of `ops`: operators that a unit takes and helpers, at most kMostInWindow,
  // which are in no group of the quotient. nullopt: no grouping is better than `present`, or
  // `budget`, in steps, is exhausted. The steps taken are subtracted from the budget.
  std::optional<std::vector<Group>> Best(std::span<const OpIndex> ops, const Score& present,
                                         int64_t* budget);

 private:
  friend class Window;
  // Tables of all operators, so that a window need not allocate its own. An entry is valid in the
  // round in which it was written.
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
  Table<int> values_;        // among those that cross the window's boundary or lie in it
  Table<uint32_t> reached_;  // of nodes outside: the items that reach them
};

}  // namespace heddle::partition
