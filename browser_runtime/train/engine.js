// Engine: a device and its sessions, in the thread that owns the GL context.
import { EngineError, isObject, shown } from "../errors.js";
import { Device } from "../backends/webgl2/device.js";
import { Executable } from "../backends/webgl2/executable.js";
import { unlessAborted } from "./waiting.js";

/** @import { Planned } from "./planning.js" */

/** What an engine is made from: modules, and shaders as path -> text. @typedef {{sessions: ReturnType<typeof loadSessions>, shaders: ReturnType<typeof fetchShaders>}} Code */

export class Engine {
  /** Begins to load; whoever awaits a part hears of its failure. @param {string} shaderUrl @returns {Code} */
  static load(shaderUrl) {
    const code = { sessions: loadSessions(), shaders: fetchShaders(shaderUrl) };
    for (const loading of Object.values(code)) loading.catch(() => {}); // awaited later, unless there is no context
    return code;
  }

  /**
   * Its context is made while the code loads.
   * @param {{shaderUrl: string, device?: import("../backends/webgl2/device.js").DeviceOptions}} options @param {Code} [code] from there
   * @param {AbortSignal} [signal]
   * @throws {EngineError} shader_error where the bundle can't be had; what Device throws
   */
  static async create({ shaderUrl, device = {} }, { sessions, shaders } = Engine.load(shaderUrl), signal) {
    const made = new Device({}, device);
    try {
      made.shaders = await unlessAborted(shaders, signal);
    } catch (error) {
      made.dispose();
      throw error;
    }
    return new Engine(made, sessions);
  }

  /** @param {Device} device @param {ReturnType<typeof loadSessions>} [sessions] */
  constructor(device, sessions = loadSessions()) {
    this.device = device;
    this.sessions = sessions;
  }

  probe() {
    this.device.check();
    return this.device.record;
  }

  /**
   * @param {Planned} planned for this device
   * @param {{data: any, initialWeights?: any, signal?: AbortSignal}} options
   */
  async compile(planned, options) {
    options.signal?.throwIfAborted();
    const executable = new Executable(this.device, planned.lowered);
    try {
      const { Session } = await this.sessions.catch(() => (this.sessions = loadSessions())); // once more: a connection may have failed
      return await Session.compile(executable, planned, options);
    } catch (error) {
      executable.dispose();
      throw error;
    }
  }
}

/** Most modules are those of sessions: they load while the context is made and the first programs are compiled. */
async function loadSessions() {
  return import("./session.js").catch((cause) => {
    throw new EngineError("internal", `a module of the engine can't be loaded: ${cause.message}`, { cause });
  });
}

/** @param {string} url @returns {Promise<Record<string, string>>} path below shaders/ -> text */
async function fetchShaders(url) {
  const response = await fetch(url).catch((cause) => {
    throw new EngineError("shader_error", `the shader bundle ${url} can't be fetched: ${cause.message}`, { cause });
  });
  if (!response.ok) throw new EngineError("shader_error", `the shader bundle ${url} answers ${response.status}`);
  const bundle = await response.json().catch((cause) => {
    throw new EngineError("shader_error", `the shader bundle ${url} is no JSON: ${cause.message}`, { cause });
  });
  if (!isObject(bundle)) throw new EngineError("shader_error", `the shader bundle ${url} is ${shown(bundle)}; needed: the text of each shader by its path`);
  return bundle;
}
