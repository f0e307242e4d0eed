// The distance of two processors.
#pragma once

namespace heddle::tools {

// Nanoseconds between a signal that one of the first two processors the process may use gives the
// other and its answer: the median of some thousand. Some 60 where the two share a cache, several
// times that where they do not; a virtual machine may be moved from one to the other. 0: there is
// one processor only. Takes some milliseconds.
double MeasureRoundTripNs();

}  // namespace heddle::tools
