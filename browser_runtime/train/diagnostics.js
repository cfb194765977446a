// Diagnostics: the precision report of a device and of what a session ran on it, against the float64 reference.
import { execute, parameter } from "./float64.js";
import { deviceLimits, nonfiniteTable, readbackRoundTrip } from "../backends/webgl2/selftest.js";
import { writeScalars } from "../nn/optimizers.js";
import { learningRate } from "../nn/schedules.js";
import { tensor } from "../reference/tensor.js";
import { FIRST_LOSSES } from "./progress.js";
import { gatherRows } from "./sources.js";
import { partsOf } from "./weights.js";

/** @import { Session } from "./session.js" */
/** @import { Weights } from "./weights.js" */
/** @import { Group } from "../plan/fuse.js" */
/** @import { Values } from "./float64.js" */

/** Multiply-adds in float64 that a report may cost: plain JavaScript makes about 3e8 a second, and `basic` stays below 200 ms. */
const BUDGET = { basic: 3e7, full: 3e9 };

/**
 * @typedef {object} OperatorReport
 * @property {string} op the primitive ops that one kernel computed
 * @property {string} name the tensor that it wrote
 * @property {number} elements
 * @property {number} compared those of them that are numbers on both sides; without any, the errors are null
 * @property {number|null} maxAbsoluteError
 * @property {number|null} maxRelativeError of one element to its own value
 * @property {number|null} maxNormalizedError of one element to the tensor's largest value
 * @property {number|null} maxUlp in units of the last place of the float32 nearest to the reference
 */

/**
 * @param {Session} session
 * @param {"basic"|"full"} level
 */
export async function diagnose(session, level) {
  const started = performance.now();
  const { device } = session;
  const { renderer, vendor, version, software, userAgent, extensions, format } = device.record;
  const budget = { left: BUDGET[level] };
  const firstLosses = await compareLosses(session, budget);
  const { operators, total, checked } = await compareOperators(session, budget);
  const report = {
    version: 1,
    level,
    device: { renderer, vendor, version, software, userAgent, extensions, limits: deviceLimits(device) },
    float32: { format, renderable: true, proof: device.proof },
    readback: readbackRoundTrip(device),
    nonfinite: nonfiniteTable(device),
    operators,
    firstLosses,
    coverage: {
      elapsedMs: performance.now() - started,
      operatorsChecked: checked,
      operatorsTotal: total,
      lossesChecked: firstLosses.length,
      weightsAtStep: session.step,
    },
  };
  // What a dead GPU process answers would be told as this device's precision.
  device.checkAlive();
  return report;
}

/** Multiply-adds of a group in the reference. @param {Session} session @param {Group} group @param {number} rows */
function work({ plan }, { ops }, rows) {
  const { tensors } = plan.phases.train;
  const product = ops[0];
  if (product.type.startsWith("embedding")) return rows * product.attrs.length * product.attrs.units;
  const w = product.inputs.w ?? ops.find((op) => op.type === "update")?.inputs.w;
  const { transposed, input, output } = product.attrs;
  const [height, width] = product.type.startsWith("conv2d") ? (transposed ? input : output) : [1, 1];
  const shape = tensors.get(w ?? Object.values(product.inputs)[0])?.shape ?? [];
  const ofWeights = shape.reduce((a, b) => a * b, rows * height * width);
  // What has few weights goes through its elements: a normalization of images.
  const elements = Object.values(product.inputs).map((name) => (tensors.get(name)?.batched ? tensors.get(name)?.shape ?? [] : [0]).reduce((a, b) => a * b, rows));
  return Math.max(ofWeights, ...elements);
}

/**
 * The losses of the first steps, against a run of the same plan in float64 from the same weights on the same batches.
 * @param {Session} session @param {{left: number}} budget
 * @returns {Promise<{step: number, loss: number, reference: number, relativeError: number|null}[]>} no error of a loss that is not finite
 */
