// Scopes in scopes: what they find, how they go, and who may call them meanwhile.
#include "heddle/scope.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/lock_or_leave.h"
#include "heddle/limits.h"
#include "heddle/params.h"

namespace heddle {
namespace {

// A call that waits for itself ends the test's process.
class Alarm {
 public:
  Alarm() { ::alarm(60); }
  ~Alarm() { ::alarm(0); }
};

Tensor Number(float v) {
  Tensor t = Tensor::Empty(DType::kF32, Shape{1});
  t.mutable_data<float>()[0] = v;
  return t;
}

// Trees of scopes beside maps: whatever is set and erased, each scope finds what is nearest.
TEST(Scope, FindsWhatIsNearest) {
  std::mt19937_64 random(61);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 40; ++round) {
    std::vector<std::shared_ptr<Scope>> scopes{std::make_shared<Scope>()};
    std::vector<size_t> parent{0};
    std::vector<std::map<std::string, std::optional<float>>> known(1);
    for (int step = 0; step < 200; ++step) {
      const size_t at = below(scopes.size());
      const std::string name(1, static_cast<char>('a' + below(4)));
      const uint64_t before = scopes[at]->version();
      switch (below(6)) {
        case 0:
          scopes.push_back(std::make_shared<Scope>(scopes[at]));
          parent.push_back(at);
          known.emplace_back();
          break;
        case 1:
          scopes[at]->Set(name, Value(Number(static_cast<float>(step))));
          known[at][name] = static_cast<float>(step);
          EXPECT_GT(scopes[at]->version(), before);
          break;
        case 2:
          scopes[at]->Erase(name);
          known[at].erase(name);
          EXPECT_GT(scopes[at]->version(), before);
          break;
        case 3:
          scopes[at]->Ensure(name);
          known[at].try_emplace(name);
          break;
        case 4: {
          const Scope::Stamp stamp = scopes[at]->StampOf(name);
          scopes[at]->MarkWritten(name);
          EXPECT_EQ(scopes[at]->StampOf(name) == stamp, stamp.value == nullptr);
          break;
        }
        default:
          EXPECT_EQ(&scopes[at]->write_mutex(), &scopes[0]->write_mutex());
      }
      size_t up = at;
      while (up != 0 && known[up].count(name) == 0) up = parent[up];
      const auto found = known[up].find(name);
      const Value* const value = scopes[at]->Find(name);
      ASSERT_EQ(value != nullptr, found != known[up].end());
      const bool has = value != nullptr && found->second.has_value();
      EXPECT_EQ(value != nullptr && value->initialized(), has);
      if (has) {
        EXPECT_EQ(value->tensor().data<float>()[0], *found->second);
      }
      EXPECT_EQ(scopes[at]->Names().size(), known[at].size());
    }
  }
}

// A chain of scopes, held at any of its links, by any number of threads.
TEST(Scope, AChainOfScopesGoesInAnyOrder) {
  std::mt19937_64 random(62);
  for (const size_t depth : {1, 2, 7, 100, 1000}) {
    std::vector<std::vector<std::shared_ptr<Scope>>> held(3);
    std::shared_ptr<Scope> last = std::make_shared<Scope>();
    last->Set("a", Value(Number(5)));
    const std::weak_ptr<Scope> root = last;
    for (size_t k = 0; k < depth; ++k) {
      last = std::make_shared<Scope>(std::move(last));
      if (random() % (1 + depth / 5) == 0) held[random() % held.size()].push_back(last);
    }
    EXPECT_NE(last->Find("a"), nullptr);
    EXPECT_EQ(last->StampOf("b").value, nullptr);
    EXPECT_EQ(last->version(), root.lock()->version());
    last->MarkWritten("b");
    EXPECT_EQ(&last->write_mutex(), &root.lock()->write_mutex());
    held[0].push_back(std::move(last));
    std::vector<std::thread> threads;
    for (auto& mine : held) {
      std::shuffle(mine.begin(), mine.end(), random);
      threads.emplace_back([&mine] {
        while (!mine.empty()) {
          EXPECT_EQ(mine.back()->Find("a")->tensor().data<float>()[0], 5);
          mine.pop_back();
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(root.expired());
  }
}

// Memory that was lent goes back by its owner's function, which may use the scope it came from.
TEST(Scope, WhoLentMemoryMayCallBack) {
  const Alarm alarm;
  std::mt19937_64 random(63);
  auto scope = std::make_shared<Scope>();
  auto kid = std::make_shared<Scope>(scope);
  static float memory[4];
  int lent = 0, back = 0;
  const auto lend = [&] {
    ++lent;
    return Value(Tensor::Wrap(memory, DType::kF32, Shape{4}, [&] {
      ++back;
      EXPECT_LE(scope->Names().size(), 4u);
      EXPECT_GE(kid->version(), scope->version());
      kid->Find("a");
      if (back % 3 == 0) scope->Set("called", Value(Number(1)));
      if (back % 3 == 1) scope->Erase("called");
    }));
  };
  for (int step = 0; step < 300; ++step) {
    const std::string name(1, static_cast<char>('a' + random() % 3));
    Scope& at = random() % 2 ? *scope : *kid;
    if (random() % 3 == 0)
      at.Erase(name);
    else
      at.Set(name, lend());
  }
  for (Scope* at : {scope.get(), kid.get()})
    for (const std::string& name : at->Names()) at->Erase(name);
  EXPECT_GT(lent, 100);
  EXPECT_EQ(back, lent);
}

// A call of the host during work that holds the write_mutex is refused it at once, and only there.
TEST(Scope, ACallOfTheHostDoesNotWaitForItsOwnWork) {
  const Alarm alarm;
  std::mt19937_64 random(64);
  auto root = std::make_shared<Scope>();
  auto kid = std::make_shared<Scope>(root);
  Scope other;
  for (int round = 0; round < 50; ++round) {
    const bool holds = random() % 2 == 0;
    int calls = 0;
    HostCalls host([&] {
      ++calls;
      EXPECT_EQ(HoldWrites(random() % 2 ? *root : *kid).ok(), !holds);
      EXPECT_TRUE(HoldWrites(other).ok());
      if (!holds) return Status::Ok();
      const Status refused = HoldWrites(*root).status();
      EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
      return Status::Ok();
    });
    {
      const LimitScope limits({.host = &host});
      std::optional<ScopeWrites> writes;
      if (holds) writes.emplace(HoldWrites(*kid).value());
      host.Request();
      LookForInterrupt();
    }
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(HoldWrites(*root).ok());  // and it was given back
  }
}

// Who waits for it leaves at the deadline, and holds nothing.
TEST(Scope, AWaitForTheWritesEnds) {
  const Alarm alarm;
  Scope scope;
  {
    const auto held = HoldWrites(scope);
    std::thread([&] {
      const LimitScope limits(
          {.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20)});
      EXPECT_EQ(HoldWrites(scope).status().code(), StatusCode::kDeadlineExceeded);
    }).join();
  }
  EXPECT_TRUE(HoldWrites(scope).ok());
}

// Locks that are let go of in any order are known as long as they are held.
TEST(HeldMutexes, KnowsWhatIsHeld) {
  std::mt19937_64 random(65);
  std::vector<std::unique_ptr<std::mutex>> mutexes;
  for (int k = 0; k < 12; ++k) mutexes.push_back(std::make_unique<std::mutex>());
  std::map<size_t, HeldMutex> held;
  for (int step = 0; step < 2000; ++step) {
    const size_t k = random() % mutexes.size();
    if (held.erase(k) == 0) held.emplace(k, HoldOrLeave(*mutexes[k]));
    for (size_t i = 0; i < mutexes.size(); ++i)
      EXPECT_EQ(HeldMutexes::Has(*mutexes[i]), held.count(i) > 0);
  }
}

}  // namespace
}  // namespace heddle
