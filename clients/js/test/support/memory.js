/** As much of IndexedDB as budget_browser.js uses, in memory. A transaction runs in one go, so that none overlap. */
export function memory() {
  const databases = new Map();
  const open = (name) => {
    const request = {};
    queueMicrotask(() => {
      const isNew = !databases.has(name);
      if (isNew) databases.set(name, new Map());
      request.result = { createObjectStore() {}, transaction: () => transaction(databases.get(name)) };
      if (isNew) request.onupgradeneeded();
      request.onsuccess();
    });
    return request;
  };
  const transaction = (stored) => {
    const get = {};
    const found = { aborted: false, abort: () => (found.aborted = true) };
    const put = (value, key) => stored.set(key, structuredClone(value));
    found.objectStore = () => ({ get: (key) => Object.assign(get, { result: structuredClone(stored.get(key)) }), put });
    queueMicrotask(() => {
      get.result = structuredClone(stored.get("state"));
      get.onsuccess();
      if (found.aborted) found.onabort();
      else found.oncomplete();
    });
    return found;
  };
  return { open };
}
