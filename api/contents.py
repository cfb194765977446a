"""Large data sets in pieces: announced first, then sent by offset, so that a broken connection loses little."""

from __future__ import annotations

import tempfile
from typing import IO, Any, cast

from flask import Response, request

from api.bodies import read_json, too_large
from api.context import services
from api.datasets import name_faults, stored
from api.models import ContentQuery, DatasetPath
from api.responses import json_response
from api.routing import Routes
from api.views import upload_view
from texelgrad.datasets import read_upload
from texelgrad.errors import Fault, Invalid
from texelgrad.formats import FORMATS, format_of
from texelgrad.models import CHUNK_BYTES
from texelgrad.quota import check_bytes, check_disk
from texelgrad.repository import uploads
from texelgrad.rows import Columns
from texelgrad.spec_forms import LABEL_WORDS, is_label
from texelgrad.store import store_dataset

routes = Routes("contents")
_MAX_BYTES = 8192
_MEMORY_BYTES = 8 << 20
_FIELDS = ("name", "size", "format", "target", "weight")
_no_text = Fault("name", "is no text", None, LABEL_WORDS)


@routes.post("/datasets/announce", "Announce a data set that comes in pieces")
def announce() -> Response:
    """201 and where to PUT the content, for `{"size", "name", "format", "target", "weight"}`."""
    own = services()
    name, size, format_name, columns = _announcement(read_json(_MAX_BYTES))
    if size > own.settings.max_upload_bytes:
        raise too_large(own.settings.max_upload_bytes, "TEXELGRAD_MAX_UPLOAD_BYTES", size)
    check_disk(own.db, own.settings, size)
    with own.db.write() as session:
        uploads.forget_stale(session)
        check_bytes(session, own.owner_id, own.quota, size)
        upload = uploads.open_upload(session, own.owner_id, name, size, format_name, columns)
    return json_response(upload_view(upload), 201, Location=f"/v1/datasets/{upload.id}/content")


@routes.get("/datasets/<dataset_id>/content", "How far an upload is")
def get_content(path: DatasetPath) -> Response:
    """`received` is the offset to go on at; 404 once the data set is complete."""
    own = services()
    with own.db.read() as session:
        return json_response(upload_view(uploads.get_upload(session, own.owner_id, path.dataset_id)))


@routes.put("/datasets/<dataset_id>/content", "Send a piece of a data set")
def put_content(path: DatasetPath, query: ContentQuery) -> Response:
    """200 and `received` while more is to come; the last piece's answer is that of POST /v1/datasets.

    Whole MiB are kept: a piece that breaks off is sent again from `received`. 409 for any other offset.
    """
    own = services()
    with own.db.read() as session:
        upload = uploads.get_upload(session, own.owner_id, path.dataset_id)
        uploads.check_piece(upload, query.offset, request.content_length or 0)
    while block := _read(CHUNK_BYTES):
        if len(block) < CHUNK_BYTES and upload.received + len(block) < upload.size:
            break  # no whole chunk: it is sent again
        with own.db.write() as session:
            upload = uploads.add_chunk(session, own.owner_id, path.dataset_id, upload.received, block)
    return (
        _complete(path.dataset_id) if upload.received == upload.size else json_response(upload_view(upload))
    )


def _complete(dataset_id: str) -> Response:
    """The file that is here now as a data set; it is gone, whatever becomes of that."""
    own = services()
    with tempfile.SpooledTemporaryFile(_MEMORY_BYTES) as spool:
        with own.db.read() as session:
            upload = uploads.get_upload(session, own.owner_id, dataset_id)
            for chunk in uploads.chunks(session, upload):
                spool.write(chunk)
        spool.seek(0)
        with own.db.write() as session:
            uploads.close_upload(session, dataset_id)
        file = cast("IO[bytes]", spool)
        kind = upload.format or format_of(file, upload.name, request.mimetype)
        arrays = read_upload(file, kind, own.settings, Columns(upload.target, upload.weight))
        stored_id, new = store_dataset(own.db, own.owner_id, upload.name, arrays, own.quota, dataset_id)
    return stored(stored_id, upload.name, new=new)


def _read(size: int) -> bytes:
    """Up to `size` bytes of the body, fewer only at its end."""
    parts: list[bytes] = []
    while size and (part := request.stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _announcement(body: Any) -> tuple[str, int, str | None, Columns]:
    """Name, size, format and columns; raises Invalid with every fault."""
    fields = cast(dict[str, Any], body) if isinstance(body, dict) else {}
    legal = ", ".join(_FIELDS)
    faults = [Fault(name[:100], "is not a field here", None, legal) for name in fields if name not in _FIELDS]
    name, size = fields.get("name", "unnamed"), fields.get("size")
    format_name = fields.get("format")
    columns = {field: fields.get(field) for field in ("target", "weight")}
    if type(size) is not int or not 1 <= size < 2**53:
        faults.append(Fault("size", "is no number of bytes", None, "a whole number of at least 1"))
    if format_name is not None and format_name not in FORMATS:
        faults.append(Fault("format", "is unknown", str(format_name)[:100], ", ".join(FORMATS)))
    faults += name_faults(name) if isinstance(name, str) else [_no_text]
    faults += [
        Fault(field, "is no name of a column", None, LABEL_WORDS)
        for field, column in columns.items()
        if column is not None and not (isinstance(column, str) and is_label(column))
    ]
    if faults:
        raise Invalid(faults)
    return cast(str, name), cast(int, size), format_name, Columns(**columns)
