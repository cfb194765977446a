// The engine's one error type. A leaf: every layer may import it, it imports nothing.

/**
 * @typedef {"spec_invalid"|"data_invalid"|"too_large"|"no_webgl2"|"no_float_targets"|"software_refused"|"context_lost"|
 *   "gl_error"|"shader_error"|"non_finite_loss"|"aborted"|"busy"|"disposed"|"internal"} ErrorCode
 */

/** An error with a stable code; `field` names the offending part of the spec or the data, `detail` is plain JSON. */
export class EngineError extends Error {
  /**
   * @param {ErrorCode} code
   * @param {string} message
   * @param {{field?: string|null, detail?: Record<string, unknown>, cause?: unknown}} [more]
   */
  constructor(code, message, { field = null, detail = {}, cause } = {}) {
    super(message, { cause });
    this.name = "EngineError";
    this.code = code;
    this.field = field;
    this.detail = detail;
  }
}
