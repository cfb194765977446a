// Engine: a device and its sessions, in the thread that owns the GL context.
import { EngineError } from "../errors.js";
import { Device } from "../backends/webgl2/device.js";
import { Session } from "./session.js";

export class Engine {
  /**
   * @param {{shaderUrl: string, device?: import("../backends/webgl2/device.js").DeviceOptions}} options
   * @throws {EngineError} shader_error where the bundle can't be had; what Device throws
   */
  static async create({ shaderUrl, device = {} }) {
    // While the context is made.
    const shaders = fetchShaders(shaderUrl);
    shaders.catch(() => {}); // awaited below, unless there is no context
    const made = new Device({}, device);
    try {
      made.shaders = await shaders;
    } catch (error) {
      made.dispose();
      throw error;
    }
    return new Engine(made);
  }

  /** @param {Device} device */
  constructor(device) {
    this.device = device;
  }

  probe() {
    this.device.check();
    return this.device.record;
  }

  /**
   * @param {any} spec
   * @param {{data: any, initialWeights?: any, allowSoftware?: boolean, signal?: AbortSignal}} options
   */
  async compile(spec, { allowSoftware = true, ...options }) {
    const { renderer, software } = this.device.record;
    if (software && !allowSoftware) {
      throw new EngineError("software_refused", `the renderer is ${renderer}, which draws on the CPU, and this job does not allow that (allow_software)`, {
        field: "allow_software",
      });
    }
    return Session.compile(this.device, spec, options);
  }
}

/** @param {string} url @returns {Promise<Record<string, string>>} path below shaders/ -> text */
async function fetchShaders(url) {
  const response = await fetch(url).catch((cause) => {
    throw new EngineError("shader_error", `the shader bundle ${url} can't be fetched: ${cause.message}`, { cause });
  });
  if (!response.ok) throw new EngineError("shader_error", `the shader bundle ${url} answers ${response.status}`);
  return response.json();
}
