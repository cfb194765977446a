// Counts from outside what a library asks of the GPU: calls, draws or dispatches, and the bytes of textures and buffers it holds.
// Installed before the library makes its context; for this page's thread only. Slows everything down: never while a time is taken.

/** @typedef {{calls: number, draws: number, bytes: number, peakBytes: number}} Counts */

const BYTES_OF_CHANNEL = { 8: 1, 16: 2, 32: 4 };

/** Bytes of a texel, from the name of a sized format such as RGBA32F; null for an unsized one. @param {string} name */
function texelBytes(name) {
  const match = /^(R|RG|RGB|RGBA)(8|16|32)(F|I|UI|_SNORM)?$/.exec(name);
  return match && match[1].length * BYTES_OF_CHANNEL[/** @type {8|16|32} */ (Number(match[2]))];
}

/** @returns {Counts} live */
export function countCalls() {
  const counts = { calls: 0, draws: 0, bytes: 0, peakBytes: 0 };
  const hold = (/** @type {number} */ bytes) => {
    counts.bytes += bytes;
    counts.peakBytes = Math.max(counts.peakBytes, counts.bytes);
  };
  countWebGL(counts, hold);
  countWebGPU(counts, hold);
  return counts;
}

/** @param {Counts} counts @param {(bytes: number) => void} hold */
function countWebGL(counts, hold) {
  const prototype = /** @type {any} */ (WebGL2RenderingContext.prototype);
  /** @type {Map<number, number>} */
  const bytesOfFormat = new Map();
  for (const name of Object.keys(WebGL2RenderingContext)) {
    const bytes = texelBytes(name);
    if (bytes) bytesOfFormat.set(/** @type {any} */ (WebGL2RenderingContext)[name], bytes);
  }
  /** Bound texture by context, unit and target. @type {WeakMap<object, {unit: number, bound: Map<string, any>}>} */
  const contexts = new WeakMap();
  /** @type {WeakMap<object, number>} */
  const held = new WeakMap();
  const of = (/** @type {object} */ gl) => {
    let state = contexts.get(gl);
    if (!state) contexts.set(gl, (state = { unit: 0, bound: new Map() }));
    return state;
  };
  const store = (/** @type {any} */ gl, /** @type {number} */ target, /** @type {number} */ format, /** @type {number} */ texels) => {
    const { unit, bound } = of(gl);
    const texture = bound.get(`${unit}:${target}`);
    if (!texture) return;
    const bytes = texels * (bytesOfFormat.get(format) ?? 4);
    hold(bytes - (held.get(texture) ?? 0));
    held.set(texture, bytes);
  };
  /** @type {Record<string, (gl: any, args: any[]) => void>} */
  const effects = {
    activeTexture: (gl, [unit]) => void (of(gl).unit = unit - gl.TEXTURE0),
    bindTexture: (gl, [target, texture]) => void of(gl).bound.set(`${of(gl).unit}:${target}`, texture),
    texStorage2D: (gl, [target, , format, w, h]) => store(gl, target, format, w * h),
    texStorage3D: (gl, [target, , format, w, h, d]) => store(gl, target, format, w * h * d),
    texImage2D: (gl, args) => args.length === 9 && store(gl, args[0], args[2], args[3] * args[4]),
    texImage3D: (gl, args) => store(gl, args[0], args[2], args[3] * args[4] * args[5]),
    deleteTexture(_, [texture]) {
      if (!texture) return;
      hold(-(held.get(texture) ?? 0));
      held.delete(texture);
    },
  };
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const { value } = Object.getOwnPropertyDescriptor(prototype, name) ?? {};
    if (typeof value !== "function" || name === "constructor") continue;
    const draws = /^draw(Arrays|Elements|RangeElements)/.test(name) ? 1 : 0;
    const effect = effects[name];
    prototype[name] = function (/** @type {any[]} */ ...args) {
      counts.calls += 1;
      counts.draws += draws;
      effect?.(this, args);
      return value.apply(this, args);
    };
  }
}

/** Every call that encodes or submits work; memory is that of buffers. @param {Counts} counts @param {(bytes: number) => void} hold */
function countWebGPU(counts, hold) {
  const scope = /** @type {any} */ (globalThis);
  if (!scope.GPUDevice) return;
  const wrap = (/** @type {string} */ type, /** @type {(name: string) => ((self: any, args: any[], result: any) => void)|undefined} */ effectOf) => {
    const prototype = scope[type].prototype;
    for (const name of Object.getOwnPropertyNames(prototype)) {
      const { value } = Object.getOwnPropertyDescriptor(prototype, name) ?? {};
      if (typeof value !== "function" || name === "constructor") continue;
      const effect = effectOf(name);
      prototype[name] = function (/** @type {any[]} */ ...args) {
        counts.calls += 1;
        const result = value.apply(this, args);
        effect?.(this, args, result);
        return result;
      };
    }
  };
  /** @type {WeakMap<object, number>} */
  const held = new WeakMap();
  wrap("GPUDevice", (name) => name === "createBuffer" ? (_, [{ size }], buffer) => (held.set(buffer, size), hold(size)) : undefined);
  wrap("GPUBuffer", (name) => name === "destroy" ? (buffer) => (hold(-(held.get(buffer) ?? 0)), held.delete(buffer)) : undefined);
  wrap("GPUComputePassEncoder", (name) => name.startsWith("dispatch") ? () => void (counts.draws += 1) : undefined);
  wrap("GPUCommandEncoder", () => undefined);
  wrap("GPUQueue", () => undefined);
}
