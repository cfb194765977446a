// The Worker that owns the GL context.
import { serve } from "./serve.js";

const handle = serve((message, transfer = []) => globalThis.postMessage(message, { transfer }));
globalThis.onmessage = ({ data }) => void handle(data);
