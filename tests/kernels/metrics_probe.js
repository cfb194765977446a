// Metric frames as the page sends them, for test_metrics_sender.py.
import { encodeFrames, MetricsSender } from "/browser_runtime/train/metrics_sender.js";

const bytesOf = async (/** @type {Blob} */ blob) => new Uint8Array(await blob.arrayBuffer());

/** The frames of some points. */
export const frames = (points, totalSteps) => Promise.all(encodeFrames(points, totalSteps).map(bytesOf));

/** Adds `count` points, one every 5 ms, to a sender whose transport takes `delayMs`; gives each frame and when it left. */
export async function sending(count, delayMs, failAt = Infinity) {
  const sent = [];
  let underway = 0;
  let mostUnderway = 0;
  const began = performance.now();
  const sender = new MetricsSender(async (blob) => {
    const atMs = performance.now() - began;
    mostUnderway = Math.max(mostUnderway, ++underway);
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    underway--;
    if (sent.length + 1 >= failAt) throw new Error("transport failed");
    sent.push({ frame: await bytesOf(blob), atMs });
  }, count);
  for (let step = 1; step <= count; step++) {
    sender.add([{ step, loss: step }]);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const error = await sender.flush().then(() => null, (failure) => failure.message);
  return { sent, mostUnderway, error, last: sender.last };
}
