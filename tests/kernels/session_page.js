// session_page.js: plays the calls of a test on one session, through the public module.
import { eachInput } from "../../browser_runtime/nn/inputs.js";
import { compile, release } from "../../browser_runtime/texelgrad.js";

/** An array that is read piece by piece. @param {any} source @param {number} [failAt] first row that can't be read */
function streamed({ shape, data, dtype }, failAt = Infinity) {
  const columns = data.length / shape[0];
  return {
    shape,
    dtype,
    async read(/** @type {number} */ start, /** @type {number} */ count) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      if (start + count > failAt) throw new Error(`row ${failAt} is not readable`);
      return data.subarray(start * columns, (start + count) * columns);
    },
  };
}

/** Files go to the engine as bytes. @param {any} value */
const plain = (value) => (value?.data instanceof Uint8Array ? value.data : value);

/**
 * @param {any} spec @param {any} x @param {any} y
 * @param {[string, any?][]} calls methods of the session, one after another, each with its argument
 * @param {any} [options] of compile, and `stream`: true, or the first row that can't be read; `initialWeightsFile`: bytes; `weight`: of the rows
 * @returns {Promise<{results: any[], history: any[], record: any, step: number, totalSteps: number}>}
 */
export async function play(spec, x, y, calls, { stream, initialWeightsFile, weight, ...options } = {}) {
  if (initialWeightsFile) options.initialWeights = initialWeightsFile.data;
  const source = (/** @type {any} */ array) => (stream ? streamed(array, stream === true ? Infinity : stream) : array);
  const session = await compile(spec, { ...options, data: x ? { x: eachInput(spec.model.input, x, source), y: source(y), ...(weight && { weight: source(weight) }) } : undefined });
  /** @type {any[]} */
  const history = [];
  try {
    const results = [];
    for (const [method, argument] of calls) {
      const given = method === "run" ? { ...argument, onTelemetry: (/** @type {any[]} */ points) => void history.push(...points) } : plain(argument);
      results.push(await /** @type {any} */ (session)[method](given));
    }
    const { record, step, totalSteps } = session;
    return { results, history, record, step, totalSteps };
  } finally {
    await session.dispose();
  }
}

/** The weights that a run would begin with. @param {any} spec @param {any} x @param {any} y @param {any} file bytes of a safetensors file, or null */
export async function firstWeights(spec, x, y, file) {
  const session = await compile(spec, { data: { x, y }, ...(file && { initialWeights: file.data }) });
  return session.getWeights().finally(() => session.dispose());
}

/** What a refused call leaves behind. @param {any} spec @param {any} x @param {any} y @param {[string, any]} call @param {any} [options] */
export async function refused(spec, x, y, [method, argument], options = {}) {
  const session = await compile(spec, { ...options, data: { x, y } });
  try {
    await session.run({ steps: 3 });
    const before = await session.checkpoint();
    const error = await /** @type {any} */ (session)[method](plain(argument)).then(() => null, (/** @type {any} */ e) => e);
    return { error: error && { code: error.code, field: error.field, message: error.message }, before, after: await session.checkpoint() };
  } finally {
    await session.dispose();
  }
}

/** Aborts a long run after some points of its curve. @param {any} spec @param {any} x @param {any} y @param {any} [options] */
export async function abortEarly(spec, x, y, options = {}) {
  const session = await compile(spec, { ...options, data: { x, y } });
  const controller = new AbortController();
  let seen = 0;
  try {
    const error = await session
      .run({ signal: controller.signal, onTelemetry: (points) => { seen = points[points.length - 1].step; controller.abort(); } })
      .then(() => null, (e) => e);
    const { step } = session;
    await session.run({ steps: 1 }); // the session is still good
    return { code: error?.code ?? null, seen, step, after: session.step };
  } finally {
    await session.dispose();
  }
}

/** Aborted before it began. @param {any} spec @param {any} x @param {any} y */
export function abortedBefore(spec, x, y) {
  return compile(spec, { data: { x, y }, signal: AbortSignal.abort() });
}

/** A callback that throws ends the run with its error. @param {any} spec @param {any} x @param {any} y */
export async function throwingCallback(spec, x, y) {
  const session = await compile(spec, { data: { x, y } });
  try {
    await session.run({ onTelemetry: () => { throw new RangeError("the caller's own"); } });
  } finally {
    await session.dispose();
  }
}

/** A session used after its end. @param {any} spec @param {any} x @param {any} y */
export async function afterDispose(spec, x, y) {
  const session = await compile(spec, { data: { x, y } });
  await session.dispose();
  await session.dispose();
  await session.run();
}

/** Calls that are not waited for: none may see what another has half done. @param {any} spec @param {any} x @param {any} y @param {any[]} sets other data */
export async function concurrently(spec, x, y, sets) {
  const session = await compile(spec, { data: { x, y } });
  try {
    const ask = (/** @type {any} */ set) => [session.evaluate({ x: streamed(set.x), y: streamed(set.y) }), session.predict(streamed(set.x))];
    const together = await Promise.all(sets.flatMap(ask));
    const apart = [];
    for (const set of sets) for (const call of ask(set)) apart.push(await call);
    const [, , file] = await Promise.all([session.run(), session.evaluate(), session.run({ steps: 1 }).catch((e) => e.message)]);
    return { together, apart, file, weights: await session.weightsFile() };
  } finally {
    await session.dispose();
  }
}

/**
 * Breaks a run off again and again, at each points of its curve that it shows, until it is done.
 * @param {any} spec @param {any} x @param {any} y @param {"abort"|"throw"} how @param {any} [options]
 */
