#include "gradient/op_gradient.h"

namespace heddle::gradient {

RuleTable HigherRules() { return {}; }

}  // namespace heddle::gradient
