// A contract is a text in an operator's definition. It says what the operator demands of its
// operands and attributes, and what its outputs are:
//
//   op.Contract("X: float [N, C, ...]; Scale, Bias: as X [C]; groups: 1..; Y: like X")
//
// Clauses are separated by `;`. A clause names slots or attributes, and says what holds for each of
// them that is present (for a list: for each of its members):
//
//   float32|int64          one of these dtypes; also the groups float (16 to 64 bits, bfloat16),
//                          integer (8 to 64 bits), index (int32, int64), complex and any
//   as X                   X's dtype
//   [N, C, ...]            the shape: a number, a letter that stands for one dimension wherever it
//                          is used, a product or quotient of these and of integer attributes
//                          (C/groups; a quotient has no remainder), _ for any dimension, and ...
//                          for any number of them, which are the same wherever ... is used in the
//                          contract; ..._ for any number of other ones
//   like X                 X's dtype and shape; an output has its LoD, too; with a dtype beside it
//                          (int64 like X) X's shape alone
//   lod X                  of an output: X's LoD
//   one                    one element
//   count X                as many elements as X; X may also be a number, letter, product …
//
// and of attributes:
//
//   1..8, 1.., ..8         the range, with its ends; of a list: of each element
//   >0, <1                 the range without its end
//   length N               of a list: how many elements; N as in shapes
//   axis X                 an axis of X, negative ones count from its end
//   distinct               with axis X, of a list: names no axis twice
//   divides C              a divisor of a dimension's letter
//   a|b                    one of these texts
//
// The first operand of the text that has a letter decides which dimension the letter stands for.
// What is not known yet, such as dimensions while a plan is made, is checked once it is known.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/op_def.h"
#include "core/shape_context.h"
#include "heddle/status.h"

namespace heddle::contracts {

struct Clause;

// Immutable; any number of threads may use one.
class Contract {
 public:
  // kInvalidArgument: the text does not follow the rules above, or names what `def` has not.
  static Result<std::shared_ptr<const Contract>> Parse(std::string_view text, const OpDef& def);
  // The contract of a definition whose inputs have these dtypes, where its slots may have names
  // that no text can hold.
  struct InputDTypes {
    std::string name;
    std::vector<DType> dtypes;  // none: any
    int as = -1;                // the input whose dtype it has; -1: none
  };
  static std::shared_ptr<const Contract> OfDTypes(const std::vector<InputDTypes>& inputs);
  ~Contract();

  const std::string& text() const { return text_; }
  // Whether it says the dtype and shape of every output, which Infer then sets.
  bool tells_outputs() const { return tells_outputs_; }

  // kInvalidArgument: an operand or attribute is not as demanded; the message names it, and says
  // what was expected.
  Status Check(const ShapeContext& ctx) const;
  // Check, and sets the outputs that the contract describes.
  Status Infer(ShapeContext& ctx) const;
  // Check, and calls a shape function. kInternal: it says something else of an output than the
  // contract does.
  Status InferBeside(InferShapeFn shapes, ShapeContext& ctx) const;

 private:
  friend class Parser;
  Contract();

  std::string text_;
  std::vector<Clause> inputs_, outputs_, attributes_;
  int letters_ = 0;  // distinct letters of dimensions
  bool tells_outputs_ = false;
};

}  // namespace heddle::contracts
