"""A zip of PNG or JPEG images, in one folder a class or in none. Sizes are checked before anything is decoded."""

from __future__ import annotations

import io
import zipfile
from pathlib import PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.errors import Fault, Invalid
from texelgrad.rows import Spool, Upload
from texelgrad.spec_forms import is_label
from texelgrad.zips import UNREADABLE, is_plausible

_SUFFIXES = (".png", ".jpg", ".jpeg")
_MAX_FILES = 1_000_000
_MAX_FILE_BYTES = 64 << 20  # one image, packed
_MAX_SIDE = 4096  # pixels
_MAX_CLASSES = 10_000
_MAX_FAULTS = 20


def read_images(file: IO[bytes], max_bytes: int) -> Upload:
    """x float32 [n, height, width, channels] within 0 to 1; where there are folders y int64 [n], and the classes' names.

    Folders are classes, in the order of their names; files of one class are in the order of theirs. All images have the
    first one's size, and 1 channel where that one is grey, else 3. Raises Invalid, with up to 20 faults by file.
    """
    try:
        archive = zipfile.ZipFile(file)
    except UNREADABLE as error:
        raise _not_one(f"is not a zip file: {error}", None) from error
    with archive:
        members = _members(archive)
        classes = sorted({name for item in members if (name := _class_of(item))})
        if len(classes) > _MAX_CLASSES:
            raise _not_one("has too many folders", len(classes))
        shape = _shape_of(archive, members[0])
        size = len(members) * int(np.prod(shape)) * 4
        if size > max_bytes:
            raise Invalid([Fault("file", "is too large unpacked", size, f"at most {max_bytes} bytes")])
        x = Spool(np.float32)
        faults: list[Fault] = []
        for item in members:
            try:
                x.append(_decode(archive, item, shape))
            except Invalid as invalid:
                faults.extend(invalid.faults)
            if len(faults) >= _MAX_FAULTS:
                break
    if faults:
        raise Invalid(faults)
    pixels = x.rows((len(members), *shape))
    if not classes:
        return Upload(pixels)
    number = {name: index for index, name in enumerate(classes)}
    return Upload(pixels, np.array([number[_class_of(item)] for item in members]), classes=classes)


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The images, sorted by class and name; raises Invalid where something else is among them."""
    files = [
        item for item in archive.infolist() if not item.filename.endswith("/")
    ]  # is_dir() stumbles over an empty name
    files = [item for item in files if not item.filename.startswith("__MACOSX/")]
    if not 1 <= len(files) <= _MAX_FILES:
        raise _not_one("has no images, or too many", len(files))
    faults: list[Fault] = []
    depth = len(PurePosixPath(files[0].filename).parts)
    for item in files:
        path = PurePosixPath(item.filename)
        name = item.filename[:200]
        if len(path.parts) not in (1, 2, 3) or len(path.parts) != depth:
            legal = "all as class/name.png, or all as name.png without classes"
            faults.append(Fault(name, "is not in the folder of a class, as others are", None, legal))
        elif path.suffix.lower() not in _SUFFIXES:
            faults.append(Fault(name, "is no image", path.suffix[:20], ", ".join(_SUFFIXES)))
        elif _class_of(item) and not is_label(_class_of(item)):
            legal = "up to 200 characters, no control characters"
            faults.append(Fault(name, "has a class that can't be shown", None, legal))
        elif not is_plausible(item) or item.file_size > _MAX_FILE_BYTES:
            faults.append(Fault(name, "is too large", item.file_size, f"at most {_MAX_FILE_BYTES} bytes"))
        if len(faults) >= _MAX_FAULTS:
            break
    if faults:
        raise Invalid(faults)
    return sorted(files, key=lambda item: (_class_of(item), item.filename))


def _class_of(item: zipfile.ZipInfo) -> str:
    """The folder that an image is in; nothing where it is in none."""
    return PurePosixPath(item.filename).parent.name


def _shape_of(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> tuple[int, int, int]:
    """(height, width, channels) that the first image sets."""
    image = _open(archive, item)
    return image.height, image.width, 1 if image.mode in ("1", "L", "LA", "I", "I;16") else 3


def _decode(archive: zipfile.ZipFile, item: zipfile.ZipInfo, shape: tuple[int, int, int]) -> NDArray[Any]:
    image = _open(archive, item)
    height, width, channels = shape
    if (image.height, image.width) != (height, width):
        found = f"{image.width} x {image.height}"
        raise Invalid([Fault(item.filename[:200], "has another size", found, f"{width} x {height}")])
    try:
        pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"), np.float32)
    except (*UNREADABLE, SyntaxError, MemoryError) as error:
        raise _unreadable(item, error) from error
    return pixels.reshape(shape) / np.float32(255)


def _open(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> Any:
    """The image, of which only the header is read; raises Invalid."""
    from PIL import Image, UnidentifiedImageError

    try:
        with archive.open(item) as member:
            packed = member.read(_MAX_FILE_BYTES + 1)
        image = Image.open(io.BytesIO(packed), formats=("PNG", "JPEG"))
    except UnidentifiedImageError as error:  # its own words name the buffer by its address in memory
        raise _unreadable(item, "it is no PNG or JPEG image, or a damaged one") from error
    except (*UNREADABLE, Image.DecompressionBombError, SyntaxError) as error:
        raise _unreadable(item, error) from error
    if max(image.width, image.height) > _MAX_SIDE:
        found = f"{image.width} x {image.height}"
        raise Invalid([Fault(item.filename[:200], "is too large", found, f"up to {_MAX_SIDE} a side")])
    return image


def _unreadable(item: zipfile.ZipInfo, why: BaseException | str) -> Invalid:
    message = f"can't be read: {str(why)[:200]}"
    return Invalid([Fault(item.filename[:200], message, None, "a PNG or JPEG image")])


def _not_one(message: str, value: Any) -> Invalid:
    return Invalid([Fault("file", message, value, "a zip of class/name.png, or of name.png")])
