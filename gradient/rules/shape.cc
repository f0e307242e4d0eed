#include "gradient/op_gradient.h"

namespace heddle::gradient {

RuleTable ShapeRules() { return {}; }

}  // namespace heddle::gradient
