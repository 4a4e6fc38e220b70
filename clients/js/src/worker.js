/**
 * A Web Worker: other scripts of the page cannot time a release. Messages are {call, operation, …}; see remote.js.
 * Every reply leaves at the next point of a grid of `grid` milliseconds after its message came, 20 unless `load` says
 * otherwise. This hides how long a release took, as long as it took less than the grid. It does not hide that there
 * was a release, and it hides nothing from a script that can read the records themselves.
 */
import { openBudget } from "./budget_browser.js";
import { load, report } from "./core.js";

/** Without a budget every ask is a new release that nobody counts. */
const UNCOUNTED = {
  release: (mechanism, epoch, records) => report(mechanism, mechanism.release(records)),
  releaseCounts: (mechanism, epoch, map) => report(mechanism, mechanism.releaseCounts(map)),
};
const loaded = new Map();
let grid = 20;

const OPERATIONS = {
  async load({ bytes, policy, grid: chosen = 20, budget }) {
    if (!(chosen > 0 && chosen <= 10000)) throw new TypeError("grid is a number of milliseconds up to 10,000");
    grid = chosen;
    const mechanism = await load(bytes, policy);
    loaded.set(mechanism.digest, [mechanism, budget ? await openBudget(budget) : UNCOUNTED]);
    const { release, releaseCounts, releaseShares, ...shown } = mechanism;
    return shown;
  },
  release({ digest, records, epoch }) {
    const [mechanism, budget] = loaded.get(digest);
    return budget.release(mechanism, epoch, records);
  },
  releaseCounts({ digest, counts, epoch }) {
    const [mechanism, budget] = loaded.get(digest);
    return budget.releaseCounts(mechanism, epoch, counts);
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
