import { Refused, openWith } from "./budget.js";

export { Refused };

const NOTICE = {
  true: "The browser promised to keep the budget until the user clears this site's data.",
  false: "The browser may delete the budget when space is short or this site is not visited for long; then ε is spent anew.",
};

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Open the budget of this origin in IndexedDB, once for all its tabs and workers. */
export async function openBudget({ name = "sottovoce", ...rest }) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore("budget");
  const database = await done(request);
  database.onversionchange = () => database.close();

  /** One transaction: others wait for it. It is stored for good (durability strict) when this resolves. */
  const transact = (change) =>
    new Promise((resolve, reject) => {
      const transaction = database.transaction("budget", "readwrite", { durability: "strict" });
      let problem;
      transaction.oncomplete = () => resolve();
      transaction.onabort = transaction.onerror = () =>
        reject(problem || new Refused("budget", "the browser could not store it: " + (transaction.error?.name || "aborted")));
      const table = transaction.objectStore("budget");
      const get = table.get("state");
      get.onsuccess = () => {
        try {
          table.put(change(get.result ?? null), "state");
        } catch (error) {
          problem = error;
          transaction.abort();
        }
      };
    });
  // The transaction alone is enough. The lock only makes tabs wait in line; it is missing on insecure origins.
  const locks = globalThis.navigator?.locks;
  const update = (change) => (locks ? locks.request("sottovoce-" + name, () => transact(change)) : transact(change));

  let persisted = false;
  try {
    persisted = (await navigator.storage.persisted()) || (await navigator.storage.persist());
  } catch {
    // An insecure origin or a worker cannot ask: not persisted.
  }
  return openWith({ update }, rest, { persisted, notice: NOTICE[persisted] });
}
