// A small strict JSON reader (RFC 8259) for untrusted files: depth and memory are bounded by the
// size of the input, nothing recurses, and texts without escapes are not copied.
//
//   HEDDLE_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(bytes));
//   std::string_view magic;
//   if (document.root()["base_code"]["magic"].Get(&magic)) …
//
// Ownership: a document refers to the bytes it was made of, and a Json to its document; both must
// outlive it. Threads: any may read. Errors: kDataLoss, with the position and what was expected
// there.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/status.h"

namespace heddle {

class JsonDocument;

// One value of a document, or the absence of one. Cheap to copy.
class Json {
 public:
  Json() = default;  // absent
  explicit operator bool() const { return document_ != nullptr; }

  bool is_object() const;
  bool is_array() const;
  bool is_number() const;
  // Elements of an array, members of an object; 0 for everything else.
  size_t size() const;
  // The member called `key`; absent where there is none, and in a value that is no object.
  Json operator[](std::string_view key) const;
  // The keys of an object in the order of the text; empty for any other value.
  std::vector<std::string_view> keys() const;

  // Gets the value; false, with *to unchanged, for a value of another kind. A number with a
  // fraction is no integer.
  bool Get(std::string_view* to) const;
  bool Get(int64_t* to) const;
  bool Get(double* to) const;
  bool Get(bool* to) const;

  // Iterates over the elements of an array; over nothing for any other value.
  class Iterator {
   public:
    Iterator(const JsonDocument* document, uint32_t at) : document_(document), at_(at) {}
    Json operator*() const { return {document_, at_}; }
    Iterator& operator++();
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const JsonDocument* document_;
    uint32_t at_;
  };
  Iterator begin() const;
  Iterator end() const;

 private:
  friend class JsonDocument;
  Json(const JsonDocument* document, uint32_t at) : document_(document), at_(at) {}

  const JsonDocument* document_ = nullptr;
  uint32_t at_ = 0;
};

class JsonDocument {
 public:
  // Nesting; PIR files need 12, and 6 more for each nested region.
  static constexpr size_t kMaxDepth = 1500;
  static constexpr size_t kMaxMembers = 64;             // of one object
  static constexpr size_t kMaxBytes = size_t{1} << 30;  // of the input

  static Result<JsonDocument> Parse(std::string_view bytes);

  JsonDocument(JsonDocument&&) = default;
  JsonDocument& operator=(JsonDocument&&) = default;
  Json root() const { return {this, 0}; }
  // The number of values and keys: an upper bound for any count that the document can state.
  size_t size() const { return nodes_.size(); }

 private:
  friend class Json;
  friend class JsonParser;

  enum class Kind : uint8_t { kNull, kBool, kInteger, kNumber, kText, kArray, kObject };
  // A value, in the order of the text. An array is followed by its elements, an object by its keys
  // and values in turns.
  struct Node {
    Kind kind = Kind::kNull;
    uint32_t size = 0;  // elements or members
    uint32_t next = 0;  // the node after this one and all its elements
    union {
      int64_t integer = 0;  // also holds a bool
      double number;
      const char* text;
    };
  };

  // A list in blocks: it is not copied while it grows, and its freed memory stays in the heap for
  // later work, where one large block would go back to the system.
  class Nodes {
   public:
    Node& Add() {
      if (size_ % kBlock == 0) blocks_.push_back(std::make_unique<Node[]>(kBlock));
      return (*this)[size_++];
    }
    Node& operator[](size_t i) { return blocks_[i / kBlock][i % kBlock]; }
    const Node& operator[](size_t i) const { return blocks_[i / kBlock][i % kBlock]; }
    size_t size() const { return size_; }

   private:
    static constexpr size_t kBlock = 1024;
    std::vector<std::unique_ptr<Node[]>> blocks_;
    size_t size_ = 0;
  };

  JsonDocument() = default;

  Nodes nodes_;
  std::deque<std::string> unescaped_;  // texts that had escapes
};

}  // namespace heddle
