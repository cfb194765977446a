// The norm of the whole gradient: sums of squares parameter by parameter, then the root of them all, and what to multiply with where it is limited.
import { BLOCK, find } from "./common.js";
import { ceilDiv, roundUp } from "../layout.js";
import { STEP_NORMS } from "../places.js";

/** Fragments write 4 sums each; there are few where gradients are small. */
const LEAST_SUMS = 16;

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  // Each draw adds its parameter's squares to the sums of the draw before, so that one more draw is left whatever their number.
  grad_norm(lowering, group) {
    const { inputs, outputs, attrs } = find(group, "grad_norm");
    const gradients = Object.values(inputs).map((name) => lowering.readNew("DW", name));
    const texelsOf = (/** @type {import("../layout.js").Layout} */ { layers, texels }) => layers * texels;
    const largest = Math.max(...gradients.map(({ place }) => texelsOf(place.layout)));
    const count = roundUp(Math.max(LEAST_SUMS, Math.ceil(Math.sqrt(largest))), 4);
    const layout = lowering.measure({ rows: count, columns: 4, layers: 1 });
    const places = [0, 1].map((i) => {
      const slot = lowering.arena.own(`sums of squares ${i}`, layout);
      return { slots: /** @type {[number, number]} */ ([slot, slot]), layout, fed: false };
    });
    const sums = gradients.map((dw, i) => {
      const texels = ceilDiv(texelsOf(dw.place.layout), count);
      return lowering.draw("square_sums", {
        trips: texels + ceilDiv(texels, BLOCK),
        defines: { TEXELS: texels, ALL_TEXELS: texelsOf(dw.place.layout), BLOCK, ...(i > 0 && { WITH_BEFORE: 1 }) },
        reads: [dw, ...(i > 0 ? [{ name: "BEFORE", place: places[(i - 1) % 2] }] : [])],
        writes: [{ name: "S", slots: places[i % 2].slots, layers: 1 }],
        domain: layout,
      });
    });
    const domain = lowering.layout(outputs.norm);
    const norm = lowering.draw("grad_norm", {
      trips: count + ceilDiv(count, BLOCK),
      defines: { SUMS: count, BLOCK, ...(attrs.clip?.global_norm && { CLIP_NORM: 1 }) },
      reads: [{ name: "S", place: places[(gradients.length - 1) % 2] }],
      writes: [lowering.write("F", outputs.norm), lowering.writeRows("N", STEP_NORMS, domain)],
      domain,
    });
    return [...sums, norm];
  },
};
