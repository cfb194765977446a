// schedules.js: the learning rate of step t, counted from 0, of `total` steps. Behind a warm-up t and total count from its end.

/** @type {Record<string, (options: any, t: number, total: number) => number>} */
export const schedules = {
  constant: ({ lr }) => lr,
  // gamma more at every multiple of every_steps
  step: ({ lr, gamma, every_steps }, t) => lr * Math.pow(gamma, (t - (t % every_steps)) / every_steps),
  exponential: ({ lr, gamma }, t) => lr * Math.pow(gamma, t),
  // half a cosine from lr at t = 0 towards min_lr at t = total, which the last step, total - 1, does not quite reach
  cosine: ({ lr, min_lr = 0 }, t, total) => min_lr + ((lr - min_lr) * (1 + Math.cos((Math.PI * t) / total))) / 2,
  linear: ({ lr, min_lr = 0 }, t, total) => (lr * (total - t) + min_lr * t) / total,
};
