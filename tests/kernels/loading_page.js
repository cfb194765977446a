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
