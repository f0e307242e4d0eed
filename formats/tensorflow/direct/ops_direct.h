// Operators that heddle has under TensorFlow's name: slots, attributes and outputs are in
// TensorFlow's order, and absent attributes have the operator's defaults.
#pragma once

#include <string_view>

#include "formats/lowering/words.h"
#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {

// Makes heddle's operator `type` of the node, with the node's inputs in order; a list slot takes
// those that the other slots leave. False: there is no such operator.
bool LowerDirect(NodeLowering& n, std::string_view type);

// The same with `inputs`: the variables of the slots in order; kNoDraft: absent.
bool LowerDirect(NodeLowering& n, std::string_view type, const std::vector<int>& inputs);

// The same for an operator whose slots and attributes have names of their own.
bool LowerInWords(NodeLowering& n, const formats::Words& words, const std::vector<int>& inputs);

// The node's attributes, as heddle's operator declares them.
Attrs AttributesIn(NodeLowering& n, const OpDef& def, const formats::Words& words);

// Sets the dtype of a variable whose operator determines it only at run time.
void SayDType(NodeLowering& n, int v, DType dtype);

// Makes `v` output `output`, of the TensorFlow type of `like` if v's dtype can hold that type.
void ResultLike(NodeLowering& n, size_t output, int v, int like);

// Transposes `v`; for constants, passes compute the result.
int Permuted(NodeLowering& n, int v, const Ints& perm);

}  // namespace heddle::tensorflow
