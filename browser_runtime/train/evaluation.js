// Evaluation: what a session's network makes of rows that it does not train on: loss and metrics, or its outputs.
import { EngineError } from "../errors.js";
import { size } from "../nn/graph.js";
import { arrayOf, dataField, mapValues, named, ROW_WEIGHT } from "../nn/inputs.js";
import { checkData, checkInputs, checkShapes, checkSources, feedsOf, inputCheck, readFeeds } from "./data.js";
import { normalizedInputs } from "./normalization.js";
import { checkRowWeights, checkRowWeightValues } from "./row_weights.js";
import { buffered, readRows } from "./sources.js";

/** @import { Data, Feed, NamedData } from "./data.js" */
/** @import { Session } from "./session.js" */
/** @import { ArraySource } from "./sources.js" */

/**
 * Loss and the spec's metrics on data of the caller's, or on the validation rows.
 * @param {Session} session @param {Data} [given]
 * @returns {Promise<{loss: number, accuracy?: number, [metric: string]: any}>}
 */
export async function evaluate(session, given) {
  const { executable, spec, plan, labels, pipeline } = session;
  const { stage } = executable.sizes;
  const data = given && checkData(spec.model.input, given);
  const rows = data ? checkRows(session, data) : session.validation.length;
  const feeds = data && feedsOf(spec, plan, { x: normalizedInputs(session.normalizations, mapValues(data.x, buffered)), y: buffered(data.y) }, labels);
  if (rows === 0) throw new EngineError("data_invalid", "data: there are no validation rows; pass {x, y}", { field: "data" });
  const weight = data?.weight && buffered(data.weight);
  const sums = pipeline.begin(rows, data ? 0 : pipeline.validationWeight);
  for (let first = 0; first < rows; first += stage) {
    const count = Math.min(stage, rows - first);
    if (feeds) {
      const values = await readFeeds(feeds, first, count);
      const counts = weight ? Float32Array.from(await readRows(weight, first, count)) : new Float32Array(count).fill(1);
      checkRowWeightValues(first, counts);
      session.goesOn();
      // Written and drawn in one task: another call may use the staging tensors in between.
      for (const [tensor, part] of values) executable.tensors.writeStage(tensor, part);
      if (session.weights) executable.tensors.writeStage(ROW_WEIGHT, counts);
      sums.weight += counts.reduce((sum, value) => sum + value, 0);
      executable.evaluator.submitStaged(count);
    } else {
      session.goesOn();
      session.feeder.evaluate(first, count, 0);
    }
    const [evaluated, read] = await Promise.all([
      pipeline.measures ? executable.evaluator.readOutputs(count) : undefined,
      executable.readTelemetry("evaluate", 1),
    ]);
    if (evaluated) executable.tensors.checkAlive();
    pipeline.count(sums, read(0, 0), evaluated);
  }
  return pipeline.summary(sums);
}

/** Shapes of data that is not the training data, and the same kind of targets. @param {Session} session @param {NamedData} data @returns {number} rows */
function checkRows(session, data) {
  const { rows, labels } = checkShapes(session.spec, data, session.plan.outputShape);
  if (data.weight !== undefined) {
    checkRowWeights(data.weight, rows);
    if (!session.weights) throw new EngineError("data_invalid", "data.weight: this session was compiled without weights of rows", { field: "data.weight" });
  }
  if (labels !== session.labels) {
    const kinds = { index: "class numbers [rows]", values: "a value for each output" };
    throw new EngineError("data_invalid", `data.y: holds ${kinds[labels]}; this session was compiled for ${kinds[session.labels]}`, { field: "data.y" });
  }
  return rows;
}

/**
 * The last layer's outputs for inputs as they are before normalization.
 * @param {Session} session @param {ArraySource|Record<string, ArraySource>} given
 * @returns {Promise<{shape: number[], data: Float32Array}>}
 */
export async function predict(session, given) {
  const { spec, plan, normalizations } = session;
  const x = named(spec.model.input, given);
  checkSources(spec.model.input, x, "x");
  const rows = checkInputs(spec, x, { of: "x", least: 0 });
  const { stage } = session.executable.sizes;
  const outputs = size(plan.outputShape);
  const data = new Float32Array(rows * outputs);
  /** As they are given, by the inputs' names. @type {Feed[]} */
  const feeds = Object.entries(mapValues(x, buffered)).map(([name, source]) => {
    return { tensor: name, source, check: inputCheck(dataField(name, "x"), plan.lookups.get(arrayOf(name))) };
  });
  for (let first = 0; first < rows; first += stage) {
    const count = Math.min(stage, rows - first);
    const read = Object.fromEntries(await readFeeds(feeds, first, count));
    const inputs = normalizedInputs(normalizations, mapValues(read, (values) => ({ shape: [values.length], data: values })));
    session.goesOn();
    // Written and drawn in one task, as above.
    for (const [name, source] of Object.entries(inputs)) session.executable.tensors.writeStage(arrayOf(name), /** @type {{data: ArrayLike<number>}} */ (source).data);
    data.set(session.executable.evaluator.predictStaged(count), first * outputs);
  }
  return { shape: [rows, ...session.plan.outputShape], data };
}
