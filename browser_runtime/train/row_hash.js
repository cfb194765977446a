// Row hash: by which the rows of one data set can be told from those of another, made while they pass by; finds a mistake, not forgery.

/** 32 bits of each tensor's rows. */
export class RowHashes {
  constructor() {
    /** @type {Map<string, number>} */
    this.byTensor = new Map();
  }

  /** @param {string} tensor @param {ArrayLike<number>} values those of its next rows */
  take(tensor, values) {
    this.byTensor.set(tensor, rowHash(values, this.byTensor.get(tensor)));
  }

  /** All of them as text, the same in whatever order the tensors were named. */
  get key() {
    return JSON.stringify([...this.byTensor].sort());
  }
}

/**
 * MurmurHash3 over one number after another, without its last steps; about 0.1 s for 100 million.
 * @param {ArrayLike<number>} values hashed as the float32 that the device holds @param {number} [before] the hash of those before them
 * @returns {number}
 */
function rowHash(values, before = 0) {
  const { buffer, byteOffset, length } = values instanceof Float32Array ? values : Float32Array.from(values);
  const words = new Int32Array(buffer, byteOffset, length);
  let hash = before;
  for (let i = 0; i < length; i++) {
    const word = Math.imul(words[i], 0xcc9e2d51);
    hash ^= Math.imul((word << 15) | (word >>> 17), 0x1b873593);
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  return hash;
}
