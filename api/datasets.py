"""Data sets over HTTP: upload, list, read."""

from __future__ import annotations

import tempfile
from typing import IO, cast

from flask import Response, request
from sqlalchemy.exc import IntegrityError

from api.context import services
from api.models import DatasetPath, DatasetsQuery, PreviewQuery, UploadQuery
from api.paging import checked_cursor, page
from api.responses import json_response, no_content, tagged_response
from api.routing import Routes
from api.views import dataset_view
from texelgrad.datasets import NamedArray, read_npys, read_upload
from texelgrad.domain import IdPrefix
from texelgrad.errors import Conflict, Fault, Invalid
from texelgrad.formats import FORMATS, format_of
from texelgrad.quota import check_disk
from texelgrad.repository import datasets as repository
from texelgrad.repository import uploads
from texelgrad.rows import Columns
from texelgrad.spec_forms import LABEL_WORDS, is_label
from texelgrad.store import read_rows, store_dataset

routes = Routes("datasets")
_MEMORY_BYTES = 8 << 20  # of a raw upload; the rest goes to a temporary file
_BLOCK = 1 << 20
_FIELDS = ("name", "format", "target", "weight")
_ARRAYS = ("x", "y", "w")


@routes.post("/datasets", "Upload a data set")
def post_dataset(query: UploadQuery) -> Response:
    """Store a file of one of the formats, raw or as the field `file` of a form, or npy files as the fields `x`, `y` and `w`.

    201 and Location; 200 with the data set that has the same content already; 422 with everything that is wrong.
    """
    own = services()
    check_disk(own.db, own.settings, request.content_length or 0)
    with tempfile.SpooledTemporaryFile(_MEMORY_BYTES) as spool:
        given = query.model_dump(exclude_none=True)
        if {*_ARRAYS} & {*request.files}:
            arrays, name = _arrays(given)
        else:
            file, filename, options = _receive(cast("IO[bytes]", spool))
            options |= given
            name = options.get("name") or filename or "unnamed"
            wrong = name_faults(name)
            try:
                format_name = _format(file, filename, options.get("format"))
                arrays = read_upload(
                    file, format_name, own.settings, Columns(options.get("target"), options.get("weight"))
                )
            except Invalid as invalid:
                raise Invalid([*wrong, *invalid.faults], invalid.more) from invalid
        if wrong := name_faults(name):
            raise Invalid(wrong)
        dataset_id, new = store_dataset(own.db, own.owner_id, name, arrays, own.quota)
    return stored(dataset_id, name, new=new)


def stored(dataset_id: str, name: str, *, new: bool) -> Response:
    """201 and the data set; 200 where its content was there, with the name that it keeps and the one that it came under."""
    own = services()
    with own.db.read() as session:
        dataset = repository.get_dataset(session, own.owner_id, dataset_id)
        view = dataset_view(dataset, repository.arrays_of(session, dataset_id))
    if not new:
        view |= {"deduplicated": True, "uploaded_as": name}
    return json_response(view, 201 if new else 200, Location=f"/v1/datasets/{dataset_id}")


def name_faults(name: str) -> list[Fault]:
    """What is wrong with a data set's name."""
    if is_label(name):
        return []
    return [Fault("name", "is too long or can't be shown", name[:200], LABEL_WORDS)]


def _arrays(given: dict[str, str]) -> tuple[list[NamedArray], str]:
    """The arrays of a form with an npy file for each of them, and their name."""
    given = dict(request.form) | given
    unknown = sorted((set(given) | set(request.files)) - {*_ARRAYS, *_FIELDS})
    faults = [Fault(field, "is not a field here", None, "x, y, w, name, format") for field in unknown]
    if "x" not in request.files:
        faults.append(Fault("x", "is missing", None, "an npy file"))
    if given.get("format", "npy") != "npy":
        faults.append(Fault("format", "is not what x, y and w are in", given["format"], "npy"))
    faults += [
        Fault(field, "is for CSV and Parquet files", given[field], "leave it out: only tables have columns")
        for field in ("target", "weight")
        if field in given
    ]
    if faults:
        raise Invalid(faults)
    files = {name: cast("IO[bytes]", request.files[name].stream) for name in _ARRAYS if name in request.files}
    return read_npys(files, services().settings), given.get("name") or "unnamed"


def _receive(spool: IO[bytes]) -> tuple[IO[bytes], str, dict[str, str]]:
    """The uploaded file, its name, and what the form says of it; a raw body is copied to `spool`."""
    if request.mimetype == "multipart/form-data":
        unknown = sorted((set(request.form) | set(request.files)) - {"file", *_FIELDS})
        faults = [
            Fault(field, "is not a field here", None, f"file, {', '.join(_FIELDS)}") for field in unknown
        ]
        if "file" not in request.files:
            faults.append(Fault("file", "is missing", None, "the data set's file"))
        if faults:
            raise Invalid(faults)
        upload = request.files["file"]
        return cast("IO[bytes]", upload.stream), upload.filename or "", dict(request.form)
    while block := request.stream.read(_BLOCK):
        spool.write(block)
    spool.seek(0)
    return spool, "", {}


def _format(file: IO[bytes], filename: str, asked: str | None) -> str:
    """One of FORMATS: as asked, or as it seems."""
    if asked is not None and asked not in FORMATS:
        raise Invalid([Fault("format", "is unknown", asked, ", ".join(FORMATS))])
    return asked or format_of(file, filename, request.mimetype)


@routes.get("/datasets", "List data sets, the newest first")
def list_datasets(query: DatasetsQuery) -> Response:
    """A page of data sets; `next_cursor` leads to the next one."""
    own = services()
    cursor = checked_cursor(query.cursor, IdPrefix.DATASET)
    with own.db.read() as session:
        found = repository.list_datasets(session, own.owner_id, query.limit + 1, cursor, query.name)
        listed = page(
            found,
            query.limit,
            lambda item: dataset_view(item, repository.arrays_of(session, item.id), brief=True),
            lambda item: item.id,
        )
    return json_response(listed)


@routes.get("/datasets/<dataset_id>", "Read a data set's description")
def get_dataset(path: DatasetPath) -> Response:
    """Names, shapes, types and statistics of its arrays."""
    own = services()
    with own.db.read() as session:
        dataset = repository.get_dataset(session, own.owner_id, path.dataset_id)
        return tagged_response(dataset_view(dataset, repository.arrays_of(session, dataset.id)))


@routes.get("/datasets/<dataset_id>/preview", "Some rows of a data set")
def get_preview(path: DatasetPath, query: PreviewQuery) -> Response:
    """`rows` from `offset` on, as they are stored; as many values as fit an answer."""
    own = services()
    with own.db.read() as session:
        dataset = repository.get_dataset(session, own.owner_id, path.dataset_id)
        rows = read_rows(session, repository.arrays_of(session, dataset.id), query.offset, query.limit)
    return json_response({"offset": query.offset, "total": dataset.rows, "rows": rows})


@routes.delete("/datasets/<dataset_id>", "Delete a data set")
def delete_dataset(path: DatasetPath) -> Response:
    """204, also for one that is still on its way; 409 while a job uses it."""
    own = services()
    try:
        with own.db.write() as session:
            if uploads.drop_upload(session, own.owner_id, path.dataset_id):
                return no_content()
            repository.delete_dataset(session, own.owner_id, path.dataset_id)
    except IntegrityError as error:  # a job took it meanwhile
        raise Conflict(f"data set {path.dataset_id} is used by a job") from error
    return no_content()
