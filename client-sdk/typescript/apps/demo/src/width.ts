// The width that an element has on the page.

import { useLayoutEffect, useRef, useState, type RefObject } from "react";

/** Give the ref to the element; its width is 0 until it is laid out. */
export function useWidth<E extends Element>(): [RefObject<E | null>, number] {
  const ref = useRef<E>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = (): void => setWidth(Math.floor(ref.current!.getBoundingClientRect().width));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
