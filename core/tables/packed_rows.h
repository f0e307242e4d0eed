// PackedRows: a table of strings laid out by the compiler, so that starting a program neither
// builds nor relocates it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle {

template <size_t kRows, size_t kColumns>
using TextRows = const std::string_view[kRows][kColumns];

template <size_t kRows, size_t kColumns>
constexpr size_t BytesOfRows(TextRows<kRows, kColumns>& rows) {
  size_t bytes = 0;
  for (const auto& row : rows)
    for (const std::string_view text : row) bytes += text.size();
  return bytes;
}

// A copy of `rows`, which must be sorted by their first column, as one string and offsets. An array
// of views would be relocated whenever a program starts. Immutable; any thread may search.
//
//   constexpr std::string_view kText[][3] = {{"abs", "X", "Out"}, ...};
//   constexpr PackedRows<std::size(kText), 3, BytesOfRows(kText)> kTable(kText);
template <size_t kRows, size_t kColumns, size_t kBytes>
class PackedRows {
 public:
  using Row = std::array<std::string_view, kColumns>;

  explicit constexpr PackedRows(TextRows<kRows, kColumns>& rows) {
    uint32_t at = 0;
    size_t cell = 0;
    for (const auto& row : rows) {
      for (const std::string_view text : row) {
        starts_[cell++] = at;
        Copy(text, at);
        at += static_cast<uint32_t>(text.size());
      }
    }
    starts_[cell] = at;
  }

  static constexpr size_t size() { return kRows; }
  constexpr std::string_view Cell(size_t row, size_t column) const {
    const uint32_t* start = &starts_[row * kColumns + column];
    return {text_.data() + start[0], start[1] - start[0]};
  }
  constexpr Row operator[](size_t row) const {
    Row cells;
    for (size_t column = 0; column < kColumns; ++column) cells[column] = Cell(row, column);
    return cells;
  }
  // The first row whose first column is not less than `key`; size(): there is none.
  constexpr size_t LowerBound(std::string_view key) const {
    size_t low = 0, high = kRows;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (Cell(middle, 0) < key)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  // Whether the first column of `row`, from LowerBound(), equals `key`.
  constexpr bool Is(size_t row, std::string_view key) const {
    return row < kRows && Cell(row, 0) == key;
  }

 private:
  constexpr void Copy(std::string_view text, size_t at) {
#ifdef __clang__
    // Clang limits the steps of a constant expression, and counts this as one.
    if (!text.empty()) __builtin_memcpy(text_.data() + at, text.data(), text.size());
#else
    for (size_t i = 0; i < text.size(); ++i) text_[at + i] = text[i];
#endif
  }

  std::array<char, kBytes> text_{};
  std::array<uint32_t, kRows * kColumns + 1> starts_{};
};

}  // namespace heddle
