"""heddle's exceptions: what went wrong, and at which operator."""

from __future__ import annotations


class Error(RuntimeError):
    """Something heddle refused or could not do.

    `code` is the kind of error ("INVALID_ARGUMENT", "NOT_FOUND", ...), `message` what happened.
    Where an operator is to blame, `op_type`, `op_index` and `block` say which one (as the program's
    file counts them), `variables` what it was to write, and `call_stack` where the program was
    written.
    """

    code: str = "INTERNAL"

    def __init__(self, text: str, *, message: str = "", block: int = -1, op_index: int = -1,
                 op_type: str = "", variables: tuple[str, ...] = (), call_stack: str = "") -> None:
        super().__init__(text)
        self.message = message or text
        self.block = block
        self.op_index = op_index
        self.op_type = op_type
        self.variables = variables
        self.call_stack = call_stack


class InvalidArgument(Error, ValueError):
    """A shape, dtype, name or option is wrong."""

    code = "INVALID_ARGUMENT"


class NotFound(Error, LookupError):
    """A file, variable or operator does not exist."""

    code = "NOT_FOUND"


class OutOfRange(Error, IndexError):
    """An index outside its axis; a NaN or an infinity where the run was to look for them."""

    code = "OUT_OF_RANGE"


class EndOfData(OutOfRange):
    """The run's reader is at the end of the data: nothing is wrong."""

    code = "END_OF_DATA"


class DataLoss(Error):
    """A file is cut short, too long or damaged."""

    code = "DATA_LOSS"


class Unimplemented(Error, NotImplementedError):
    """Known, but not supported."""

    code = "UNIMPLEMENTED"


class ResourceExhausted(Error, MemoryError):
    """Out of memory, or beyond the limit that was set."""

    code = "RESOURCE_EXHAUSTED"


class Cancelled(Error):
    """The run was told to stop."""

    code = "CANCELLED"


class DeadlineExceeded(Error):
    """The run took longer than its timeout."""

    code = "DEADLINE_EXCEEDED"


_BY_CODE = {kind.code: kind for kind in (InvalidArgument, NotFound, OutOfRange, EndOfData, DataLoss,
                                         Unimplemented, ResourceExhausted, Cancelled,
                                         DeadlineExceeded)}


def from_status(code: str, message: str, text: str, block: int, op_index: int, op_type: str,
                output: str, call_stack: str) -> Error:
    """The exception for a status of the library."""
    return _BY_CODE.get(code, Error)(text, message=message, block=block, op_index=op_index,
                                     op_type=op_type, variables=(output,) if output else (),
                                     call_stack=call_stack)
