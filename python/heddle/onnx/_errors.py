"""Exceptions of the same names and kinds as ONNX Runtime's."""

from __future__ import annotations

from heddle import _errors


class OnnxError(_errors.Error):
    """Base of the exceptions below. `code` and `name` are ONNX Runtime's number and text."""

    number = 1
    status = "FAIL"

    def __init__(self, message: str, cause: _errors.Error | None = None) -> None:
        where = {} if cause is None else {
            "block": cause.block, "op_index": cause.op_index, "op_type": cause.op_type,
            "variables": cause.variables}
        super().__init__(f"[heddle] : {self.number} : {self.status} : {message}", message=message,
                         **where)


class Fail(OnnxError):
    pass


class InvalidArgument(OnnxError, ValueError):
    number, status, code = 2, "INVALID_ARGUMENT", "INVALID_ARGUMENT"


class NoSuchFile(OnnxError, FileNotFoundError):
    number, status, code = 3, "NO_SUCHFILE", "NOT_FOUND"


class NoModel(OnnxError):
    number, status = 4, "NO_MODEL"


class RuntimeException(OnnxError):
    number, status = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(OnnxError):
    number, status, code = 7, "INVALID_PROTOBUF", "DATA_LOSS"


class NotImplemented(OnnxError, NotImplementedError):  # ONNX Runtime's name
    number, status, code = 9, "NOT_IMPLEMENTED", "UNIMPLEMENTED"


class InvalidGraph(OnnxError):
    number, status = 10, "INVALID_GRAPH"


def at_load(error: _errors.Error) -> OnnxError:
    """The exception of a constructor for an error of the library."""
    kinds: dict[type, type[OnnxError]] = {
        _errors.NotFound: NoSuchFile, _errors.DataLoss: InvalidProtobuf,
        _errors.Unimplemented: NotImplemented, _errors.InvalidArgument: InvalidGraph}
    return kinds.get(type(error), Fail)(str(error), error)


def at_run(error: _errors.Error) -> OnnxError:
    """The exception of a run for an error of the library."""
    kinds: dict[type, type[OnnxError]] = {
        _errors.InvalidArgument: InvalidArgument, _errors.Unimplemented: NotImplemented,
        _errors.ResourceExhausted: RuntimeException}
    return kinds.get(type(error), Fail)(str(error), error)
