// tfjs as a contender, in its fastest form: production mode, data and labels on the device before training, matmul and convolution fused with
// their bias (with an activation as well, tfjs undoes the fusion as soon as gradients are taken), losses with a gradient of their own in as
// few kernels as it takes, and no cost read but the last.
import { inSlices } from "../timing.js";
import { batchesOf, layersOf, weightsOf } from "../workloads.js";

/** @import { Workload } from "../workloads.js" */
/** @import { Contender, Training } from "../timing.js" */

const PACKAGES = "/bench/node_modules/@tensorflow/";

/** The bundles are classic scripts that share a global `tf`. @param {string} file below the packages' folder */
function bundle(file) {
  const script = document.createElement("script");
  script.src = `${PACKAGES}${file}.es2017.min.js`;
  return new Promise((resolve, reject) => {
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${script.src} is missing: run npm ci in bench/`));
    document.head.append(script);
  });
}

/** @param {string} backend webgl, webgpu, wasm or cpu @returns {Promise<Contender>} */
export async function load(backend) {
  await bundle("tfjs/dist/tf"); // with its gradients and the backends webgl and cpu
  if (backend === "wasm" || backend === "webgpu") await bundle(`tfjs-backend-${backend}/dist/tf-backend-${backend}`);
  const { tf } = /** @type {any} */ (globalThis);
  tf.enableProdMode();
  if (backend === "wasm") tf.wasm.setWasmPaths(`${PACKAGES}tfjs-backend-wasm/dist/`);
  return {
    prepare(workload) {
      const batches = batchesOf(workload);
      const weights = weightsOf(workload);
      return async () => {
        if (tf.getBackend() !== backend && !(await tf.setBackend(backend))) throw new Error(`tfjs could not start its backend ${backend}`);
        await tf.ready();
        return start(tf, workload, batches, weights);
      };
    },
  };
}

/** @param {any} tf @param {Workload} workload @param {ReturnType<typeof batchesOf>} batches @param {ReturnType<typeof weightsOf>} weights @returns {Training} */
function start(tf, workload, batches, weights) {
  const classes = workload.outputs;
  const data = batches.map(({ x, y }) => ({
    x: tf.tensor(x.data, x.shape, "float32"),
    y: workload.loss === "bce" ? tf.tensor(y.data, y.shape, "float32") : tf.tidy(() => tf.cast(tf.oneHot(tf.tensor1d(y.data, "int32"), classes), "float32")),
  }));
  const variable = (/** @type {Float32Array} */ values, /** @type {number[]} */ shape) => {
    const initial = tf.tensor(values, shape, "float32");
    const made = tf.variable(initial);
    initial.dispose(); // or it would keep the initial values in memory
    return made;
  };
  const variables = weights.map(({ shape, kernel, bias }) => ({ kernel: variable(kernel, shape), bias: variable(bias, [bias.length]) }));
  const trained = variables.flatMap(({ kernel, bias }) => [kernel, bias]);
  const { type, lr } = workload.optimizer;
  const optimizer = type === "adam" ? tf.train.adam(lr, 0.9, 0.999, 1e-8) : tf.train.sgd(lr);
  const lossOf = workload.loss === "bce" ? bce(tf, workload) : softmaxCrossEntropy(tf, workload);
  const layers = layersOf(workload);

  const forward = (/** @type {any} */ x) => {
    let at = 0;
    for (const layer of layers) {
      if (layer.type === "dense") {
        const { kernel, bias } = variables[at++];
        x = tf.fused.matMul({ a: x, b: kernel, bias });
      } else if (layer.type === "conv2d") {
        const { kernel, bias } = variables[at++];
        x = tf.fused.conv2d({ x, filter: kernel, strides: 1, pad: "valid", bias });
      } else if (layer.type === "max_pool2d") x = tf.maxPool(x, layer.size, layer.size, "valid");
      else x = tf.reshape(x, [x.shape[0], -1]);
      if (layer.activation === "relu") x = tf.relu(x);
    }
    return x;
  };

  let taken = 0;
  return {
    async run(steps) {
      /** @type {any} */
      let cost;
      await inSlices(steps, (i) => {
        const { x, y } = data[taken++ % data.length];
        cost = optimizer.minimize(() => lossOf(forward(x), y), i === steps - 1, trained);
      });
      const [loss] = await cost.data();
      cost.dispose();
      return loss;
    },
    facts: () => ({ version: tf.version_core, ...(tf.getBackend() === "webgl" && { ownBytes: tf.memory().numBytesInGPU }) }),
    dispose() {
      optimizer.dispose();
      tf.disposeVariables();
      for (const { x, y } of data) tf.dispose([x, y]);
    },
  };
}

/**
 * The same number for each output of a batch. Not a scalar: tfjs packs 2 x 2 values a texel, and on webgl leaves sigmoid(0) = 0.5 in lanes past
 * the last column, which the next products take for values. A factor that was uploaded has zeros there.
 * @param {any} tf @param {Workload} workload @param {number} value
 */
const everywhere = (tf, { batch, outputs }, value) => tf.tensor(new Float32Array(batch * outputs).fill(value), [batch, outputs]);

/** Mean over the batch and the outputs of softplus(z) - y z. What comes from above is 1: the cost is the root of the gradient.
 * @param {any} tf @param {Workload} workload */
function bce(tf, workload) {
  const share = everywhere(tf, workload, 1 / (workload.batch * workload.outputs));
  return (/** @type {any} */ z, /** @type {any} */ y) =>
    tf.customGrad((/** @type {any} */ z, /** @type {any} */ save) => {
      save([z]);
      const value = tf.mean(tf.sub(tf.softplus(z), tf.mul(y, z)));
      return { value, gradFunc: (/** @type {any} */ _, /** @type {any[]} */ [z]) => tf.mul(tf.sub(tf.sigmoid(z), y), share) };
    })(z);
}

/** Mean over the batch of -log softmax(z) at the right class. @param {any} tf @param {Workload} workload */
function softmaxCrossEntropy(tf, workload) {
  const [share, negative] = [everywhere(tf, workload, 1 / workload.batch), tf.scalar(-1 / workload.batch)];
  return (/** @type {any} */ z, /** @type {any} */ y) =>
    tf.customGrad((/** @type {any} */ z, /** @type {any} */ save) => {
      const logits = tf.logSoftmax(z);
      save([logits]);
      const value = tf.mul(tf.sum(tf.mul(logits, y)), negative);
      return { value, gradFunc: (/** @type {any} */ _, /** @type {any[]} */ [logits]) => tf.mul(tf.sub(tf.exp(logits), y), share) };
    })(z);
}
