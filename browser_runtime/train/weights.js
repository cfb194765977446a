// Weights: parameters and optimizer states under their exported names, between the device and the caller.
import { EngineError } from "../errors.js";
import { initialize } from "../nn/initializers.js";

/** @import { Parameter } from "../nn/model.js" */
/** @import { Plan } from "../plan/plan.js" */
/** @import { Executable } from "../backends/webgl2/executable.js" */

/** By name: `<layer>.kernel` [in, out] or [height, width, in, out], `<layer>.bias` [out]; a state's name behind a dot.
 * @typedef {Record<string, {shape: number[], data: Float32Array}>} Weights */

const size = (/** @type {number[]} */ shape) => shape.reduce((a, b) => a * b, 1);

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

/** Under which names a state of the parameters, or "" the parameters themselves, are exported. @param {Plan} plan @param {string} state */
export function tensorNames({ parameters }, state) {
  return parameters.flatMap((parameter) => partsOf(parameter, state).map(({ name }) => name));
}

/** Numbers that training may change. @param {Plan} plan */
export const countParameters = ({ parameters }) => parameters.flatMap((parameter) => partsOf(parameter)).reduce((sum, { shape }) => sum + size(shape), 0);

/** The weights that a seed gives. @param {Plan} plan @param {number} seed @returns {Weights} */
export function seededWeights({ parameters }, seed) {
  /** @type {Weights} */
  const weights = {};
  parameters.forEach((parameter, parameterIndex) => {
    const { fanIn, fanOut, init } = parameter;
    for (const { part, name, shape } of partsOf(parameter)) {
      const data = part === "kernel" ? initialize(init, shape, { fanIn, fanOut, seed, parameterIndex }) : new Float32Array(size(shape));
      weights[name] = { shape, data };
    }
  });
  return weights;
}

/**
 * @param {Plan} plan @param {Weights} weights @param {string} state
 * @throws {EngineError} data_invalid where one is missing or has another shape
 */
export function checkWeights(plan, weights, state) {
  const parts = plan.parameters.flatMap((parameter) => partsOf(parameter, state));
  for (const { name, shape: wanted } of parts) {
    const given = weights[name];
    const bad = (/** @type {string} */ why) => new EngineError("data_invalid", `weights: ${name} ${why}`, { field: name });
    if (!given) throw bad(`is missing; needed: ${parts.map((part) => part.name).join(", ")}`);
    if (given.shape?.join() !== wanted.join()) throw bad(`is [${given.shape}]; needed: [${wanted}]`);
    if (given.data?.length !== size(wanted)) throw bad(`has ${given.data?.length} values; its shape [${wanted}] needs ${size(wanted)}`);
  }
}

/** @param {Plan} plan @param {Executable} executable @param {string} state "" for the parameters @returns {Weights} */
export function readWeights({ parameters }, executable, state) {
  executable.enter();
  /** @type {Weights} */
  const weights = {};
  for (const parameter of parameters) {
    const { data, bias } = executable.readTensor(state ? `${parameter.tensor}.${state}` : parameter.tensor);
    for (const { part, name, shape } of partsOf(parameter, state)) {
      weights[name] = { shape, data: part === "kernel" ? data : /** @type {Float32Array} */ (bias) };
    }
  }
  return weights;
}

/** @param {Plan} plan @param {Executable} executable @param {Weights} weights that `checkWeights` passed @param {string} state */
export function writeWeights(plan, executable, weights, state) {
  for (const parameter of plan.parameters) {
    const [kernel, bias] = partsOf(parameter, state).map(({ name }) => weights[name].data);
    executable.writeParameter(state ? `${parameter.tensor}.${state}` : parameter.tensor, kernel, bias ?? null);
  }
}
