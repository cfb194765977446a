// model_probe.js: the shapes and parameters that nn/model.js infers, for test_network.py.
import { buildModel } from "../../browser_runtime/nn/model.js";
import { validateSpec } from "../../browser_runtime/nn/spec.js";

/**
 * @param {any} spec
 * @returns {any} outputs of each layer that computes something, weights as [...blocks, rows, columns], and kernels as users see them; or the error
 */
export function infer(spec) {
  try {
    const { graph, parameters } = buildModel(validateSpec(spec), { training: true });
    const last = (/** @type {any} */ layer) => graph.tensor(`${layer.name}.y`).shape;
    const layers = validateSpec(spec).model.layers.filter((/** @type {any} */ layer) => graph.tensors.has(`${layer.name}.y`));
    return {
      outputs: layers.map(last),
      weights: parameters.map(({ tensor }) => graph.tensor(tensor).shape),
      kernels: parameters.map(({ layer, shape, fanIn, fanOut }) => ({ layer, shape, fanIn, fanOut })),
    };
  } catch (error) {
    const { name, code, field, message } = /** @type {any} */ (error);
    return { error: { name, code, field, message } };
  }
}
