#include "gradient/op_gradient.h"

namespace heddle::gradient {

RuleTable NoRules() { return {}; }

}  // namespace heddle::gradient
