// Arranging: the draws that put rows and columns of the batch where uniform blocks are copied from (uniform_rows.js).
import { ceilDiv } from "./layout.js";
import { blockOf, columnsBlockOf, UNIFORM_LINES, UNIFORM_ROWS } from "./uniform_rows.js";

/** @import { Blocks, Draw } from "./draw.js" */
/** @import { Layout } from "./layout.js" */
/** @import { Lowering } from "./lowering.js" */

/** @param {Lowering} lowering @param {string} kernel @param {string} name of the operand @param {number} slot of the lines @param {Pick<Parameters<Lowering["draw"]>[1], "defines"|"domain"|"fills">} parts */
const intoLines = (lowering, kernel, name, slot, parts) =>
  lowering.draw(kernel, { ...parts, trips: 0, reads: [lowering.read("X", name)], writes: [{ name: "A", slots: [slot, slot], layers: 1 }] });

/**
 * Puts rows of the batch, group by group, where a product finds them, and beside them the columns for the weight gradients behind it, of which `lowering.columns`
 * says where they are.
 * @param {Lowering} lowering @param {string} name of the product's operand @param {string} result
 * @returns {{draws: Draw[], blocks: Blocks}} blocks of the rows
 */
export function arrange(lowering, name, result) {
  const slot = /** @type {number} */ (lowering.arranged);
  const rows = { slot, texels: blockOf(lowering.layout(name).texelsPerRow), groups: lowering.batchRows / UNIFORM_ROWS, perLine: 1, y: 0 };
  const columns = arrangeColumns(lowering, result, rows.groups);
  const pitch = columns.draws.length > 0 ? lowering.arena.slots[slot].width : rows.texels;
  const domain = lowering.measure({ rows: rows.groups, columns: rows.texels * 4, layers: 1 });
  const draw = intoLines(lowering, "arrange", name, slot, { defines: {}, domain, fills: { slot, width: pitch, height: columns.end } });
  return { draws: [...columns.draws, draw], blocks: { ...rows, pitch } };
}

/**
 * The columns for all gradients whose draws come before the next product's rows are arranged; those of the product before are not read any more. Gradients of
 * layers with the same input share them. What no line is left for is made from textures.
 * @param {Lowering} lowering @param {string} result of the product @param {number} first line
 * @returns {{draws: Draw[], end: number}} and the line behind the last one
 */
function arrangeColumns(lowering, result, first) {
  const { arena, batchRows, columns } = lowering;
  const texture = arena.slots[/** @type {number} */ (lowering.arranged)];
  const texels = columnsBlockOf(batchRows), perLine = Math.floor(texture.width / texels);
  /** By input, and by whether the weights are spread. @type {Map<string, {x: string, domains: Map<string, Layout>}>} */
  const shared = new Map();
  for (const [gradient, { x, w, beside }] of lowering.uniformGradients) {
    const domain = lowering.places.get(gradient)?.layout ?? (w && lowering.layout(w));
    if (beside !== result || !domain || domain.lines !== UNIFORM_LINES) continue;
    const key = `${x} ${domain.spread}`;
    shared.set(key, { x, domains: new Map([...(shared.get(key)?.domains ?? []), [gradient, domain]]) });
  }
  let y = first;
  const draws = [...shared.values()].flatMap(({ x, domains }) => {
    // A bias is a row group behind the others, if there is one.
    const longest = [...domains.values()].reduce((a, b) => (a.groups >= b.groups ? a : b));
    const height = ceilDiv(longest.groups, perLine);
    if (y + height > arena.maxSize) return [];
    const slot = arena.extend(texture, y, height);
    for (const [gradient, { groups }] of domains) columns.set(gradient, { slot, texels, groups, perLine, y, pitch: texture.width });
    y += height;
    const biasBlock = longest.biasRow < 0 ? -1 : longest.biasRow / UNIFORM_ROWS;
    const defines = { BLOCK_TEXELS: texels, BLOCKS_PER_LINE: perLine, BIAS_BLOCK: biasBlock, ...(longest.spread && { SPREAD: 1 }) };
    return [intoLines(lowering, "arrange_columns", x, slot, { defines, domain: lowering.measure({ rows: height, columns: perLine * texels * 4, layers: 1 }) })];
  });
  return { draws, end: y };
}
