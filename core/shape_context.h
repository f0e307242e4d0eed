// What a shape function sees of a call: shapes, element types and known contents.
#pragma once

#include <cstddef>
#include <vector>

#include "core/error.h"
#include "core/op_context.h"

namespace heddle {

// The context of a shape function, at plan time (dimensions may be -1, contents are mostly unknown)
// and at run time (everything is known). A shape function sets every output's shape and dtype, or
// returns Defer().
class ShapeContext : public OpContext {
 public:
  using OpContext::OpContext;
  // Whether the operand is present; at run time also, whether it is not empty.
  bool HasIn(Key key, int i = 0) const;
  const Shape& InShape(Key key, int i = 0) const;
  DType InDType(Key key, int i = 0) const;
  const LoD& InLoD(Key key, int i = 0) const;
  // The operand's contents; nullptr while they are not known, at plan time.
  const Tensor* InValue(Key key, int i = 0) const;

  void SetOut(Key key, const Shape& shape, DType dtype, int i = 0);
  // By position in op().out, for shape functions that serve several operators.
  void SetOutAt(size_t at, const Shape& shape, DType dtype);
  void SetOutLoDAt(size_t at, LoD lod);
  void SetOutLoD(Key key, LoD lod, int i = 0);
  void ShareLoD(Key in, Key out);
  // The shapes depend on something not known yet: the function is called again at run time.
  Status Defer() {
    deferred_ = true;
    return Status::Ok();
  }
  bool deferred() const { return deferred_; }

  struct OutMeta {
    bool set = false;
    DType dtype = DType::kUnknown;
    Shape shape;
    bool has_lod = false;
    LoD lod;
  };
  // Parallel to op().out; empty until the first SetOut.
  std::vector<OutMeta>& outs() { return outs_; }

 private:
  OutMeta& Meta(size_t at);
  std::vector<OutMeta> outs_;
  bool deferred_ = false;
};

}  // namespace heddle
