// Operators that heddle has under TensorFlow's name: slots, attributes and outputs stand in
// TensorFlow's order, and what a file leaves out has the operator's default.
#pragma once

#include <string_view>

#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {

// Makes `type`, heddle's operator for the node. The inputs are the node's, in order; a slot that
// takes a list takes what the others leave. False: there is no such operator.
bool LowerDirect(NodeLowering& n, std::string_view type);

// The same with these inputs. Variables of the slots in order; kNoDraft: left out.
bool LowerDirect(NodeLowering& n, std::string_view type, const std::vector<int>& inputs);

// The dtype of a variable whose operator tells it when it runs.
void SayDType(NodeLowering& n, int v, DType dtype);

// Output `output` is `v`, of the TensorFlow type of `like` where that is held in v's dtype.
void ResultLike(NodeLowering& n, size_t output, int v, int like);

}  // namespace heddle::tensorflow