async function compareLosses(session, budget) {
  const { plan, spec, batches } = session;
  const { groups } = session.executable.lowered.training;
  const values = parameters(session, session.initialWeights());
  const out = [];
  for (let step = 0; step < Math.min(FIRST_LOSSES, session.progress.firstLosses.length); step++) {
    const { first, count, rows } = batches.step(step);
    const cost = groups.reduce((sum, group) => sum + work(session, group, rows), 0);
    // Leave two thirds of the budget to the operators.
    if (cost > budget.left - BUDGET.basic / 3) break;
    budget.left -= cost;
    // What is computed again reads parameters as they were before the step: on the device new ones go to other textures.
    const order = (/** @type {Group[]} */ of) => {
      const ops = of.flatMap((group) => [...group.recomputed, ...group.ops]);
      return [...ops.filter(({ type }) => type !== "update"), ...ops.filter(({ type }) => type === "update")];
    };
    const { updatesFrom } = session.executable.lowered;
    let reference = 0;
    for (let i = 0; i < count; i++) {
      await loadBatch(session, first + i, values);
      const share = batches.rows((first + i) % batches.perEpoch) / rows;
      const last = i === count - 1;
      const how = { lr: learningRate(spec.optimizer, step, session.totalSteps), t: step + 1, keep: i > 0, share, batch: first + i };
      execute(order(last ? groups : groups.slice(0, updatesFrom)), plan.phases.train.tensors, values, how);
      reference += mean(values.get("loss").data) * share;
    }
    const loss = session.progress.firstLosses[step];
    out.push({ step: step + 1, loss, reference, relativeError: relativeError(loss, reference) });
  }
  return out;
}

/**
 * Every kernel of the plan on the first batch, each against the reference on the very inputs that the kernel read.
 * @param {Session} session @param {{left: number}} budget
 */
async function compareOperators(session, budget) {
  const { executable, plan, batches, spec } = session;
  const { tensors } = plan.phases.train;
  const { steps, lowered: { training: { groups } } } = executable;
  const rows = batches.rows(0);
  const t = session.step + 1;
  const lr = learningRate(spec.optimizer, Math.min(session.step, session.totalSteps - 1), session.totalSteps);
  writeScalars(spec, lr, t, steps.scalars[0]);

  /** @type {Values} */
  const batch = new Map();
  // Not where the groups that read it are too expensive anyway: a batch may be all of the data.
  const affordable = groups.some((group) => Object.values(group.inputs).some((name) => Object.hasOwn(session.plan.fed, name)) && work(session, group, rows) <= budget.left);
  if (affordable) await loadBatch(session, 0, batch);
  steps.set(0, rows, session.feeder.place(0), 1 / rows, session.step);
  /** @type {OperatorReport[]} */
  const operators = [];
  let checked = 0;
  const old = executable.tensors.parity;
  executable.inspect((index) => {
    const group = groups[index];
    const cost = work(session, group, rows);
    if (cost > budget.left) return;
    budget.left -= cost;
    checked += 1;
    const read = (/** @type {string} */ name, /** @type {number} */ parity) => readValue(session, name, parity, rows);
    /** @type {Values} */
    const values = new Map();
    for (const name of Object.values(group.inputs)) {
      // What this batch has added up lies where the next one reads it.
      const added = tensors.get(name)?.kind === "accumulator" && group.kernel !== "accumulate";
      values.set(name, batch.get(name) ?? read(name, added ? old ^ 1 : old));
    }
    execute([...group.recomputed, ...group.ops], tensors, values, { lr, t });
    for (const name of new Set(Object.values(group.outputs))) {
      const kind = tensors.get(name)?.kind ?? "";
      const got = flat(read(name, ["parameter", "state", "buffer", "accumulator"].includes(kind) ? old ^ 1 : old));
      // The kernel writes its part of the mean.
      const wanted = kind === "rows" ? flat(values.get(name)).map((/** @type {number} */ v) => v / rows) : flat(values.get(name));
      operators.push({ op: group.ops.map((op) => op.type).join(" + "), name, ...compare(got, wanted) });
    }
  });
  return { operators, total: groups.length, checked };
}

/** A tensor of the device in the reference's terms. @param {Session} session @param {string} name @param {number} parity @param {number} rows */
function readValue({ executable, plan }, name, parity, rows) {
  const info = plan.phases.train.tensors.get(name);
  if (info?.kind === "rows") return tensor([rows], executable.tensors.readRows(name, rows));
  const { data, bias } = executable.tensors.readTensor(name, parity);
  if (info && ["buffer", "statistics", "constant"].includes(info.kind)) return tensor(info.shape, data);
  if (info && !info.batched) {
    const owner = plan.parameters.find((p) => name === p.tensor || name === `d(${p.tensor})` || name.startsWith(`${p.tensor}.`));
    return parameter(owner?.shape ?? [], data, bias);
  }
  const { columns } = executable.tensors.place(name).layout;
  return tensor([rows, ...(info?.shape ?? [])], data.subarray(0, rows * columns));
}

