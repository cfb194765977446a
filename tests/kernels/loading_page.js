// loading_page.js: an engine whose files are of another origin, are refused by the page's policies, or fail to load, for test_loading.py.

/** @param {any} error */
const told = (error) => (error ? { name: error.name, code: error.code ?? null, field: error.field ?? null, message: error.message } : null);

/**
 * Compiles with the engine of some origin: what its error says, and whether the same call works when it is made again.
 * @param {string} origin @param {any} spec @param {any} data @param {any} options of compile
 */
export async function compileFrom(origin, spec, data, options) {
  const { compile, release } = await import(`${origin}/browser_runtime/texelgrad.js`);
  const once = async () => {
    const session = await compile(spec, { data, ...options });
    await session.run();
    return session.dispose();
  };
  try {
    return [await once().then(() => null, told), await once().then(() => null, told)];
  } finally {
    await release();
  }
}

/**
 * Loads ahead: what its error says, and how many Workers that and whatever followed have started.
 * @param {string} origin @param {any} options of preload
 * @param {{compile?: any, release?: boolean}} [then] while it loads: compile this, or release
 */
export async function preloadFrom(origin, options, { compile: given, release: released } = {}) {
  const engine = await import(`${origin}/browser_runtime/texelgrad.js`);
  const { Worker: Plain } = globalThis;
  let workers = 0;
  globalThis.Worker = class extends Plain {
    /** @param {URL} url @param {any} how */
    constructor(url, how) {
      super(url, how);
      workers++;
    }
  };
  try {
    const loading = engine.preload(options).then(() => null, told);
    if (released) await engine.release();
    if (given) {
      const session = await engine.compile(...given);
      await session.run();
    }
    return { failure: await loading, workers };
  } finally {
    globalThis.Worker = Plain;
    if (given) await engine.release();
  }
}

/**
 * Begins a call, and ends it before what it waits for has come: what it says, and how many Workers were started and ended.
 * @param {string} origin @param {"compile"|"train"|"diagnose"|"probe"|"preload"} call @param {any[]} args @param {"release"|"abort"} how
 */
export async function endWhileStarting(origin, call, args, how) {
  const engine = await import(`${origin}/browser_runtime/texelgrad.js`);
  const { Worker: Plain } = globalThis;
  const [made, ended] = [new Set(), new Set()];
  globalThis.Worker = class extends Plain {
    /** @param {URL} url @param {any} how */
    constructor(url, how) {
      super(url, how);
      made.add(this);
    }
    terminate() {
      ended.add(this);
      super.terminate();
    }
  };
  /** @param {Promise<any>} promise */
  const outcome = (promise) => Promise.race([promise.then(() => null, told), new Promise((resolve) => setTimeout(() => resolve({ code: "pending" }), 5000))]);
  const stop = new AbortController();
  const options = how === "abort" ? { ...args.pop(), signal: stop.signal } : args.pop();
  try {
    const said = outcome(engine[call](...args, options));
    await new Promise((resolve) => setTimeout(resolve, 300));
    if (how === "abort") stop.abort();
    else await outcome(engine.release());
    const { code } = await said;
    const released = await outcome(engine.release());
    return { code, released, made: made.size, ended: ended.size };
  } finally {
    globalThis.Worker = Plain;
  }
}

/** Loads ahead while an engine is made that fails before anything is loaded, since its Worker has no WebGL2. @param {string} origin */
export async function preloadWithoutContext(origin) {
  const engine = await import(`${origin}/browser_runtime/texelgrad.js`);
  const { Worker: Plain } = globalThis;
  const module = (/** @type {string} */ text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  globalThis.Worker = class extends Plain {
    /** @param {URL} url @param {any} how */
    constructor(url, how) {
      const without = module("OffscreenCanvas.prototype.getContext = () => null;");
      super(module(`import "${without}"; import "${url}";`), how);
    }
  };
  try {
    const loading = engine.preload().then(() => null, told);
    const probing = engine.probe().then(() => null, told);
    return [await loading, await probing];
  } finally {
    globalThis.Worker = Plain;
  }
}

/** Makes an engine, and loads ahead while it starts. @param {string} origin */
export async function probeAndPreload(origin) {
  const engine = await import(`${origin}/browser_runtime/texelgrad.js`);
  const probing = engine.probe().then(() => null, told);
  return [await engine.preload().then(() => null, told), await probing];
}

/** Leaves an engine behind. @param {string} origin @param {any} spec @param {any} options of compile */
export async function compileAndKeep(origin, spec, options) {
  const { compile } = await import(`${origin}/browser_runtime/texelgrad.js`);
  await compile(spec, options);
}

/** Gives the page a policy, which lasts. @param {string} policy */
export function addPolicy(policy) {
  const meta = document.createElement("meta");
  meta.httpEquiv = "Content-Security-Policy";
  meta.content = policy;
  document.head.append(meta);
}

/** Lets every address pass that a script may come from. */
export function addDefaultPolicy() {
  /** @type {any} */ (globalThis).trustedTypes.createPolicy("default", { createScriptURL: (/** @type {string} */ url) => url });
}
