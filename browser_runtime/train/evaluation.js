// Evaluation: what a session's network makes of rows that it does not train on: loss and metrics, or its outputs.
import { EngineError } from "../errors.js";
import { ROW_WEIGHT } from "../nn/model.js";
import { checkArray, checkShapes, numberCheck, valueCheck } from "./data.js";
import { normalized } from "./normalization.js";
import { checkRowWeights, checkRowWeightValues } from "./row_weights.js";
import { buffered, readRows } from "./sources.js";

/** @import { Data, Session } from "./session.js" */
/** @import { ArraySource } from "./sources.js" */

/**
 * Loss and the spec's metrics on data of the caller's, or on the validation rows.
 * @param {Session} session @param {Data} [data]
 * @returns {Promise<{loss: number, accuracy?: number, [metric: string]: any}>}
 */
export async function evaluate(session, data) {
  const { executable, spec, plan, labels, pipeline } = session;
  const { stage } = executable.sizes;
  const rows = data ? checkRows(session, data) : session.validation.length;
  const x = data && normalized(session.normalization, buffered(data.x));
  const y = data && buffered(data.y);
  if (rows === 0) throw new EngineError("data_invalid", "data: there are no validation rows; pass {x, y}", { field: "data" });
  const outputs = plan.outputShape.reduce((a, b) => a * b, 1);
  const [checkX, checkY] = [valueCheck("x", spec, labels, outputs), valueCheck("y", spec, labels, outputs)];
  const weight = data?.weight && buffered(data.weight);
  const sums = pipeline.begin(rows, data ? 0 : pipeline.validationWeight);
  for (let first = 0; first < rows; first += stage) {
    const count = Math.min(stage, rows - first);
    if (data) {
      const [inputs, targets] = [await readRows(/** @type {ArraySource} */ (x), first, count), await readRows(/** @type {ArraySource} */ (y), first, count)];
      checkX(first, inputs);
      checkY(first, targets);
      const counts = weight ? Float32Array.from(await readRows(weight, first, count)) : new Float32Array(count).fill(1);
      checkRowWeightValues(first, counts);
      // Written and drawn in one task: another call may use the staging tensors in between.
      executable.tensors.writeStage("x", inputs);
      executable.tensors.writeStage("target", targets);
      if (session.weights) executable.tensors.writeStage(ROW_WEIGHT, counts);
      sums.weight += counts.reduce((sum, value) => sum + value, 0);
      executable.submitStagedEvaluation(count);
    } else session.feeder.evaluate(first, count, 0);
    const [evaluated, read] = await Promise.all([
      pipeline.measures ? executable.readEvaluated(count) : undefined,
      executable.readTelemetry("evaluate", 0, 1),
    ]);
    if (evaluated) executable.tensors.checkAlive();
    pipeline.count(sums, read(0, 0), evaluated);
  }
  return pipeline.summary(sums);
}

/** Shapes of data that is not the training data, and the same kind of targets. @param {Session} session @param {Data} data @returns {number} rows */
function checkRows(session, data) {
  checkArray("data.x", data.x);
  checkArray("data.y", data.y);
  const { rows, labels } = checkShapes(session.spec, data, session.plan.outputShape);
  if (data.weight !== undefined) {
    checkArray("data.weight", data.weight);
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
 * @param {Session} session @param {ArraySource} x
 * @returns {Promise<{shape: number[], data: Float32Array}>}
 */
export async function predict(session, x) {
  checkArray("x", x);
  const { stage } = session.executable.sizes;
  const rows = x.shape[0];
  const sample = x.shape.slice(1);
  if (sample.join() !== session.spec.model.input.join()) {
    throw new EngineError("data_invalid", `x: rows are [${sample}]; model.input is [${session.spec.model.input}]`, { field: "x" });
  }
  const outputs = session.plan.outputShape.reduce((a, b) => a * b, 1);
  const data = new Float32Array(rows * outputs);
  const inputs = normalized(session.normalization, buffered(x));
  const checkNumbers = numberCheck(session.spec);
  for (let first = 0; first < rows; first += stage) {
    const count = Math.min(stage, rows - first);
    const values = await readRows(inputs, first, count);
    checkNumbers("x", first, values);
    session.executable.tensors.writeStage("x", values);
    data.set(session.executable.predictStaged(count), first * outputs);
  }
  return { shape: [rows, ...session.plan.outputShape], data };
}
