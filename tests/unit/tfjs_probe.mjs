// tfjs_probe.mjs: loads an exported model with TensorFlow.js and predicts, for test_exports.py. Usage: node tfjs_probe.mjs FOLDER
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(new URL("../../bench/package.json", import.meta.url));
console.warn = console.log = () => {}; // it advertises its native build
const tf = require("@tensorflow/tfjs");
await tf.setBackend("cpu");
const folder = process.argv[2];
const document = JSON.parse(readFileSync(`${folder}/model.json`, "utf8"));
const [{ paths, weights }] = document.weightsManifest;
const data = Buffer.concat(paths.map((path) => readFileSync(`${folder}/${path}`)));
const model = await tf.loadLayersModel({
  load: async () => ({
    modelTopology: document.modelTopology,
    weightSpecs: weights,
    weightData: data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength),
  }),
});
const x = JSON.parse(readFileSync(`${folder}/x.json`, "utf8"));
const y = model.predict(model.inputNames.map((name) => tf.tensor(x[name].data, x[name].shape)));
process.stdout.write(JSON.stringify({ shape: y.shape, data: Array.from(y.dataSync()) }));
