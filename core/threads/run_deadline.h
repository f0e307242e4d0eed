// Whether the work of a thread has a deadline, for operators that call what may not return: they
// get ready to leave it behind, which costs copies.
#pragma once

namespace heddle {

// A base of those Interrupts that know.
class MayHaveDeadline {
 public:
  virtual bool has_deadline() const = 0;

 protected:
  ~MayHaveDeadline() = default;
};

}  // namespace heddle
