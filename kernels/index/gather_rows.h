// Gathering and scattering rows by index: the engine behind gather, lookup tables, index_select, …
//
// A tensor is seen as [outer, axis, inner]; indices pick along the middle. Indices are checked
// before anything is read or written.
#pragma once

#include "core/kernel_context.h"

namespace heddle {

struct IndexRange {
  int64_t size = 0;        // legal indices are [0, size) …
  bool wrap = false;       // … and [-size, 0), counted from the end
  int64_t padding = -1;    // an index that stands for a row of zeros (>= 0: on)
  bool allow_any = false;  // out-of-range indices are zeros too (negative ones included)
};

// Error naming the slot and the first bad index.
Status CheckIndices(const Tensor& index, const IndexRange& range, const char* slot);

// dst[o, i, :] = src[o, index[i], :], rows of `inner` bytes. Precondition: CheckIndices was fine.
void GatherRows(const KernelContext& ctx, const void* src, const Tensor& index,
                const IndexRange& range, int64_t outer, int64_t inner, void* dst);

// dst[o, index[i], :] += src[o, i, :], rows of `inner` elements of `dtype`; in the order of i, so
// that the sums do not depend on threads. Rows of range.padding are skipped. Error for dtypes that
// cannot be added.
Status ScatterAddRows(const KernelContext& ctx, const void* src, const Tensor& index,
                      const IndexRange& range, int64_t outer, int64_t inner, DType dtype,
                      void* dst);
// dst[o, index[i], :] = src[o, i, :], rows of `inner` bytes; the last of equal indices stays.
void ScatterRows(const KernelContext& ctx, const void* src, const Tensor& index,
                 const IndexRange& range, int64_t outer, int64_t inner, void* dst);

}  // namespace heddle
