"""A Parquet file: numeric columns, of which one may be targets, one weights. Its sizes are checked before it is read."""

from __future__ import annotations

from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.errors import Fault, Invalid
from texelgrad.read_csv import column_faults
from texelgrad.rows import Columns, Spool, Upload

_MAX_COLUMNS = 65_536
_MAX_METADATA = 16 << 20  # bytes of strings and lists in the file's own description
_BATCH_BYTES = 8 << 20
_MAX_FAULTS = 20


def read_parquet(file: IO[bytes], columns: Columns, max_bytes: int) -> Upload:
    """x float64 [n, other columns], y and w float64 [n]; raises Invalid, with up to 20 faults by column."""
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
        faults = list(_schema_faults(pa, schema, names, columns))
        if not faults and 8 * rows * len(names) > max_bytes:
            size = 8 * rows * len(names)
            faults.append(Fault("file", "is too large unpacked", size, f"at most {max_bytes} bytes"))
        if not faults and rows < 1:
            faults.append(Fault("file", "has no rows", 0, "at least one row"))
        if faults:
            raise Invalid(faults)
        x = Spool(np.float64)
        others = {field: (names.index(name), Spool(np.float64)) for field, name in columns.named().items()}
        _fill(opened, x, list(others.values()), names, rows)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        message = f"can't be read: {str(error)[:200]}"
        raise Invalid([Fault("file", message, None, "a Parquet file of numeric columns")]) from error
    y, w = (others[field][1].rows((rows,)) if field in others else None for field in ("target", "weight"))
    taken = {index for index, _ in others.values()}
    inputs = [name for index, name in enumerate(names) if index not in taken]
    return Upload(x.rows((rows, len(inputs))), y, w, columns=inputs)


def _fill(opened: Any, x: Spool, others: list[tuple[int, Spool]], names: list[str], rows: int) -> None:
    """Read the rows in batches; raises Invalid where values are missing, ValueError where the rows are miscounted."""
    read = 0
    for batch in opened.iter_batches(batch_size=max(1, _BATCH_BYTES // (8 * len(names)))):
        if read + batch.num_rows > rows:
            raise ValueError("more rows than the file says")
        columns: list[NDArray[Any]] = []
        for name, values in zip(names, batch.columns, strict=True):
            if values.null_count:
                where = f"within rows {read + 1} to {read + batch.num_rows}"
                message = f"has {values.null_count} missing values {where}"
                raise Invalid([Fault(f"column {name}", message, None, "a number in each row")])
            columns.append(values.to_numpy(zero_copy_only=False))
        for index, spool in others:
            spool.append(columns[index])
        taken = {index for index, _ in others}
        x.append(np.stack([values for index, values in enumerate(columns) if index not in taken], axis=1))
        read += batch.num_rows
    if read != rows:
        raise ValueError("fewer rows than the file says")


def _schema_faults(pa: Any, schema: Any, names: list[str], columns: Columns) -> list[Fault]:
    least = 1 + len(columns.named())
    if not least <= len(names) <= _MAX_COLUMNS:
        return [Fault("file", "has too few or too many columns", len(names), f"{least} to {_MAX_COLUMNS}")]
    if len(set(names)) != len(names):
        return [Fault("file", "names columns twice", None, "a name of its own for each")]
    faults = list(column_faults(names, columns))
    for field in schema:
        kind = field.type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        if not numeric:
            faults.append(Fault(f"column {field.name}", "is not of numbers", str(kind)[:100], "numbers"))
    return faults[:_MAX_FAULTS]
