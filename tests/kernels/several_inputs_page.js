// several_inputs_page.js: compiles with whatever data a test gives, for test_several_inputs.py.
import { compile } from "../../browser_runtime/texelgrad.js";

/** @param {any} spec @param {any} data */
export async function compiled(spec, data) {
  const session = await compile(spec, { data });
  await session.dispose();
}
