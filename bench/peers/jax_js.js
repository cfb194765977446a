// jax-js as a contender, in its fastest form: the whole step, update included, under one `jit`; data and labels on the device before training.
// Its arrays are owned: each use of one consumes a reference, `.ref` keeps it.
import { inSlices } from "../timing.js";
import { batchesOf, layersOf, outputShape, weightsOf } from "../workloads.js";

/** @import { Workload } from "../workloads.js" */
/** @import { Contender, Training } from "../timing.js" */

const MODULE = "/bench/node_modules/@jax-js/jax/dist/index.js";
const [BETA1, BETA2, EPS] = [0.9, 0.999, 1e-8];

/** @param {string} backend webgl, webgpu or wasm @returns {Promise<Contender>} */
export async function load(backend) {
  const jax = await import(MODULE);
  return {
    prepare(workload) {
      const batches = batchesOf(workload);
      const weights = channelsFirst(workload);
      return async () => {
        const ready = await jax.init(backend);
        if (!ready.includes(backend)) throw new Error(`jax-js could not start its backend ${backend}`);
        jax.defaultDevice(backend);
        return start(jax, workload, batches, weights);
      };
    },
  };
}

/** Weights as jax-js convolves: images [batch, channels, height, width], kernels [out, in, height, width], so that flattening orders by
 * channel first. @param {Workload} workload */
function channelsFirst(workload) {
  const weights = weightsOf(workload);
  let at = 0;
  let shape = workload.input;
  let image = /** @type {number[]|null} */ (null);
  for (const layer of layersOf(workload)) {
    if (layer.type === "flatten") image = shape;
    if (layer.type === "conv2d") {
      const weight = weights[at++];
      const [kh, kw, inputs, outputs] = weight.shape;
      const kernel = new Float32Array(weight.kernel.length);
      for (let o = 0; o < outputs; o++) {
        for (let c = 0; c < inputs; c++) {
          for (let k = 0; k < kh * kw; k++) kernel[(o * inputs + c) * kh * kw + k] = weight.kernel[(k * inputs + c) * outputs + o];
        }
      }
      Object.assign(weight, { kernel, shape: [outputs, inputs, kh, kw] });
    }
    if (layer.type === "dense") {
      const weight = weights[at++];
      if (image) {
        const [h, w, channels] = image;
        const columns = weight.shape[1];
        const kernel = new Float32Array(weight.kernel.length);
        for (let p = 0; p < h * w; p++) {
          for (let c = 0; c < channels; c++) {
            kernel.set(weight.kernel.subarray((p * channels + c) * columns, (p * channels + c + 1) * columns), (c * h * w + p) * columns);
          }
        }
        weight.kernel = kernel;
        image = null;
      }
    }
    shape = outputShape(layer, shape);
  }
  return weights;
}

