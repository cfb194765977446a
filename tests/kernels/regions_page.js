// regions_page.js: trains on textures that parameters share and on textures of their own, for test_regions.py.
import { Engine } from "../../browser_runtime/train/engine.js";
import { ROWS } from "../../browser_runtime/backends/webgl2/fragment_rows.js";
import { texelOf } from "../../browser_runtime/backends/webgl2/layout.js";
import { decode } from "../../browser_runtime/train/safetensors.js";
import { compileOn } from "./sessions.js";

const SHADERS = new URL("../../shaders/bundle.json", import.meta.url).href;

/**
 * Trains from engine to engine: each takes the checkpoint of the one before over.
 * @param {any} spec @param {any} x @param {any} y @param {any} device
 * @param {{shared: "all"|"level"|"none", steps: number}[]} legs on textures that all share, or those whose lines are of one length, or none
 */
export async function relay(spec, x, y, device, legs) {
  /** @type {Uint8Array|undefined} */
  let checkpoint;
  /** @type {any} */
  let facts;
  for (const { shared, steps } of legs) {
    const rows = { ...ROWS.software, regions: { texels: shared === "all" ? 17_500 : 0, alike: shared !== "none" } };
    const options = { ...device, rows };
    const engine = await Engine.create({ shaderUrl: SHADERS, device: options });
    try {
      const session = await compileOn(engine, spec, { data: { x, y } }, options);
      if (checkpoint) session.restore(checkpoint);
      await session.run({ steps });
      checkpoint = session.checkpoint();
      const predictions = await session.predict(x);
      facts = { predictions: predictions.data ?? predictions, ...places(session) };
    } finally {
      engine.device.dispose();
    }
  }
  const { tensors } = decode(/** @type {Uint8Array} */ (checkpoint));
  return { tensors: Object.fromEntries(Object.entries(tensors).map(([name, { data }]) => [name, data])), ...facts };
}

/** How many parameters share a texture with another one, and values that lie in the padding of any. @param {import("../../browser_runtime/train/session.js").Session} session */
function places({ executable, plan }) {
  const { slots } = executable.lowered;
  const placed = plan.parameters.filter(({ trainable }) => trainable).flatMap(({ tensor }) => [tensor, ...plan.states.map((state) => `${tensor}.${state}`)]);
  const homes = placed.map((name) => slots[executable.tensors.place(name).slots[0]]);
  let stray = 0;
  for (const name of placed) {
    const { texels, data, bias } = executable.tensors.readTensor(name);
    const { slots: [slot], layout } = executable.tensors.place(name);
    const live = (/** @type {Iterable<number>} */ values) => [...values].filter((v) => v !== 0).length;
    for (let row = 0; row < layout.layers * layout.groups; row++) {
      const at = texelOf(layout, slots[slot], row) * 4;
      stray += live(texels.subarray(at, at + layout.texelsPerRow * 4));
    }
    stray -= live(data) + live(bias ?? []);
  }
  return { sharing: homes.filter((home) => homes.filter(({ texture }) => texture === home.texture).length > 1).length, stray };
}
