// Along a line of AxisLines, element by element.
#pragma once

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"

namespace heddle {

// fn(i, element) for the elements of a line, with a look for interrupts now and then.
template <typename Fn>
void AlongLine(const AxisLines& lines, int64_t line, Fn&& fn) {
  int64_t at = lines.Begin(line);
  for (const auto part : Stretches(lines.n))
    for (int64_t i = part.begin; i < part.end; ++i, at += lines.inner) fn(i, at);
}

}  // namespace heddle
