// bad_input_page.js: what a page may give wrongly to each call of the public module, by name, for test_bad_input.py.
import { compile, diagnose, estimate, probe, train } from "../../browser_runtime/texelgrad.js";

/** @typedef {{spec: any, data: any, session: any}} Good */

const x = { shape: [20, 4], data: new Float32Array(80) };
const many = Array.from({ length: 100 }, (_, i) => i);

/** What train() takes without validation rows. @param {any} spec */
const bare = (spec) => ({ ...spec, metrics: [] });

/** @type {Record<string, (good: Good) => any>} */
const CALLS = {
  "compile: options null": ({ spec }) => compile(spec, /** @type {any} */ (null)),
  "compile: options a signal": ({ spec }) => compile(spec, /** @type {any} */ (AbortSignal.timeout(1e6))),
  "compile: unknown": ({ spec, data }) => compile(spec, /** @type {any} */ ({ data, allowSofware: true })),
  "compile: data 5": ({ spec }) => compile(spec, { data: /** @type {any} */ (5) }),
  "compile: data null": ({ spec }) => compile(spec, { data: /** @type {any} */ (null) }),
  "compile: data text": ({ spec }) => compile(spec, { data: /** @type {any} */ ("rows") }),
  "compile: no data": ({ spec }) => compile(spec),
  "compile: x null": ({ spec, data }) => compile(spec, { data: { ...data, x: null } }),
  "compile: x 5": ({ spec, data }) => compile(spec, { data: { ...data, x: 5 } }),
  "compile: x a Float32Array": ({ spec, data }) => compile(spec, { data: { ...data, x: data.x.data } }),
  "compile: x without shape": ({ spec, data }) => compile(spec, { data: { ...data, x: { data: data.x.data } } }),
  "compile: x of half a row": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [2.5, 4], data: new Float32Array(10) } } }),
  "compile: x of text lengths": ({ spec, data }) => compile(spec, { data: { ...data, x: { ...data.x, shape: ["20", 4] } } }),
  "compile: x both ways": ({ spec, data }) => compile(spec, { data: { ...data, x: { ...data.x, read: () => data.x.data } } }),
  "compile: x.data text": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], data: "7".repeat(80) } } }),
  "compile: x.data null": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], data: null } } }),
  "compile: x.data with null": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], data: [null, ...many.slice(0, 79)] } } }),
  "compile: x.data bigints": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], data: new BigInt64Array(80) } } }),
  "compile: x.read 5": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], read: 5 } } }),
  "compile: x.read gives nothing": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], read: () => {} } } }),
  "compile: x.read gives text": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], read: () => Array(80).fill("1") } } }),
  "compile: x.read gives bigints": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], read: () => new BigInt64Array(80) } } }),
  "compile: x.url unreachable": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], url: "http://127.0.0.1:9/x" } } }),
  "compile: x.url 5": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], url: 5 } } }),
  "compile: x.url none": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], url: "http://" } } }),
  "compile: x.url with dtyp": ({ spec, data }) => compile(spec, { data: { ...data, x: { shape: [20, 4], url: "x.bin", dtyp: "int32" } } }),
  "compile: weight null": ({ spec, data }) => compile(spec, { data: { ...data, weight: null } }),
  "compile: backend 0": ({ spec, data }) => compile(spec, { data, backend: /** @type {any} */ (0) }),
  "compile: shaderUrl empty": ({ spec, data }) => compile(spec, { data, shaderUrl: "" }),
  "compile: shaderUrl none": ({ spec, data }) => compile(spec, { data, shaderUrl: "http://" }),
  "compile: initialWeights 7": ({ spec, data }) => compile(spec, { data, initialWeights: /** @type {any} */ (7) }),
  "compile: initialWeights null": ({ spec, data }) => compile(spec, { data, initialWeights: /** @type {any} */ (null) }),
  "compile: initialWeights a promise": ({ spec, data, session }) => compile(spec, { data, initialWeights: session.getWeights() }),
  "compile: initialWeights of null": ({ spec, data }) => compile(spec, { data, initialWeights: { "dense_1.kernel": /** @type {any} */ (null) } }),
  "compile: allowSoftware yes": ({ spec, data }) => compile(spec, { data, allowSoftware: /** @type {any} */ ("yes") }),
  "compile: signal 3": ({ spec, data }) => compile(spec, { data, signal: /** @type {any} */ (3) }),
  "compile: signal null": ({ spec, data }) => compile(spec, { data, signal: /** @type {any} */ (null) }),
  "compile: thread x": ({ spec, data }) => compile(spec, { data, thread: /** @type {any} */ ("x") }),
  "compile: device 3": ({ spec, data }) => compile(spec, { data, device: /** @type {any} */ (3) }),
  "compile: device null": ({ spec, data }) => compile(spec, { data, device: /** @type {any} */ (null) }),
  "compile: device.rows 3": ({ spec, data }) => compile(spec, { data, device: { rows: /** @type {any} */ (3) } }),
  "compile: device.residentBytes NaN": ({ spec, data }) => compile(spec, { data, device: { residentBytes: NaN } }),
  "compile: spec 5": ({ data }) => compile(5, { data }),
  "compile: spec a promise": ({ spec, data }) => compile(Promise.resolve(spec), { data }),
  "compile: spec a list": ({ data }) => compile([1, 2], { data, backend: "auto" }),
  "compile: spec of bigints": ({ spec, data }) => compile({ ...spec, train: { steps: 5n } }, { data }),
  "train: data given twice": ({ spec, data }) => train(bare(spec), data, /** @type {any} */ ({ data })),
  "train: data null": ({ spec }) => train(bare(spec), /** @type {any} */ (null)),
  "train: options null": ({ spec, data }) => train(bare(spec), data, /** @type {any} */ (null)),
  "train: onTelemetry 1": ({ spec, data }) => train(bare(spec), data, { onTelemetry: /** @type {any} */ (1) }),
  "probe: thread null": () => probe({ thread: /** @type {any} */ (null) }),
  "probe: allowSoftware": () => probe(/** @type {any} */ ({ allowSoftware: false })),
  "diagnose: no options": ({ spec }) => diagnose(spec),
  "diagnose: level deep": ({ spec, data }) => diagnose(spec, { data, level: /** @type {any} */ ("deep") }),
  "estimate: data null": ({ spec }) => estimate(spec, /** @type {any} */ (null)),
  "estimate: weight null": ({ spec, data }) => estimate(spec, { ...data, weight: null }),
  "estimate: half a row": ({ spec, data }) => estimate(spec, { ...data, x: { shape: [2.5, 4] } }),
  "estimate: limits": ({ spec, data }) => estimate(spec, data, /** @type {any} */ ({ maxDrawBuffers: 8 })),
  "estimate: limits null": ({ spec, data }) => estimate(spec, data, /** @type {any} */ (null)),
  "run: 3": ({ session }) => session.run(3),
  "run: null": ({ session }) => session.run(null),
  "run: unknown": ({ session }) => session.run({ step: 3 }),
  "run: steps x": ({ session }) => session.run({ steps: "x" }),
  "run: steps null": ({ session }) => session.run({ steps: null }),
  "run: signal 3": ({ session }) => session.run({ signal: 3 }),
  "run: onTelemetry 1": ({ session }) => session.run({ onTelemetry: 1 }),
  "evaluate: 5": ({ session }) => session.evaluate(5),
  "evaluate: null": ({ session }) => session.evaluate(null),
  "evaluate: x alone": ({ session }) => session.evaluate({ x }),
  "evaluate: y.url none": ({ session }) => session.evaluate({ x, y: { shape: [20], url: "http://" } }),
  "predict: nothing": ({ session }) => session.predict(),
  "predict: 5": ({ session }) => session.predict(5),
  "predict: null": ({ session }) => session.predict(null),
  "predict: rows without shape": ({ session }) => session.predict(x.data),
  "predict: a function": ({ session }) => session.predict({ shape: [20, 4], data: () => x.data }),
  "setWeights: nothing": ({ session }) => session.setWeights(),
  "setWeights: null": ({ session }) => session.setWeights(null),
  "setWeights: a file": ({ session }) => session.setWeights(new Uint8Array(9)),
  "setWeights: text": async ({ session }) => session.setWeights({ ...(await session.getWeights()), "dense_1.bias": { shape: [5], data: ["1", "2", "3", "4", "5"] } }),
  "setWeights: bigints": async ({ session }) => session.setWeights({ ...(await session.getWeights()), "dense_1.bias": { shape: [5], data: new BigInt64Array(5) } }),
  "setWeights: a function": async ({ session }) => session.setWeights({ ...(await session.getWeights()), "dense_1.bias": () => 1 }),
  "restore: nothing": ({ session }) => session.restore(),
  "restore: 5": ({ session }) => session.restore(5),
  "restore: a promise": ({ session }) => session.restore(session.checkpoint()),
  "diagnose of a session: 3": ({ session }) => session.diagnose(3),
};

