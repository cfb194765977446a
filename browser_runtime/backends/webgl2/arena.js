// Arena: assigns tensors to textures so that tensors that are never alive together share one place. Pure arithmetic.
import { EngineError } from "../../errors.js";
import { extent, filled, isPowerOfTwo, sizeAbove, stackedSize, textureBytes } from "./layout.js";

/** @import { Lanes, Layout, Numbers } from "./layout.js" */

/** A texture array: RGBA32F or RGBA32UI, of one lane R32F or R32UI, where these are not floats R32I or R32UI. `copied`: beside it there is a buffer of its
 * size, into which its texels are copied.
 * @typedef {{width: number, height: number, layers: number, lanes: Lanes, numbers: Numbers, copied?: boolean}} Texture */

/**
 * Where a tensor lies, or several that are never alive together: all of a texture, or `height` of its lines from line `y` on. A folded one's width
 * is a power of two.
 * @typedef {Texture & {texture: number, y: number, folded: boolean}} Slot
 */

/**
 * A tensor that shares textures with others, alive from group `first` to `last`; `below`: what lies below it meanwhile.
 * @typedef {{name: string, layout: Layout, first: number, last: number, below?: {name: string, layout: Layout}}} Tenant
 */

export class Arena {
  /** @param {number} maxSize MAX_TEXTURE_SIZE */
  constructor(maxSize) {
    this.maxSize = maxSize;
    /** @type {Texture[]} */
    this.textures = [];
    /** @type {Slot[]} */
    this.slots = [];
  }

  /**
   * A texture of its own.
   * @param {string} name for the message
   * @param {Layout} layout
   * @param {{lanes?: Lanes, numbers?: Numbers, copied?: boolean, like?: Slot, below?: Layout}} [options] `like`: another render target of the same draw, whose size it must have;
   *   `below`: of what lies below it
   * @returns {number} its slot
   */
  own(name, layout, { lanes = 4, numbers = "float", copied = false, like, below } = {}) {
    const own = like ?? extent(layout, this.maxSize);
    const size = own && below ? sizeAbove(own, below) : own;
    if (!size || size.height > this.maxSize || size.width > this.maxSize) {
      throw new EngineError("too_large", `${name} needs ${layout.texels} texels in each layer; this device's textures hold ${this.maxSize} x ${this.maxSize}`, {
        field: name,
      });
    }
    const texture = { width: size.width, height: size.height, layers: layout.layers, lanes, numbers, copied };
    this.textures.push(texture);
    return this.add({ ...texture, texture: this.textures.length - 1, y: 0, folded: layout.folded });
  }

  /**
   * A texture of their own for tensors that live together, one below the other.
   * @param {{name: string, layout: Layout}[]} tensors of as many layers each; several only where regions.js says so
   * @returns {number[]} their slots
   */
  stack(tensors) {
    if (tensors.length === 1) return [this.own(tensors[0].name, tensors[0].layout)];
    const { layers } = tensors[0].layout;
    const sizes = tensors.map(({ layout }) => /** @type {{width: number, height: number}} */ (extent(layout, this.maxSize)));
    const kind = { layers, lanes: /** @type {Lanes} */ (4), numbers: /** @type {Numbers} */ ("float") };
    this.textures.push({ ...stackedSize(sizes), ...kind });
    let y = 0;
    return sizes.map(({ width, height }, i) => {
      y += height;
      return this.add({ width, height, ...kind, texture: this.textures.length - 1, y: y - height, folded: tensors[i].layout.folded });
    });
  }

  /** @param {Slot} slot */
  add(slot) {
    this.slots.push(slot);
    return this.slots.length - 1;
  }

  /**
   * Shares textures among tensors of one phase: largest first, each into the first texture with its layers whose tenants' lifetimes it
   * does not meet. Phases never run together, so each starts with every texture of `shared` free.
   * @param {Tenant[]} tensors
   * @param {number[]} shared slots made by earlier phases; grows
   * @returns {Map<string, number>} tensor -> slot
   */
  share(tensors, shared) {
    /** @type {Map<number, {first: number, last: number}[]>} */
    const tenants = new Map(shared.map((slot) => [slot, []]));
    const placed = new Map();
    const texels = (/** @type {Tenant} */ { layout, below }) => layout.texels + (below?.layout.texels ?? 0);
    for (const tensor of [...tensors].sort((a, b) => texels(b) - texels(a))) {
      const free = shared.find((slot) => {
        const apart = tenants.get(slot)?.every((t) => t.last < tensor.first || tensor.last < t.first);
        return apart && fits(tensor, this.slots[slot]);
      });
      const slot = free ?? this.own(tensor.name, tensor.layout, { below: tensor.below?.layout });
      if (free === undefined) {
        shared.push(slot);
        tenants.set(slot, []);
      }
      tenants.get(slot)?.push({ first: tensor.first, last: tensor.last });
      placed.set(tensor.name, slot);
    }
    return placed;
  }

  /** A place for what lies below a tensor in its slot. @param {number} slot @param {Layout} layout of the tensor @param {Layout} below @returns {number} its slot */
  below(slot, layout, below) {
    const { width } = this.slots[slot];
    return this.add({ ...this.slots[slot], y: filled(layout, width).height, height: filled(below, width).height, folded: below.folded });
  }

  /** Lines of a texture, which grows where it is not so high. @param {Slot} slot all of it @param {number} y @param {number} height @returns {number} their slot */
  extend(slot, y, height) {
    const texture = this.textures[slot.texture];
    texture.height = Math.max(texture.height, y + height);
    return this.add({ ...slot, y, height });
  }

  /** Bytes of all textures, and of the buffers beside them. */
  get bytes() {
    return this.textures.reduce((sum, texture) => sum + textureBytes(texture) * (texture.copied ? 2 : 1), 0);
  }
}

/** @param {Tenant} tenant @param {Slot} slot */
function fits(tenant, slot) {
  const { layout, below } = tenant;
  if (layout.layers !== slot.layers || layout.folded !== slot.folded) return false;
  const own = filled(layout, slot.width);
  if (below?.layout.folded && !isPowerOfTwo(slot.width)) return false;
  const size = below ? sizeAbove({ width: slot.width, height: own.height }, below.layout) : own;
  return Math.max(own.width, size.width) <= slot.width && size.height <= slot.height;
}
