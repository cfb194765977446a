"""x and y of a Parquet file: numeric columns, one of them the targets. Its sizes are checked before it is read."""

from __future__ import annotations

from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.errors import Fault, Invalid
from texelgrad.rows import Rows, Spool

_MAX_COLUMNS = 65_536
_MAX_METADATA = 16 << 20  # bytes of strings and lists in the file's own description
_BATCH_BYTES = 8 << 20
_MAX_FAULTS = 20


def read_parquet(file: IO[bytes], target: str | None, max_bytes: int) -> tuple[Rows, Rows]:
    """x float64 [n, columns - 1] and y float64 [n]; raises Invalid, with up to 20 faults by column."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(
            file,
            thrift_string_size_limit=_MAX_METADATA,
            thrift_container_size_limit=_MAX_METADATA,
            page_checksum_verification=True,
        )
        schema = opened.schema_arrow
        names: list[str] = list(schema.names)
        rows = int(opened.metadata.num_rows)
        faults = list(_schema_faults(pa, schema, names, target))
        if not faults and 8 * rows * len(names) > max_bytes:
            size = 8 * rows * len(names)
            faults.append(Fault("file", "is too large unpacked", size, f"at most {max_bytes} bytes"))
        if not faults and rows < 1:
            faults.append(Fault("file", "has no rows", 0, "at least one row"))
        if faults:
            raise Invalid(faults)
        x, y = Spool(np.float64), Spool(np.float64)
        _fill(opened, x, y, names, names.index(str(target)), rows)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        message = f"can't be read: {str(error)[:200]}"
        raise Invalid([Fault("file", message, None, "a Parquet file of numeric columns")]) from error
    return x.rows((rows, len(names) - 1)), y.rows((rows,))


def _fill(opened: Any, x: Spool, y: Spool, names: list[str], target: int, rows: int) -> None:
    """Read the rows in batches; raises Invalid where values are missing, ValueError where the rows are miscounted."""
    for batch in opened.iter_batches(batch_size=max(1, _BATCH_BYTES // (8 * len(names)))):
        if y.count + batch.num_rows > rows:
            raise ValueError("more rows than the file says")
        columns: list[NDArray[Any]] = []
        for name, values in zip(names, batch.columns, strict=True):
            if values.null_count:
                where = f"within rows {y.count + 1} to {y.count + batch.num_rows}"
                message = f"has {values.null_count} missing values {where}"
                raise Invalid([Fault(f"column {name}", message, None, "a number in each row")])
            columns.append(values.to_numpy(zero_copy_only=False))
        y.append(columns.pop(target))
        x.append(np.stack(columns, axis=1))
    if y.count != rows:
        raise ValueError("fewer rows than the file says")


def _schema_faults(pa: Any, schema: Any, names: list[str], target: str | None) -> list[Fault]:
    columns = ", ".join(names[:100])
    if not 2 <= len(names) <= _MAX_COLUMNS:
        return [Fault("file", "has too few or too many columns", len(names), f"2 to {_MAX_COLUMNS}")]
    if len(set(names)) != len(names):
        return [Fault("file", "names columns twice", None, "a name of its own for each")]
    faults: list[Fault] = []
    if target is None:
        faults.append(Fault("target", "is missing: which column has the targets?", None, columns))
    elif target not in names:
        faults.append(Fault("target", "is not a column of the file", target, columns))
    for field in schema:
        kind = field.type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        if not numeric:
            faults.append(Fault(f"column {field.name}", "is not of numbers", str(kind)[:100], "numbers"))
    return faults[:_MAX_FAULTS]
