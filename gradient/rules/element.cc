#include "gradient/op_gradient.h"

namespace heddle::gradient {

RuleTable ElementRules() { return {}; }

}  // namespace heddle::gradient
