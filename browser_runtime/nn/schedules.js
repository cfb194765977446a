// Learning-rate schedules: the rate of step t, counted from 0, of `total` steps. texelgrad/schedules.py computes the same.

/** From the first to the last by half a cosine. @param {number} first @param {number} last @param {number} share */
const cosine = (first, last, share) => last + ((first - last) * (1 + Math.cos(Math.PI * share))) / 2;

/** Without a warm-up. @type {Record<string, (lr: number, schedule: any, t: number, total: number) => number>} */
const schedules = {
  constant: (lr) => lr,
  step: (lr, { gamma, every_steps }, t) => lr * gamma ** Math.floor(t / every_steps),
  exponential: (lr, { gamma }, t) => lr * gamma ** t,
  cosine: (lr, { min_lr = 0 }, t, total) => cosine(lr, min_lr, t / total),
  linear: (lr, { min_lr = 0 }, t, total) => lr + (min_lr - lr) * (t / total),
  // PyTorch's: up to the step pct_start * total - 1, then down to the last. Where the way up is no step long, it begins at lr.
  one_cycle(lr, { pct_start, div_factor, final_div_factor }, t, total) {
    const [top, last, low] = [pct_start * total - 1, total - 1, lr / div_factor];
    if (t <= top) return cosine(low, lr, top > 0 ? t / top : 1);
    return cosine(lr, low / final_div_factor, (t - top) / (last - top));
  },
};

/**
 * @param {{lr: number, schedule: any}} optimizer the spec's
 * @param {number} t
 * @param {number} total
 * @returns {number}
 */
export function learningRate({ lr, schedule }, t, total) {
  const { type, warmup_steps: warmup = 0 } = schedule;
  if (t < warmup) return (lr * (t + 1)) / warmup;
  return schedules[type](lr, schedule, t - warmup, total - warmup);
}
