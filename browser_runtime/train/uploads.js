// Files that leave while training goes on: in their order, one at a time, so that never more than one is kept for its sake.

export class Uploads {
  /** @param {(path: string, file: Uint8Array<ArrayBuffer>) => Promise<unknown>} send resolves once the file has been taken */
  constructor(send) {
    this.#send = send;
  }

  #send;
  /** @type {Promise<unknown>} */
  #underWay = Promise.resolve();
  #failed = false;
  #error = /** @type {unknown} */ (null);

  /**
   * Waits for the file before, makes this one and sends it; resolves as soon as it is under way.
   * @param {string} path @param {() => Promise<Uint8Array<ArrayBuffer>>} make
   */
  async add(path, make) {
    await this.settled();
    this.#underWay = this.#send(path, await make()).catch((error) => {
      this.#failed = true;
      this.#error = error;
    });
  }

  /** Resolves once every file has been taken; rejects if one was not, and none follows it. */
  async settled() {
    await this.#underWay;
    if (this.#failed) throw this.#error;
  }
}
