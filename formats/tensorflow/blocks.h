// Branches and loops in the draft, whose values may be lists and handles.
#pragma once

#include <vector>

#include "formats/lowering/regions.h"
#include "formats/tensorflow/node_lowering.h"

namespace heddle::tensorflow {

// Whether values of this kind say themselves what they are, so that nothing is moved for them.
inline bool IsHandle(Kind kind) { return kind != Kind::kTensor && kind != Kind::kList; }

using formats::Assign;
using formats::CopyOf;
using formats::LikeVar;
using formats::RunIf;
using formats::RunWhile;

// Whether a value of shape `other` fits what is known of `shape`.
bool Covers(const Shape& shape, const Shape& other);
// The shape that is known of a value which has one of these two.
Shape Joined(const Shape& shape, const Shape& other);

// One bool: whether a condition of any type holds.
int TruthOf(NodeLowering& n, int condition);

// The variable of the block outside that has what `block` gives as `v`.
int Deliver(NodeLowering& n, int v, int block);
// One of the delivered values, by number.
int Chosen(NodeLowering& n, const std::vector<int>& values, int number);

// A value that a loop carries: the node and the number by which Revisions know it.
struct Carried {
  int var = kNoDraft;
  const Node* node = nullptr;
  size_t number = 0;
  bool keeps_rank = false;  // the file says so
};

// A variable in which a loop carries `v`, with the rank that it begins with, unless it is known to
// have others later.
int CarryIn(NodeLowering& n, int v, const Node& node, size_t number);
// At the end of a body, the next values go where the loop carries them, all at once.
void CarryOn(NodeLowering& n, const std::vector<Carried>& carried, std::vector<int> next);

}  // namespace heddle::tensorflow
