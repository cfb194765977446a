// Weights: parameters, buffers and optimizer states under their exported names, between the device and the caller.
import { EngineError, isObject, shown } from "../errors.js";
import { size } from "../nn/graph.js";
import { initialize } from "../nn/initializers.js";
import { mapValues } from "../nn/inputs.js";
import { noNumberAt } from "./sources.js";

/** @import { Parameter } from "../nn/model.js" */
/** @import { Plan } from "../plan/plan.js" */
/** @import { Executable } from "../backends/webgl2/executable.js" */

/** By name: `<layer>.kernel` [in, out] or [height, width, in, out], `<layer>.bias` [out], `<layer>.running_mean` [channels] ...; a state's
 * name behind a dot.
 * @typedef {Record<string, {shape: number[], data: Float32Array}>} Weights */

/**
 * What a parameter's matrix and, where it has one, its bias row are exported as, or one of their states.
 * @param {Parameter} parameter @param {string} [state]
 * @returns {{part: "kernel"|"bias", name: string, shape: number[]}[]}
 */
export function partsOf({ layer, names, shape, bias }, state = "") {
  const behind = state && `.${state}`;
  return [
    { part: "kernel", name: `${layer}.${names.kernel}${behind}`, shape },
    ...(bias ? [{ part: /** @type {const} */ ("bias"), name: `${layer}.${names.bias}${behind}`, shape: shape.slice(-1) }] : []),
  ];
}

/** The parameters that have a state: the frozen ones have none; for "" all. @param {Plan} plan @param {string} state */
const owners = ({ parameters }, state) => (state ? parameters.filter(({ trainable }) => trainable) : parameters);

/** Names and shapes of a state of the parameters, or for "" of the parameters themselves and of the buffers. @param {Plan} plan @param {string} state */
const exported = (plan, state) => [
  ...owners(plan, state).flatMap((parameter) => partsOf(parameter, state)),
  ...(state ? [] : plan.buffers.map(({ tensor, shape }) => ({ name: tensor, shape }))),
];

/** Under which names a state of the parameters, or "" the parameters and buffers themselves, are exported. @param {Plan} plan @param {string} state */
export function tensorNames(plan, state) {
  return exported(plan, state).map(({ name }) => name);
}

/** Numbers that training may change. @param {Plan} plan */
export const countParameters = ({ parameters }) => parameters.flatMap((parameter) => partsOf(parameter)).reduce((sum, { shape }) => sum + size(shape), 0);

/** The weights that a seed gives. @param {Plan} plan @param {number} seed @returns {Weights} */
export function seededWeights({ parameters, buffers }, seed) {
  /** @type {Weights} */
  const weights = {};
  parameters.forEach((parameter, parameterIndex) => {
    const { fanIn, fanOut, init, biasInit } = parameter;
    for (const { part, name, shape } of partsOf(parameter)) {
      const data = part === "kernel" ? initialize(init, shape, { fanIn, fanOut, seed, parameterIndex }) : initialize(biasInit, shape);
      weights[name] = { shape, data };
    }
  });
  for (const { tensor, shape, initial } of buffers) weights[tensor] = { shape, data: new Float32Array(size(shape)).fill(initial) };
  return weights;
}

/** @param {unknown} data @returns {boolean} */
const isList = (data) => Array.isArray(data) || ArrayBuffer.isView(data);

/**
 * What is posted of a page's tensors: their shapes and values, whatever else they hold. Which there must be is for checkWeights().
 * @param {unknown} given @param {string} field as what it is given @returns {Weights}
 * @throws {EngineError} data_invalid where they are no tensors
 */
export function tensorsOf(given, field) {
  const bad = (/** @type {string} */ at, /** @type {string} */ message) => new EngineError("data_invalid", message, { field: at });
  if (!isObject(given)) throw bad(field, `${field}: must be tensors by name, {"dense_1.kernel": {shape, data}, ...}, not ${shown(given)}`);
  return mapValues(/** @type {Record<string, any>} */ (given), (tensor, name) => {
    const { shape, data } = tensor ?? {};
    if (!Array.isArray(shape) || !isList(data)) throw bad(name, `weights: ${name} must be {shape, data}, not ${shown(tensor)}`);
    const wrong = noNumberAt(data);
    if (wrong >= 0) throw bad(name, `weights: ${name} is ${shown(data[wrong])} at ${wrong}; legal: numbers`);
    return { shape, data };
  });
}

/**
 * @param {Plan} plan @param {Weights} weights @param {string} state
 * @throws {EngineError} data_invalid where one is missing or has another shape
 */
export function checkWeights(plan, weights, state) {
  const parts = exported(plan, state);
  for (const { name, shape: wanted } of parts) {
    const given = weights[name];
    const bad = (/** @type {string} */ why) => new EngineError("data_invalid", `weights: ${name} ${why}`, { field: name });
    if (!given) throw bad(`is missing; needed: ${parts.map((part) => part.name).join(", ")}`);
    if (given.shape?.join() !== wanted.join()) throw bad(`is [${given.shape}]; needed: [${wanted}]`);
    if (given.data?.length !== size(wanted)) throw bad(`has ${given.data?.length} values; its shape [${wanted}] needs ${size(wanted)}`);
  }
}

/** @param {Weights} weights @throws {EngineError} data_invalid where a number is none of float32's finite ones */
export function checkFinite(weights) {
  for (const [name, { data }] of Object.entries(weights)) {
    for (let i = 0; i < data.length; i++) {
      if (!Number.isFinite(Math.fround(data[i]))) throw new EngineError("data_invalid", `weights: ${name} is ${data[i]} at ${i}; legal: finite float32 numbers`, { field: name });
    }
  }
}

/** @param {Plan} plan @param {Executable} executable @param {string} state "" for the parameters and buffers @returns {Weights} */
export function readWeights(plan, executable, state) {
  executable.enter();
  /** @type {Weights} */
  const weights = {};
  for (const parameter of owners(plan, state)) {
    const { data, bias } = executable.tensors.readTensor(state ? `${parameter.tensor}.${state}` : parameter.tensor);
    for (const { part, name, shape } of partsOf(parameter, state)) {
      weights[name] = { shape, data: part === "kernel" ? data : /** @type {Float32Array} */ (bias) };
    }
  }
  if (!state) for (const { tensor, shape } of plan.buffers) weights[tensor] = { shape, data: executable.tensors.readTensor(tensor).data };
  return weights;
}

/** @param {Plan} plan @param {Executable} executable @param {Weights} weights that `checkWeights` passed @param {string} state */
export function writeWeights(plan, executable, weights, state) {
  for (const parameter of owners(plan, state)) {
    const [kernel, bias] = partsOf(parameter, state).map(({ name }) => weights[name].data);
    executable.tensors.writeParameter(state ? `${parameter.tensor}.${state}` : parameter.tensor, kernel, bias ?? null);
  }
  if (!state) for (const { tensor } of plan.buffers) executable.tensors.writeParameter(tensor, weights[tensor].data, null);
}
