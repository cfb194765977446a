// Held: rows in this thread's memory, in blocks: one array of gigabytes can't always be made.

const BLOCK_BYTES = 64 << 20;

export class Held {
  /** Reserves nothing yet. @param {number} rows @param {number} columns @param {number} [blockBytes] */
  constructor(rows, columns, blockBytes = BLOCK_BYTES) {
    this.columns = columns;
    this.rows = rows;
    this.rowsOfBlock = Math.max(1, Math.floor(blockBytes / (4 * columns)));
    /** @type {Float32Array[]} */
    this.blocks = [];
  }

  /** @param {number} b */
  block(b) {
    const rows = Math.min(this.rowsOfBlock, this.rows - b * this.rowsOfBlock);
    return (this.blocks[b] ??= new Float32Array(rows * this.columns));
  }

  /** @param {number} firstRow @param {ArrayLike<number>} values whole rows */
  write(firstRow, values) {
    const { columns, rowsOfBlock } = this;
    const count = values.length / columns;
    for (let done = 0; done < count; ) {
      const row = firstRow + done;
      const some = Math.min(count - done, rowsOfBlock - (row % rowsOfBlock));
      const block = this.block(Math.floor(row / rowsOfBlock));
      const start = (row % rowsOfBlock) * columns;
      for (let i = 0; i < some * columns; i++) block[start + i] = values[done * columns + i];
      done += some;
    }
  }

  /** Rows in any order. @param {ArrayLike<number>} order row numbers, -1 for zeros @returns {Float32Array} [rows, columns] */
  gather(order) {
    const { columns, rowsOfBlock } = this;
    const out = new Float32Array(order.length * columns);
    for (let i = 0; i < order.length; i++) {
      if (order[i] < 0) continue;
      const start = (order[i] % rowsOfBlock) * columns;
      out.set(this.block(Math.floor(order[i] / rowsOfBlock)).subarray(start, start + columns), i * columns);
    }
    return out;
  }
}
