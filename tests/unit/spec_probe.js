// spec_probe.js: what nn/spec.js and nn/spec_page.js make of a spec, for test_page_spec.py.
import { validateSpec } from "../../browser_runtime/nn/spec.js";
import { validatePageSpec } from "../../browser_runtime/nn/spec_page.js";

/** @param {() => any} validate @returns {any} the filled-in spec, or what the error says */
function said(validate) {
  try {
    return { spec: validate() };
  } catch (error) {
    const { name, code, field, message, detail } = /** @type {any} */ (error);
    return { error: { name, code, field, message, faults: detail?.faults ?? [] } };
  }
}

/** @param {any[]} specs @returns {any[]} for each what said() gives */
export const validateAll = (specs) => specs.map((spec) => said(() => validateSpec(spec)));

/** As train() does in a page. @param {any} spec @returns {any} */
export const validateForTrain = (spec) => said(() => validatePageSpec(spec, { measures: true }));
