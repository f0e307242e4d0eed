// Guard: turns exceptions into a Status.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>

#include "core/error.h"
#include "core/interrupts.h"

namespace heddle {

// Calls `fn` and returns its Status, or a Status for what it threw. For calls of kernels. Does not
// throw.
template <typename Fn>
Status Guard(Fn&& fn) {
  try {
    return fn();
  } catch (const Interrupted& e) {
    return e.status;
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted(e.what());
  } catch (const std::invalid_argument& e) {
    return InvalidArgument(e.what());
  } catch (const std::length_error& e) {  // a container that no memory could hold
    return ResourceExhausted("more elements than memory can hold: ", e.what());
  } catch (const std::exception& e) {
    return Internal("the kernel threw: ", e.what());
  } catch (...) {
    return Internal("the kernel threw something that is no std::exception");
  }
}

}  // namespace heddle
