// Weights: parameters and optimizer states under their exported names, between the device and the caller.
import { EngineError } from "../errors.js";
import { initialize } from "../nn/initializers.js";

/** @import { Plan } from "../plan/plan.js" */
/** @import { Executable } from "../backends/webgl2/executable.js" */

/** By name: `<layer>.kernel` [in, out] or [height, width, in, out], `<layer>.bias` [out]; a state's name behind a dot.
 * @typedef {Record<string, {shape: number[], data: Float32Array}>} Weights */

/** Columns of a kernel, one bias each. @param {number[]} shape */
export const units = (shape) => /** @type {number} */ (shape.at(-1));

/** Under which names a state of the parameters, or "" the parameters themselves, are exported. @param {Plan} plan @param {string} state */
export function tensorNames({ parameters }, state) {
  return parameters.flatMap(({ tensor }) => ["kernel", "bias"].map((part) => `${tensor}.${part}${state && `.${state}`}`));
}

/** The weights that a seed gives. @param {Plan} plan @param {number} seed @returns {Weights} */
export function seededWeights({ parameters }, seed) {
  /** @type {Weights} */
  const weights = {};
  parameters.forEach(({ tensor, shape, fanIn, fanOut, init }, parameterIndex) => {
    weights[`${tensor}.kernel`] = { shape, data: initialize(init, shape, { fanIn, fanOut, seed, parameterIndex }) };
    weights[`${tensor}.bias`] = { shape: [units(shape)], data: new Float32Array(units(shape)) };
  });
  return weights;
}

/**
 * @param {Plan} plan @param {Weights} weights @param {string} state
 * @throws {EngineError} data_invalid where one is missing or has another shape
 */
export function checkWeights(plan, weights, state) {
  const names = tensorNames(plan, state);
  plan.parameters.flatMap(({ shape }) => [shape, [units(shape)]]).forEach((wanted, i) => {
    const name = names[i];
    const given = weights[name];
    const bad = (/** @type {string} */ why) => new EngineError("data_invalid", `weights: ${name} ${why}`, { field: name });
    if (!given) throw bad(`is missing; needed: ${names.join(", ")}`);
    if (given.shape?.join() !== wanted.join()) throw bad(`is [${given.shape}]; needed: [${wanted}]`);
    const size = wanted.reduce((a, b) => a * b, 1);
    if (given.data?.length !== size) throw bad(`has ${given.data?.length} values; its shape [${wanted}] needs ${size}`);
  });
}

/** @param {Plan} plan @param {Executable} executable @param {string} state "" for the parameters @returns {Weights} */
export function readWeights({ parameters }, executable, state) {
  executable.enter();
  /** @type {Weights} */
  const weights = {};
  for (const { tensor, shape } of parameters) {
    const { data, bias } = executable.readTensor(state ? `${tensor}.${state}` : tensor);
    weights[`${tensor}.kernel${state && `.${state}`}`] = { shape, data };
    weights[`${tensor}.bias${state && `.${state}`}`] = { shape: [units(shape)], data: /** @type {Float32Array} */ (bias) };
  }
  return weights;
}

/** @param {Plan} plan @param {Executable} executable @param {Weights} weights that `checkWeights` passed @param {string} state */
export function writeWeights(plan, executable, weights, state) {
  const names = tensorNames(plan, state);
  plan.parameters.forEach(({ tensor }, i) => {
    executable.writeParameter(state ? `${tensor}.${state}` : tensor, weights[names[2 * i]].data, weights[names[2 * i + 1]].data);
  });
}
