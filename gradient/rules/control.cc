#include "gradient/op_gradient.h"

namespace heddle::gradient {

RuleTable ControlRules() { return {}; }

}  // namespace heddle::gradient
