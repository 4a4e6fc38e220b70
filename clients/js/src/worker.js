/**
 * A Web Worker: other scripts of the page cannot time a release. Messages are {call, operation, …}; see remote.js.
 * Every reply leaves at the next point of a grid of `grid` milliseconds after its message came, 20 unless `load` says
 * otherwise. This hides how long a release took, as long as it took less than the grid. It does not hide that there
 * was a release, and it hides nothing from a script that can read the records themselves.
 */
import { load, report } from "./core.js";

const mechanisms = new Map();
let grid = 20;

const OPERATIONS = {
  async load({ bytes, policy, grid: chosen = 20 }) {
    if (!(chosen > 0 && chosen <= 10000)) throw new TypeError("grid is a number of milliseconds up to 10,000");
    grid = chosen;
    const { release, releaseCounts, releaseShares, ...shown } = await load(bytes, policy);
    mechanisms.set(shown.digest, { ...shown, release, releaseCounts });
    return shown;
  },
  release: ({ digest, records }) => {
    const mechanism = mechanisms.get(digest);
    return report(mechanism, mechanism.release(records));
  },
  releaseCounts: ({ digest, counts }) => {
    const mechanism = mechanisms.get(digest);
    return report(mechanism, mechanism.releaseCounts(counts));
  },
};

globalThis.onmessage = async ({ data }) => {
  const came = performance.now();
  let reply;
  try {
    reply = { call: data.call, value: await OPERATIONS[data.operation](data) };
  } catch (error) {
    reply = { call: data.call, reason: error.reason || "call", message: error.reason ? error.message : "not understood" };
  }
  const steps = Math.floor((performance.now() - came) / grid) + 1;
  setTimeout(() => postMessage(reply), Math.max(0, came + steps * grid - performance.now()));
};
