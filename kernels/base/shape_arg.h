// Output shapes that a program gives as an attribute or as integer tensors.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "core/shapes.h"

namespace heddle {

// The elements of an integer tensor operand; an error names the slot when it is no integer.
Result<Ints> ReadInts(const Tensor& t, std::string_view slot);
// That error alone.
Status CheckInts(const Tensor& t, std::string_view slot);

// The shape of creation operators: input ShapeTensor, else the list ShapeTensorList, else attribute
// `shape`. What is not known yet is -1, or Shape::Unknown() when even the rank is not. Negative
// dimensions that are known, and sizes nobody can have, are errors.
Result<Shape> ReadShapeArg(const ShapeContext& ctx);
// Declares these three.
void DeclareShapeArg(OpDef& op);
// Shape function for output Out of that shape and of the dtype attribute `dtype` names.
Status ShapeArgShape(ShapeContext& ctx);

// dims as a Shape, all >= 0 and of a representable size; `what` is for the message.
Result<Shape> CheckedShape(std::span<const int64_t> dims, std::string_view what);
inline Result<Shape> CheckedShape(std::initializer_list<int64_t> dims, std::string_view what) {
  return CheckedShape(std::span(dims.begin(), dims.size()), what);
}
// The data type a `dtype` attribute names.
Result<DType> CheckedDType(int64_t proto_type);

// "…BatchSizeLike" operators: attribute `shape` with dimension output_dim_idx replaced by dimension
// input_dim_idx of Input.
Status BatchSizeLikeShape(ShapeContext& ctx);

}  // namespace heddle
