// Products with a gradient that is stored as gates and factors: gated_gradients.js says which.
import { texelsFor } from "../fragment_rows.js";
import { ceilDiv, GATED_ROWS } from "../layout.js";
import { ACTIVATIONS, atOnce, BLOCK, find, slopeSource, texelsAtOnce } from "./common.js";
import { updateParts } from "./update.js";

/** @import { Lowering } from "../lowering.js" */

/** @param {Lowering} lowering @param {string} gradient */
function readGated(lowering, gradient) {
  const { gates, factors } = lowering.gated(gradient);
  return [{ name: "G", place: gates }, { name: "F", place: factors }];
}

/** In the place of what makes the gradient. @param {Lowering} lowering @param {any} group */
export function makeGates(lowering, group) {
  const { dy, w } = find(group, "affine_grad_input").inputs;
  const grad = find(group, "activation_grad");
  const { gates, factors } = lowering.gated(grad.outputs.dx);
  return lowering.draw("gates", {
    trips: 0,
    defines: {},
    reads: [lowering.read("DY", dy), lowering.read("V", w), lowering.read("Y", slopeSource(grad))],
    writes: [{ name: "G", slots: gates.slots, layers: 1 }, { name: "F", slots: factors.slots, layers: 1 }],
    domain: gates.layout,
  });
}

/** @param {Lowering} lowering @param {any} group */
export function gatedInputGradient(lowering, group) {
  const { dy, w } = find(group, "affine_grad_input").inputs;
  const grad = find(group, "activation_grad");
  const dx = (grad ?? find(group, "affine_grad_input")).outputs.dx;
  const { texelsPerRow } = lowering.layout(dy);
  return lowering.draw("gated_grad_input", {
    trips: texelsPerRow,
    defines: { BLOCK, GRAD_ACTIVATION: ACTIVATIONS[grad?.attrs.fn ?? "linear"], DZ_TEXELS_PER_ROW: texelsPerRow, ...texelsAtOnce(texelsFor(lowering.wanted.texels, GATED_ROWS), texelsPerRow) },
    reads: [...readGated(lowering, dy), lowering.read("W", w), ...(grad ? [lowering.read("Y", slopeSource(grad))] : [])],
    writes: [lowering.write("DX", dx)],
    domain: lowering.layout(dx),
  });
}

/** The gradient, turned, and the update from it. @param {Lowering} lowering @param {any} group */
export function gatedWeightGradient(lowering, group) {
  const { x, dy } = find(group, "affine_grad_weights").inputs;
  const { update, states, gradient } = updateParts(lowering, group);
  const domain = lowering.layout(gradient);
  const { texelsPerRow, columns } = lowering.layout(dy);
  const biases = { BIASES_FROM: ceilDiv(columns, GATED_ROWS) };
  return [
    lowering.draw("gated_grad_weights", {
      trips: lowering.batchRows / GATED_ROWS,
      defines: { DZ_TEXELS_PER_ROW: texelsPerRow, DZ_COLUMNS: columns, ...biases, ...atOnce("SAMPLE", GATED_ROWS) },
      reads: [...readGated(lowering, dy), lowering.read("X", x)],
      writes: [lowering.write("DW", gradient)],
      domain,
    }),
    lowering.draw("update", { ...update, trips: 8, defines: { ...update.defines, TURNED: 1, ...biases }, reads: [lowering.read("DW", gradient), ...states] }),
  ];
}
