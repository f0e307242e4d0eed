// ONNX's operators in the words of heddle's operators of the same meaning.
#pragma once

#include "formats/lowering/words.h"
#include "formats/onnx/node_lowering.h"

namespace heddle::onnx {

// Where an entry names inputs, a node may have the attributes that the entry names, and no others;
// one that is an input of heddle's operator becomes a constant. Where it names none, slots and
// attributes have ONNX's names. Null: the node has an operator of its own name, or there is none.
const formats::Words* FindWords(const Node& node);

}  // namespace heddle::onnx
