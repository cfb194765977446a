// Summed parts: which logits are stored as sums over parts of their layer's inputs, one behind the other, for whoever reads them to add. Pure arithmetic.
import { sumPartsFor } from "./fragment_rows.js";
import { isOneDraw } from "./kernels/loss.js";
import { layoutInParts, texelsOf } from "./layout.js";

/** @import { Layout } from "./layout.js" */
/** @import { Lowering } from "./lowering.js" */

/**
 * The layout of a tensor: in parts where it is logits that only a softmax's loss and gradient read, in one draw.
 * @param {Lowering} lowering @param {string} name @param {Layout} layout of one part @returns {Layout}
 */
export function inParts({ phase, wanted, arena, operands }, name, layout) {
  const maker = phase.groups.find(({ outputs }) => Object.values(outputs).includes(name));
  const readers = phase.groups.filter(({ inputs }) => Object.values(inputs).includes(name));
  if (maker?.kernel !== "affine" || maker.ops.length > 1 || operands.has(maker) || readers.length !== 1 || !isOneDraw(readers[0], layout)) return layout;
  const x = phase.tensors.get(maker.ops[0].inputs.x);
  const parts = sumPartsFor(wanted.sums, texelsOf(x?.shape ?? []), layout.texels);
  return parts === 1 ? layout : { ...layoutInParts(layout, parts, arena.maxSize), parts };
}