export async function brokenOff(spec, x, y, how, options = {}) {
  const session = await compile(spec, { ...options, data: { x, y } });
  /** @type {any[]} */
  const history = [];
  let times = 0;
  try {
    while (!session.done) {
      const controller = new AbortController();
      /** @param {any[]} points */
      const onTelemetry = (points) => {
        history.push(...points);
        if (how === "throw") throw new RangeError("the caller's own");
        controller.abort();
      };
      const error = await session.run({ signal: controller.signal, onTelemetry }).then(() => null, (e) => e);
      if (error && error.code !== "aborted" && !/the caller's own/.test(error.message)) throw error;
      if (error) times += 1;
    }
    await session.run({ onTelemetry: (points) => void history.push(...points) });
    return { history, times, weights: await session.weightsFile(), checkpoint: await session.checkpoint() };
  } finally {
    await session.dispose();
  }
}

/**
 * Aborts a run whenever there are points, and goes on from its checkpoint in another session.
 * @param {any} spec @param {any} x @param {any} y
 */
export async function brokenOffElsewhere(spec, x, y) {
  /** @type {any[]} */
  const history = [];
  let times = 0;
  let checkpoint = null;
  for (;;) {
    const session = await compile(spec, { data: { x, y } });
    try {
      if (checkpoint) await session.restore(checkpoint);
      const controller = new AbortController();
      const onTelemetry = (/** @type {any[]} */ points) => (history.push(...points), controller.abort());
      const error = await session.run({ signal: controller.signal, onTelemetry }).then(() => null, (e) => e);
      if (!error) return { history, times, weights: await session.weightsFile(), checkpoint: await session.checkpoint() };
      if (error.code !== "aborted") throw error;
      times += 1;
      checkpoint = await session.checkpoint();
    } finally {
      await session.dispose();
    }
  }
}

/**
 * A run that is broken off, other weights, and one more step; the same of one that ends by itself.
 * @param {any} spec @param {any} x @param {any} y @param {any} weights
 */
export async function otherWeightsAfterAbort(spec, x, y, weights) {
  const session = await compile(spec, { data: { x, y } });
  const plain = await compile(spec, { data: { x, y } });
  try {
    const controller = new AbortController();
    const error = await session.run({ signal: controller.signal, onTelemetry: () => controller.abort() }).then(() => null, (e) => e);
    const { step } = session;
    await plain.run({ steps: step });
    const files = [];
    for (const each of [session, plain]) {
      await each.setWeights(weights);
      await each.run({ steps: 1 });
      files.push(await each.weightsFile());
    }
    return { code: error?.code, step, files };
  } finally {
    await session.dispose();
    await plain.dispose();
  }
}

/**
 * Releases the engine while it compiles, while it runs, and uses what is left of it: what each call says.
 * @param {any} spec @param {any} x @param {any} y @param {any} options
 */
export async function released(spec, x, y, options) {
  const said = (/** @type {Promise<any>} */ call) => call.then(() => "done", (error) => `${error.code}: ${error.message}`);
  const asked = Promise.withResolvers();
  const unanswered = { shape: y.shape, read: () => (asked.resolve(undefined), new Promise(() => {})) };
  const compiling = said(compile(spec, { ...options, data: { x, y: unanswered } }));
  await asked.promise;
  await release();
  const session = await compile(spec, { ...options, data: { x, y } });
  const running = said(session.run({ onTelemetry: () => new Promise((resolve) => setTimeout(resolve, 50)) }));
  await new Promise((resolve) => setTimeout(resolve, 30));
  await release();
  const after = [];
  for (const call of [() => session.run(), () => session.predict(x), () => session.getWeights(), () => session.dispose()]) after.push(await said(call()));
  const again = await compile(spec, { ...options, data: { x, y } });
  await again.run({ steps: 1 });
  await again.dispose();
  return { compiling: await compiling, running: await running, after };
}

/** What fetch() gives of a file, instead of its bytes. @param {any} spec @param {any} x @param {any} y @param {"restore"|"initialWeights"} where */
export async function withBuffer(spec, x, y, where) {
  const session = await compile(spec, { data: { x, y } });
  try {
    const { buffer } = await session.checkpoint();
    await (where === "restore" ? session.restore(/** @type {any} */ (buffer)) : compile(spec, { data: { x, y }, initialWeights: /** @type {any} */ (buffer) }));
  } finally {
    await session.dispose();
  }
}

/**
 * Sessions that are disposed of while they train and while they predict, beside one that goes on, and what becomes of all.
 * @param {any} spec of a long run @param {any} x @param {any} y @param {any} options
 */
export async function disposedAtWork(spec, x, y, options) {
  const made = () => compile(spec, { ...options, data: { x, y } });
  const codeOf = (/** @type {Promise<any>} */ call) => call.then(() => null, (error) => error.code);
  const [trains, predicts, stays] = [await made(), await made(), await made()];
  const started = Promise.withResolvers();
  const run = codeOf(trains.run({ onTelemetry: () => started.resolve(undefined) }));
  await started.promise;
  const rows = 40_000;
  const wide = { shape: [rows, x.shape[1]], data: new Float32Array(rows * x.shape[1]) };
  const prediction = codeOf(predicts.predict(wide));
  const beside = stays.run({ steps: 50 });
  await Promise.all([trains.dispose(), predicts.dispose()]);
  const codes = [await run, await prediction];
  await beside;
  const next = await made();
  await next.run({ steps: 50 });
  const weights = [await stays.getWeights(), await next.getWeights()].map((each) => each["dense_1.kernel"].data);
  await Promise.all([stays.dispose(), next.dispose()]);
  return { codes, weights };
}