/** @param {Session} session @param {Weights} weights @returns {Values} with the states of step 0 */
function parameters({ plan }, weights) {
  const values = new Map();
  for (const owner of plan.parameters) {
    const [kernel, bias] = partsOf(owner).map(({ name }) => weights[name].data);
    values.set(owner.tensor, parameter(owner.shape, kernel, bias ?? null));
    for (const state of owner.trainable ? plan.states : []) {
      values.set(`${owner.tensor}.${state}`, parameter(owner.shape, new Float64Array(kernel.length), bias ? new Float64Array(bias.length) : null));
    }
  }
  for (const { name, kind, shape, values: held } of plan.phases.train.tensors.values()) if (kind === "constant") values.set(name, tensor(shape, held));
  for (const { tensor: name, shape } of plan.buffers) values.set(name, tensor(shape, weights[name].data));
  return values;
}

/**
 * The batch of a step: from the caller's arrays where they are in memory; from the device where reading single rows would take too long.
 * @param {Session} session @param {number} step counted from 0 @param {Values} values
 */
async function loadBatch({ batches, feeds, plan, executable, feeder }, step, values) {
  const b = step % batches.perEpoch;
  const aligned = executable.sizes.batch;
  const epoch = Math.floor(step / batches.perEpoch);
  const rows = batches.rows(b);
  const read = (/** @type {import("./sources.js").ArraySource} */ source, /** @type {string} */ name) => {
    if ("data" in source) return gatherRows(source, batches.order(epoch, aligned).subarray(b * aligned, b * aligned + rows));
    return executable.tensors.readEpoch(name, feeder.place(step), rows);
  };
  for (const { tensor: name, source } of feeds) values.set(name, tensor([rows, ...plan.fed[name]], Float64Array.from(read(source, name))));
}

/** @param {any} value a Tensor or a parameter @returns {Float64Array} */
function flat(value) {
  return value.kernel ? Float64Array.from([...value.kernel.data, ...(value.bias?.data ?? [])]) : value.data;
}

/** Null where there is no distance: what float32 can't hold, float64 may. @param {number} loss @param {number} reference */
function relativeError(loss, reference) {
  if (!Number.isFinite(loss)) return null;
  return loss === reference ? 0 : Math.abs(loss - reference) / Math.abs(reference);
}

/** @param {Float64Array} values */
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

/**
 * Errors over the elements that are numbers on both sides. NaN where NaN is met, and an infinity where float32 has none, are right and have no
 * distance: where nothing else is there, the errors are null. Where one side alone is not finite, they are NaN.
 * @param {Float64Array} got @param {Float64Array} wanted @returns {Omit<OperatorReport, "op"|"name">}
 */
export function compare(got, wanted) {
  const all = (/** @type {number|null} */ error) => ({ maxAbsoluteError: error, maxRelativeError: error, maxNormalizedError: error, maxUlp: error });
  const elements = wanted.length;
  let [compared, absolute, relative, ulps, largest] = [0, 0, 0, 0, 0];
  for (let i = 0; i < elements; i++) {
    if (!Number.isFinite(got[i]) || !Number.isFinite(wanted[i])) {
      if (Object.is(got[i], Math.fround(wanted[i]))) continue;
      return { elements, compared, ...all(NaN) };
    }
    const error = Math.abs(got[i] - wanted[i]);
    compared += 1;
    absolute = Math.max(absolute, error);
    if (wanted[i] !== 0) relative = Math.max(relative, error / Math.abs(wanted[i]));
    ulps = Math.max(ulps, error / ulp(wanted[i]));
    largest = Math.max(largest, Math.abs(wanted[i]));
  }
  if (compared === 0) return { elements, compared, ...all(null) };
  return { elements, compared, maxAbsoluteError: absolute, maxRelativeError: relative, maxNormalizedError: largest > 0 ? absolute / largest : absolute, maxUlp: ulps };
}

/** The distance of neighbouring float32 numbers at x. @param {number} x */
export function ulp(x) {
  const exponent = x === 0 ? -126 : Math.max(-126, Math.floor(Math.log2(Math.abs(Math.fround(x)))));
  return 2 ** (exponent - 23);
}
