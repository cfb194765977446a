// Arranging: the draws that put rows and columns of the batch where uniform blocks are copied from (uniform_rows.js).
import { ceilDiv } from "./layout.js";
import { columnsPartOf, partOf, UNIFORM_LINES, UNIFORM_ROWS } from "./uniform_rows.js";

/** @import { Draw, Parts } from "./draw.js" */
/** @import { Layout } from "./layout.js" */
/** @import { Lowering } from "./lowering.js" */

/** @param {Lowering} lowering @param {string} kernel @param {string} name of the operand @param {number} slot of the lines @param {Pick<Parameters<Lowering["draw"]>[1], "defines"|"domain"|"fills">} parts */
const intoLines = (lowering, kernel, name, slot, parts) =>
  lowering.draw(kernel, { ...parts, trips: 0, reads: [lowering.read("X", name)], writes: [{ name: "A", slots: [slot, slot], layers: 1 }] });

/**
 * Puts rows of the batch, group by group, where a product finds them, and beside them the columns for the weight gradients behind it, of which `lowering.columns`
 * says where they are.
 * @param {Lowering} lowering @param {string} name of the product's operand @param {string} result
 * @returns {{draws: Draw[], parts: Parts}} parts of the rows
 */
export function arrange(lowering, name, result) {
  const slot = /** @type {number} */ (lowering.arranged);
  const rows = { slot, texels: partOf(lowering.layout(name).texelsPerRow), groups: lowering.batchRows / UNIFORM_ROWS, perLine: 1, y: 0 };
  let height = rows.groups;
  // The columns of the product before are not read any more.
  const beside = [...lowering.uniformGradients].flatMap(([gradient, { x, w, beside: after }]) => {
    const domain = lowering.places.get(gradient)?.layout ?? (w && lowering.layout(w));
    if (after !== result || !domain || domain.lines !== UNIFORM_LINES) return [];
    const draw = arrangeColumns(lowering, x, gradient, domain, height);
    height += draw.height;
    return [draw];
  });
  const pitch = beside.length > 0 ? lowering.arena.slots[slot].width : rows.texels;
  const domain = lowering.measure({ rows: rows.groups, columns: rows.texels * 4, layers: 1 });
  return { draws: [...beside, intoLines(lowering, "arrange", name, slot, { defines: {}, domain, fills: { slot, width: pitch, height } })], parts: { ...rows, pitch } };
}

/**
 * @param {Lowering} lowering @param {string} name of the layer's input @param {string} gradient @param {Layout} domain of the draw that makes it
 * @param {number} y first line @returns {Draw}
 */
function arrangeColumns(lowering, name, gradient, { groups, biasRow, spread }, y) {
  const texture = lowering.arena.slots[/** @type {number} */ (lowering.arranged)];
  const texels = columnsPartOf(lowering.batchRows);
  const perLine = Math.floor(texture.width / texels), height = ceilDiv(groups, perLine);
  const slot = lowering.arena.behind(texture, y, height);
  lowering.columns.set(gradient, { slot, texels, groups, perLine, y, pitch: texture.width });
  const defines = { PART: texels, PARTS_PER_LINE: perLine, BIAS_PART: biasRow < 0 ? -1 : biasRow / UNIFORM_ROWS, ...(spread && { SPREAD: 1 }) };
  const domain = lowering.measure({ rows: height, columns: perLine * texels * 4, layers: 1 });
  return intoLines(lowering, "arrange_columns", name, slot, { defines, domain });
}
