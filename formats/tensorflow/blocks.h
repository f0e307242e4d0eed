// Branches and loops in the draft, whose values may be lists and handles.
#pragma once

#include <vector>

#include "formats/lowering/regions.h"
#include "formats/tensorflow/node_lowering.h"

namespace heddle::tensorflow {

// Whether variables of this kind are handles: the reader resolves them, so no operator copies them.
inline bool IsHandle(Kind kind) { return kind != Kind::kTensor && kind != Kind::kList; }

using formats::Assign;
using formats::CopyOf;
using formats::LikeVar;
using formats::RunIf;
using formats::RunWhile;

// Whether a value of shape `other` agrees with what is known of `shape`.
bool Covers(const Shape& shape, const Shape& other);
// The common shape of values of these two shapes, as far as it is known.
Shape Joined(const Shape& shape, const Shape& other);

// A bool scalar: whether a condition of any type is true.
int TruthOf(NodeLowering& n, int condition);

// A variable of the present block for the value that `block`, which lies inside, computes as `v`.
int Deliver(NodeLowering& n, int v, int block);
// Selects one of the delivered values by number.
int Chosen(NodeLowering& n, const std::vector<int>& values, int number);

// A variable that a loop carries, and the node and number by which Revisions knows it.
struct Carried {
  int var = kNoDraft;
  const Node* node = nullptr;
  size_t number = 0;
  bool keeps_rank = false;  // as the file declares
};

// Makes the variable in which a loop carries `v`. It has the rank of `v`, unless Revisions knows
// that it gets other ranks later.
int CarryIn(NodeLowering& n, int v, const Node& node, size_t number);
// At the end of a body, assigns the next values to the carried variables, as if all at once.
void CarryOn(NodeLowering& n, const std::vector<Carried>& carried, std::vector<int> next);

}  // namespace heddle::tensorflow
