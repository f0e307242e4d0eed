// A call of an engine's function: whatever it returns, throws or leaves undone comes out as a
// Status that names the engine.
#pragma once

#include <array>
#include <exception>
#include <new>
#include <string>

#include "core/error.h"
#include "heddle/heddle_engine.h"

namespace heddle::offload {

constexpr size_t kMessageRoom = 1024;

// What an engine wrote to a message, on one line, whatever it wrote.
std::string TextOf(const char* message, size_t room);

// The status of a call of `what`, which is about `about` (as in "refuses the group"). `stops`:
// whether the engine was told to stop.
Status StatusOf(const std::string& engine, const char* what, const char* about, int status,
                const char* message, size_t room, bool stops = false);

// Calls fn(message, room) and makes a Status of what it returns or throws. `stops()` is asked
// behind the call.
template <typename Fn, typename Stops>
Status Guarded(const std::string& engine, const char* what, const char* about, Fn&& fn,
               Stops&& stops) {
  std::array<char, kMessageRoom> message{};
  try {
    const int status = fn(message.data(), message.size());
    return StatusOf(engine, what, about, status, message.data(), message.size(), stops());
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("engine ", engine, " has no memory left in ", what);
  } catch (const std::exception& e) {
    return Internal("engine ", engine, " threw in ", what, ": ", e.what());
  } catch (...) {
    return Internal("engine ", engine, " threw something that is no std::exception in ", what);
  }
}
// Of calls that nothing stops.
template <typename Fn>
Status Guarded(const std::string& engine, const char* what, Fn&& fn) {
  return Guarded(engine, what, what, fn, [] { return false; });
}

}  // namespace heddle::offload
