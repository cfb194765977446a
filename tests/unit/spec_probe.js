// spec_probe.js: what nn/spec.js makes of a spec, for test_page_spec.py.
import { validateSpec } from "../../browser_runtime/nn/spec.js";

/** @param {any[]} specs @returns {any[]} for each the filled-in spec, or what its error says */
export function validateAll(specs) {
  return specs.map((spec) => {
    try {
      return { spec: validateSpec(spec) };
    } catch (error) {
      const { name, code, field, message, detail } = /** @type {any} */ (error);
      return { error: { name, code, field, message, faults: detail?.faults ?? [] } };
    }
  });
}
