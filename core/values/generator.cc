#include "heddle/generator.h"

#include <locale>
#include <sstream>

#include "core/error.h"

namespace heddle {

void Generator::Seed(uint64_t seed) {
  std::seed_seq sequence({seed});  // uses its lower 32 bits, as Paddle does
  const std::lock_guard lock(mutex_);
  engine_.seed(sequence);
}

std::string Generator::State() const {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << Engine();
  return std::move(out).str();
}

Status Generator::SetState(const std::string& state) {
  std::istringstream in(state);
  in.imbue(std::locale::classic());
  std::mt19937_64 engine;
  in >> engine;
  std::string more;
  if (in.fail() || in >> more) return DataLoss("not the state of a random number generator");
  SetEngine(engine);
  return Status::Ok();
}

std::mt19937_64 Generator::Engine() const {
  const std::lock_guard lock(mutex_);
  return engine_;
}

void Generator::SetEngine(const std::mt19937_64& engine) {
  const std::lock_guard lock(mutex_);
  engine_ = engine;
}

}  // namespace heddle
