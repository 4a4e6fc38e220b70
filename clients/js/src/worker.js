/**
 * A Web Worker that answers on a grid of time. Messages are {call, operation, …}; see remote.js.
 * The reply to a release leaves at the next point of a grid of `grid` milliseconds after its message was taken up. So the
 * moment of a reply does not depend on how long the release took, as far as it took less than the grid and timers are
 * exact. It does not hide that there was a release, and it hides nothing from a script that can read the records.
 */
import { openBudget } from "./budget_browser.js";
import { load, report } from "./core.js";
import { need } from "./refuse.js";

/** Without a budget every ask is a new release that nobody counts. */
const UNCOUNTED = {
  release: (mechanism, epoch, records, options) => report(mechanism, mechanism.release(records, options)),
  releaseCounts: (mechanism, epoch, map, options) => report(mechanism, mechanism.releaseCounts(map, options)),
};
const GRID = 20;
const loaded = new Map(); // by handle: each load is an entry of its own, and no later one changes it
let last = 0;

/** What a handle stands for. */
const entryOf = ({ handle, epoch }) => {
  need(loaded.has(handle), "call", "no such handle");
  need(epoch === undefined || typeof epoch === "string", "call", "an epoch is a text");
  return loaded.get(handle);
};

const OPERATIONS = {
  async load({ bytes, policy, grid = GRID, budget }) {
    need(typeof grid === "number" && grid > 0 && grid <= 10000, "call", "grid is a number of milliseconds up to 10,000");
    const mechanism = await load(bytes, policy);
    const counted = budget === undefined ? UNCOUNTED : await openBudget(budget);
    const handle = ++last;
    loaded.set(handle, { mechanism, grid, budget: counted });
    const { release, releaseCounts, releaseShares, ...shown } = mechanism;
    return { handle, shown };
  },
  release(asked) {
    const { mechanism, budget } = entryOf(asked);
    return budget.release(mechanism, asked.epoch, asked.records, asked.options);
  },
  releaseCounts(asked) {
    const { mechanism, budget } = entryOf(asked);
    return budget.releaseCounts(mechanism, asked.epoch, asked.counts, asked.options);
  },
};

globalThis.onmessage = async ({ data }) => {
  const came = performance.now();
  const { grid } = loaded.get(data.handle) || { grid: GRID };
  let reply;
  try {
    reply = { call: data.call, value: await OPERATIONS[data.operation](data) };
  } catch (error) {
    reply = { call: data.call, reason: error.reason || "call", message: error.reason ? error.message : "not understood" };
  }
  const steps = Math.floor((performance.now() - came) / grid) + 1;
  setTimeout(() => postMessage(reply), Math.max(0, came + steps * grid - performance.now()));
};
