// Passes from outside: shared libraries with the C interface of heddle/passes/heddle_pass.h.
//
//   HEDDLE_ASSIGN_OR_RETURN(auto passes, heddle::LoadPasses("/opt/npu/libnpu_passes.so"));
//   for (auto& pass : passes) options.passes.custom.push_back(std::move(pass));
#pragma once

#include <string>
#include <vector>

#include "heddle/pass.h"
#include "heddle/status.h"

struct heddle_pass_table;

namespace heddle {

// The passes of the library at `path`, which must name a folder: it is looked for nowhere else. The
// library stays in the process. Threads: any. kNotFound: there is no such file; kInvalidArgument:
// it is no pass library, or one for another version of the interface, or lacks something. Messages
// begin with `path`.
Result<std::vector<CustomPass>> LoadPasses(const std::string& path);
// The same of a table that is part of the program. `where`: for messages.
Result<std::vector<CustomPass>> PassesOf(const heddle_pass_table* table, const std::string& where);

}  // namespace heddle
