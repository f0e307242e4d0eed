// Copies of parameters in a kernel's own layout, made once while several threads prepare kernels.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "core/kernel_context.h"
#include "core/memory/buffer_slab.h"
#include "core/memory/lazy_buffer.h"

namespace heddle {

// Memory for such copies: they live as long as the plans that share them. Throws std::bad_alloc.
inline BufferRef PackMemory(const PrepareContext& ctx, size_t bytes) {
  BufferRef memory = PackSlab(ctx.packs(), 0, ctx.lean())->Allocate(bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}

// The copy of `source` called `key`, shared through the plans' cache. The first to ask makes it
// with fill(T*), which reads `source` by BorrowedContents and fills the new T's `memory`, all that
// a T holds; others who ask for the same one meanwhile wait, those who ask for another one do not.
// If the cache has a store and the file of `source` is known, the copy is looked up there first.
// T::kPackingVersion is part of a copy's name in the store, which outlives the build: raise it when
// the same `source` and `key` give other bytes. Threads: any. `fill` may throw: the next to ask
// tries again.
template <typename T, typename Fill>
std::shared_ptr<const T> PackOnceInParts(const PrepareContext& ctx, const Tensor& source,
                                         const std::string& key, Fill&& fill) {
  struct Entry {
    std::once_flag once;
    T value;
  };
  // The cache is locked only while an empty entry is put in.
  const auto entry = ctx.packs().Get<Entry>(source, key, [] { return new Entry; });
  auto& e = const_cast<Entry&>(*entry);  // written under its flag alone
  std::call_once(e.once, [&] {
    PackStore* const store = ctx.packs().store();
    const ContentsOrigin origin = store != nullptr ? OriginOf(source) : ContentsOrigin();
    if (!origin.file) return fill(&e.value);
    const std::string kept =
        key + " v" + std::to_string(T::kPackingVersion) + ' ' + source.shape().ToString();
    e.value.memory =
        store->Find(origin, kept, [&](size_t bytes) { return PackMemory(ctx, bytes); });
    if (e.value.memory) return;
    fill(&e.value);
    store->Keep(origin, kept, e.value.memory);
  });
  return {entry, &entry->value};
}

// The same with fill(source in memory, T*).
template <typename T, typename Fill>
std::shared_ptr<const T> PackOnce(const PrepareContext& ctx, const Tensor& source,
                                  const std::string& key, Fill&& fill) {
  return PackOnceInParts<T>(ctx, source, key,
                            [&](T* to) { fill(BorrowedContents(source).tensor(), to); });
}

// Bytes of a parameter to read at once when it is packed part by part.
inline constexpr int64_t kPackBytes = 512 << 10;

}  // namespace heddle
