import { Refused } from "./refuse.js";

export { Refused };

/** The page's side of worker.js: `remote(new Worker(url, {type: "module"}))` gives load, which gives a mechanism. */
export function remote(worker) {
  const waiting = new Map();
  let last = 0;
  worker.addEventListener("message", ({ data: { call, value, reason, message } }) => {
    const [resolve, reject] = waiting.get(call);
    waiting.delete(call);
    if (reason) reject(Object.assign(new Refused(reason, ""), { message }));
    else resolve(value);
  });
  const ask = (operation, rest) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, [resolve, reject]);
      worker.postMessage({ call: last, operation, ...rest });
    });
  return Object.freeze({
    async load(bytes, policy, { grid, budget } = {}) {
      const { handle, shown } = await ask("load", { bytes, policy, grid, budget });
      return Object.freeze({
        ...shown,
        release: (records, epoch, options) => ask("release", { handle, records, epoch, options }),
        releaseCounts: (counts, epoch, options) => ask("releaseCounts", { handle, counts, epoch, options }),
      });
    },
  });
}
