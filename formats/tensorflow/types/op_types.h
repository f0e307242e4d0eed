// The element types of the operands and outputs of TensorFlow's operators, by their definitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensorflow/model.h"
#include "heddle/shape.h"

namespace heddle::tensorflow {

// Attributes say into how many parts a value is split: the most of one operator, and of all
// operators of a graph together.
inline constexpr int64_t kMostOutputs = 1 << 17, kMostOutputsOfGraph = 1 << 19;

// Finds an attribute of a node by name; null: the node does not have it.
using FindAttribute = std::function<const Attribute*(std::string_view)>;

// The element type (DataType, without reference) of output `port`, counted over all of the
// operator's outputs, lists included. kNoType: the operator is not in the table, or has no such
// output.
int DefinedType(std::string_view op, size_t port, const FindAttribute& find);

// The number of outputs of each of the operator's `arguments` output arguments: 1, or the length of
// a list, from the node's attributes; -1: the attributes do not say it, or the operator is not in
// the table.
std::vector<int> DefinedCounts(std::string_view op, size_t arguments, const FindAttribute& find);

// The element type of an input by its number, from the definition of the operator that makes it;
// kNoType: not known.
using InputType = std::function<int(size_t)>;
// How a node's types contradict its operator's definition: an attribute names a type that the
// operator does not allow, or one of the `inputs`, by their names in the graph, has another type
// than the attributes say. Empty: no contradiction, or the operator is not in the table.
std::string FindWrongType(std::string_view op, std::span<const std::string_view> inputs,
                          const FindAttribute& find, const InputType& type_of);

// How the number of a node's inputs or its attributes, other than types, contradict the operator's
// definition; empty: they do not.
std::string FindWrongForm(std::string_view op, size_t inputs, const FindAttribute& find);

// The ranks that input `i` may have, by the operator's shape function in TensorFlow.
struct RankRange {
  int least = 0, most = Shape::kMaxRank;
};
RankRange RanksOf(std::string_view op, size_t i);

// The same by the operator's kernel, of a node with so many inputs.
RankRange KernelRanksOf(std::string_view op, size_t i, size_t inputs);
// An attribute whose value the operator's kernel refuses; empty: none.
std::string FindWrongValue(std::string_view op, const FindAttribute& find);

// Whether input `i` holds indices, sizes or axes that may be integers of fewer than 32 bits.
bool TakesNarrowIndices(std::string_view op, size_t i);

}  // namespace heddle::tensorflow
