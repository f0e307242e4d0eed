#include "gradient/op_gradient.h"

namespace heddle::gradient {

RuleTable NetworkRules() { return {}; }

}  // namespace heddle::gradient
