// A value that several components look at.
import { useEffect, useReducer } from 'preact/hooks';

export function makeStore(initial) {
  let value = initial;
  const watchers = new Set();
  return {
    get: () => value,
    set(change) {
      value = { ...value, ...(typeof change === 'function' ? change(value) : change) };
      watchers.forEach((watch) => watch());
    },
    subscribe(watch) {
      watchers.add(watch);
      return () => watchers.delete(watch);
    },
  };
}

export function useStore(store) {
  const [, look] = useReducer((times) => times + 1, 0);
  useEffect(() => {
    look();
    return store.subscribe(look);
  }, [store]);
  return store.get();
}
