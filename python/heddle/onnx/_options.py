"""Options of sessions and runs under ONNX Runtime's names."""

from __future__ import annotations

import enum
import warnings
from typing import Any


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def warn_once(what: str, calls: int = 1) -> None:
    """Warns that a setting has no effect. Python shows it once for each line of the script, which
    lies `calls` calls behind the one of this function."""
    warnings.warn(f"heddle: {what}", stacklevel=2 + calls)


class SessionOptions:
    """Settings of a session.

    These have an effect: `intra_op_num_threads` (0: as many as the process may use),
    `graph_optimization_level` (ORT_DISABLE_ALL: none; ORT_ENABLE_BASIC: clean-up; others: all),
    `execution_mode` (ORT_PARALLEL: independent operators may run at once), `enable_profiling`,
    `profile_file_prefix`, and overrides of free dimensions. Memory and messages are heddle's own
    matter. Settings that would change a result or write a file, and that heddle lacks, give one
    warning.
    """

    def __init__(self) -> None:
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "heddle_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._entries: dict[str, str] = {}
        self._free_dimensions: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps the entry; heddle reads "heddle.precision": "f32", "bf16", "int8" or
        "int8-products"."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        try:
            return self._entries[key]
        except KeyError:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}"
                               ) from None

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Gives the named dimension of inputs this size."""
        self._free_dimensions[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        warn_once(f"the override of denotation '{denotation}' has no effect")

    def register_custom_ops_library(self, path: str) -> None:
        raise NotImplementedError("heddle loads no libraries of custom operators: " + str(path))

    def add_initializer(self, name: str, value: Any) -> None:
        raise NotImplementedError(f"initializer '{name}': heddle takes initializers from the model")

    def has_providers(self) -> bool:
        return False


class RunOptions:
    """Settings of a run. `terminate`: a run that begins with it fails at once."""

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps the entry; heddle reads none."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return self._entries[key]