/** Several inputs: what is given for them is no map. @type {Record<string, (good: Good) => any>} */
const BY_NAME = {
  "compile: x 5": ({ spec, data }) => compile(spec, { data: { ...data, x: 5 } }),
  "compile: x one array": ({ spec, data }) => compile(spec, { data: { ...data, x } }),
  "predict: functions": ({ session }) => session.predict([() => 1]),
  "predict: one null": ({ session, data }) => session.predict({ ...data.x, left: null }),
};

/** @param {any} error */
const told = (error) => (error ? { name: error.name, code: error.code ?? null, field: error.field ?? null, message: error.message } : null);

/**
 * What each call says, and whether the session is what it was before all of them.
 * @param {any} spec @param {any} data @param {boolean} several inputs
 */
export async function everyCall(spec, data, several) {
  const session = await compile(spec, { data });
  try {
    const before = await session.checkpoint();
    /** @type {Record<string, any>} */
    const said = {};
    for (const [name, call] of Object.entries(several ? BY_NAME : CALLS)) {
      said[name] = told(await (async () => call({ spec, data, session }))().then(() => null, (error) => error));
    }
    return { said, before, after: await session.checkpoint() };
  } finally {
    await session.dispose();
  }
}

/** What a spec is told by a call, if anything. @param {any} spec @param {any} data @param {"compile"|"train"|"estimate"} method */
export async function ofSpec(spec, data, method) {
  const call = { compile: () => compile(spec, { data }).then((session) => session.dispose()), train: () => train(spec, data), estimate: async () => estimate(spec, data) };
  return told(await call[method]().then(() => null, (error) => error));
}

/** What becomes of a diagnosis that is aborted once it runs: the second to ask the signal to be told, behind its compilation. @param {any} spec @param {any} data */
export async function abortedDiagnosis(spec, data) {
  const controller = new AbortController();
  const { signal } = controller;
  const { addEventListener } = signal;
  let listeners = 0;
  signal.addEventListener = (/** @type {any[]} */ ...args) => {
    addEventListener.apply(signal, /** @type {any} */ (args));
    if (++listeners === 2) queueMicrotask(() => controller.abort()); // once the call is posted
  };
  return told(await diagnose(spec, { data, signal }).then(() => null, (error) => error));
}

/** What a call says of a spec that tunes weights which it is not given, and how often it read data. @param {any} spec @param {any} data @param {"train"|"diagnose"} method */
export async function withoutWeights(spec, { x, y }, method) {
  let reads = 0;
  const read = () => (reads++, x.data);
  const data = { x: { shape: x.shape, read }, y };
  const call = { train: () => train(spec, data), diagnose: () => diagnose(spec, { data }) };
  return { ...told(await call[method]().then(() => null, (error) => error)), reads };
}
