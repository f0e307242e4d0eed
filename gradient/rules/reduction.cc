#include "gradient/op_gradient.h"

namespace heddle::gradient {

RuleTable ReductionRules() { return {}; }

}  // namespace heddle::gradient
