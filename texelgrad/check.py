"""A job spec against everything that can be known before it runs: the schema, the limits, the data. One list of faults."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy.orm import Session

from texelgrad.config import Settings
from texelgrad.errors import Fault, Invalid, NotFound
from texelgrad.initial_weights import find_weights, fit_faults, shapes_of, tensors_of
from texelgrad.inputs import TARGET
from texelgrad.made_data import MadeData, describe
from texelgrad.network import lookups, read_columns
from texelgrad.normalize import inherit_faults
from texelgrad.prediction import order_faults, prediction_faults
from texelgrad.repository import datasets, get_job
from texelgrad.shapes import ArrayInfo, data_faults, limit_faults
from texelgrad.spec import JobSpec, Model, check_spec
from texelgrad.spec_data import Data
from texelgrad.spec_weights import FineTune, Predict
from texelgrad.times import parse_time


@dataclass(frozen=True)
class Checked:
    """A spec that can run, and what was learnt of it on the way."""

    spec: JobSpec
    infos: dict[str, ArrayInfo]  # of the data set's arrays by name
    synthetic: MadeData | None  # the data, where it is made up
    deadline_at: int | None  # in microseconds
    weights_artifact_id: str | None = None  # that it begins with


def check_job(session: Session, settings: Settings, owner_id: str, raw: Any) -> Checked:
    """Check a spec as it came; raises Invalid with every fault, of whatever kind."""
    spec, right, faults = check_spec(raw)
    # The schema lets data be missing, as a page hands them over; a job needs them.
    if not isinstance(raw, dict):
        faults = [replace(fault, legal=f"{fault.legal}, data") for fault in faults]
    faults.extend(limit_faults(right, settings))
    infos: dict[str, ArrayInfo] = {}
    synthetic: MadeData | None = None
    data = cast(Data | None, right.get("data"))
    if data and data.synthetic and not data.dataset:
        synthetic = describe(data.synthetic)
        infos = {"x": synthetic.x, "y": synthetic.y}
    elif data and data.dataset and not data.synthetic:
        try:
            datasets.get_dataset(session, owner_id, data.dataset)
            infos = datasets.array_infos(session, data.dataset)
        except NotFound:
            legal = "an id that POST /v1/datasets gave"
            faults.append(Fault("data.dataset", "there is no such data set", data.dataset, legal))
    elif isinstance(raw, dict) and ("data" not in raw or (data and not data.dataset)):
        message = "needs one of dataset and synthetic" if "data" in raw else "is missing"
        faults.append(Fault("data", message, None, "an object with dataset or synthetic"))
    if infos:
        if right.get("predict"):  # the inputs must fit; targets and batches don't matter
            faults.extend(_prediction_faults(session, owner_id, right, infos))
        elif TARGET in infos:
            found = [*data_faults(right, infos)]
            told = {fault.field for fault in found}  # of two faults of a field, the data's says more
            faults = [*(fault for fault in faults if fault.field not in told), *found]
        else:
            legal = "a data set with y; of a table, uploaded with target=COLUMN"
            message = f"has no targets y, only {', '.join(infos)}: it is for predictions"
            faults.append(Fault("data.dataset", message, data.dataset if data else None, legal))
    weights_id, wrong = _weights(session, owner_id, right, infos)
    faults.extend(wrong)
    deadline_at, wrong = _deadline(right.get("deadline"))
    faults.extend(wrong)
    if faults or spec is None:
        raise Invalid(faults)
    return Checked(spec, infos, synthetic, deadline_at, weights_id)


def _weights(
    session: Session, owner_id: str, right: dict[str, Any], infos: dict[str, ArrayInfo]
) -> tuple[str | None, list[Fault]]:
    """The file of weights that the job begins with, where it is to begin with some, and what is wrong with it or its data."""
    fine_tune, predict = cast(FineTune | None, right.get("fine_tune")), right.get("predict")
    if fine_tune is None and predict is None:
        return None, []
    data = cast(Data | None, right.get("data"))
    found = find_weights(session, owner_id, fine_tune, predict, data.normalize if data else None)
    if isinstance(found, Fault):
        return None, [found]
    shapes = shapes_of(session, found.id)
    model = cast(Model | None, right.get("model"))
    if model is None or model.network.faults:
        return found.id, []
    if predict is not None:
        layers = [str(layer.name) for layer, tensors in tensors_of(model) if tensors]
        return found.id, list(fit_faults(model, shapes, layers, "predict"))
    faults = list(fit_faults(model, shapes, fine_tune.layers if fine_tune else None, "fine_tune"))
    if data and data.normalize == "inherit":
        kept = lookups(model.input, model.layers)
        uploaded = fine_tune is not None and fine_tune.weights is not None
        faults.extend(inherit_faults(model.input, kept, shapes, uploaded=uploaded))
    if fine_tune and fine_tune.job and data and _reads_inputs(model, fine_tune, data):
        trained = get_job(session, owner_id, fine_tune.job)
        faults.extend(order_faults(datasets.array_infos(session, trained.dataset_id), infos))
    return found.id, faults


def _reads_inputs(model: Model, fine_tune: FineTune, data: Data) -> bool:
    """Whether something that is kept from before depends on the order of the inputs' columns."""
    return (
        fine_tune.layers is None
        or data.normalize == "inherit"
        or not read_columns(model.input, model.layers).isdisjoint(fine_tune.layers)
    )


def _prediction_faults(
    session: Session, owner_id: str, right: dict[str, Any], infos: dict[str, ArrayInfo]
) -> list[Fault]:
    """Whether the rows are such as the model was trained on."""
    model, predict = cast(Model | None, right.get("model")), cast(Predict, right["predict"])
    if model is None or model.network.faults:
        return []
    try:
        trained = get_job(session, owner_id, predict.job)
    except NotFound:  # told with the weights
        return []
    return [*prediction_faults(model, datasets.array_infos(session, trained.dataset_id), infos)]


def _deadline(text: str | None) -> tuple[int | None, list[Fault]]:
    """The deadline in microseconds, and what is wrong where there is no such time, or it has passed."""
    if text is None:
        return None, []
    try:
        deadline_at = parse_time(text)
    except ValueError as error:
        return None, [Fault("deadline", f"is no time: {error}", text, "2027-01-31T18:00:00Z")]
    passed = deadline_at <= time.time_ns() // 1000
    return deadline_at, [Fault("deadline", "has passed", text, "a time to come")] if passed else []