/** @param {any} jax @param {Workload} workload @param {ReturnType<typeof batchesOf>} batches @param {ReturnType<typeof weightsOf>} weights @returns {Training} */
function start(jax, workload, batches, weights) {
  const { jit, lax, nn, numpy: np, tree, valueAndGrad } = jax;
  const layers = layersOf(workload);
  if (workload.input.length === 3 && workload.input[2] !== 1) throw new Error(`${workload.name}: jax-js gets images of one channel here`);
  const toDevice = (/** @type {any} */ data, /** @type {number[]} */ shape) => np.array(data).reshape(shape);
  const data = batches.map(({ x, y }) => {
    const shape = x.shape.length === 4 ? [x.shape[0], x.shape[3], x.shape[1], x.shape[2]] : x.shape; // one channel: the same order
    const labels = workload.loss === "bce" ? y.data : oneHot(y.data, workload.outputs);
    return { x: toDevice(x.data, shape), y: toDevice(labels, [workload.batch, workload.outputs]) };
  });
  const parameters = () => weights.map(({ kernel, bias, shape }) => ({ w: toDevice(kernel, shape), b: toDevice(bias, [bias.length]) }));

  const forward = (/** @type {any[]} */ params, /** @type {any} */ x) => {
    let at = 0;
    for (const layer of layers) {
      if (layer.type === "dense") {
        const { w, b } = params[at++];
        x = np.matmul(x, w).add(b);
      } else if (layer.type === "conv2d") {
        const { w, b } = params[at++];
        x = lax.conv(x, w, [1, 1], "VALID").add(b.reshape([-1, 1, 1]));
      } else if (layer.type === "max_pool2d") x = lax.reduceWindow(x, np.max, [layer.size, layer.size], [layer.size, layer.size]);
      else x = x.reshape([x.shape[0], -1]);
      if (layer.activation === "relu") x = nn.relu(x);
    }
    return x;
  };
  const lossOf = (/** @type {any[]} */ params, /** @type {any} */ x, /** @type {any} */ y) => {
    const z = forward(params, x);
    if (workload.loss === "bce") return np.mean(nn.softplus(z.ref).sub(y.mul(z)));
    return np.sum(nn.logSoftmax(z).mul(y)).mul(-1 / workload.batch);
  };

  const { type, lr } = workload.optimizer;
  const sgd = (/** @type {any} */ params, /** @type {any} */ x, /** @type {any} */ y) => {
    const [loss, grads] = valueAndGrad(lossOf)(tree.ref(params), x, y);
    return [tree.map((/** @type {any} */ p, /** @type {any} */ g) => p.sub(g.mul(lr)), params, grads), loss];
  };
  // b1 and b2 are beta1^t and beta2^t: products, since exp may be wrong by more than 1 - beta2 bears
  const adam = (/** @type {any} */ { p, m, v, b1, b2 }, /** @type {any} */ x, /** @type {any} */ y) => {
    const [loss, grads] = valueAndGrad(lossOf)(tree.ref(p), x, y);
    b1 = b1.mul(BETA1);
    b2 = b2.mul(BETA2);
    const rate = np.reciprocal(b1.ref.mul(-1).add(1)).mul(lr);
    const scale = np.reciprocal(b2.ref.mul(-1).add(1));
    m = tree.map((/** @type {any} */ m, /** @type {any} */ g) => m.mul(BETA1).add(g.mul(1 - BETA1)), m, tree.ref(grads));
    v = tree.map((/** @type {any} */ v, /** @type {any} */ g) => v.mul(BETA2).add(np.square(g).mul(1 - BETA2)), v, grads);
    p = tree.map(
      (/** @type {any} */ p, /** @type {any} */ m, /** @type {any} */ v) => p.sub(m.mul(rate.ref).div(np.sqrt(v.mul(scale.ref)).add(EPS))),
      p, tree.ref(m), tree.ref(v),
    );
    rate.dispose();
    scale.dispose();
    return [{ p, m, v, b1, b2 }, loss];
  };
  const zeros = () => parameters().map(({ w, b }) => ({ w: np.zerosLike(w), b: np.zerosLike(b) }));
  const step = jit(type === "adam" ? adam : sgd);
  let state = type === "adam" ? { p: parameters(), m: zeros(), v: zeros(), b1: np.array(1), b2: np.array(1) } : parameters();

  let taken = 0;
  return {
    async run(steps) {
      /** @type {any} */
      let loss = null;
      await inSlices(steps, () => {
        const { x, y } = data[taken++ % data.length];
        loss?.dispose();
        [state, loss] = step(state, x.ref, y.ref);
      });
      return (await loss.data())[0];
    },
    facts: () => ({}),
    dispose() {
      tree.dispose(state);
      step.dispose();
      for (const { x, y } of data) tree.dispose([x, y]);
    },
  };
}

/** @param {ArrayLike<number>} classes @param {number} count @returns {Float32Array} */
function oneHot(classes, count) {
  const out = new Float32Array(classes.length * count);
  for (let r = 0; r < classes.length; r++) out[r * count + classes[r]] = 1;
  return out;
}
