// The keyboard: `/` searches, `g` and a letter goes to a page, `?` helps, `.` holds the page still.
import { isHeld } from "./live";
import { go } from "./route";
import { Store } from "./store";

export type Opened = "search" | "help" | null;

/** What is open over the page. A dialog tells a moment after Escape that it closed, and another may be open by then. */
export const opened = new Store<Opened>(null);

/** How long after `g` a letter still means a page. */
const LETTER_MS = 1_500;

export function onKeys(pages: readonly { id: string; key: string }[]): () => void {
  let pressedAt = -Infinity;
  const heard = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const page = performance.now() - pressedAt < LETTER_MS && pages.find((page) => page.key === event.key);
    pressedAt = -Infinity;
    if (page) go(page.id);
    else if (event.key === "g") pressedAt = performance.now();
    else if (event.key === "/") opened.set("search");
    else if (event.key === "?") opened.set("help");
    else if (event.key === ".") isHeld.set(!isHeld.value);
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", heard);
  return () => removeEventListener("keydown", heard);
}

function isTyping(target: EventTarget | null): boolean {
  // A dialog is over the page even if the focus is not in it.
  if (target === document.body && document.querySelector("dialog[open]")) return true;
  if (!(target instanceof Element)) return false;
  // One that just closed keeps the focus until the page is drawn again.
  const dialog = target.closest("dialog");
  return dialog?.open ?? target.closest("input, textarea, select") !== null;
}
