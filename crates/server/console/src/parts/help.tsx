// What the keys do, and the words of the product.
import { useLayoutEffect, useRef } from "preact/hooks";
import { opened } from "../keys";
import { PAGES } from "../pages";

const WORDS: [string, string][] = [
  ["limit", "a named rule, or several that must all admit: 100 per minute, 20 at a time"],
  ["meter", "how a limit stands for one partition, such as one tenant"],
  ["toll", "what a call owes at a meter; a call may owe several, all or none are paid"],
  ["queue, lane", "calls wait in queues; a lane is the calls of one key, in order"],
  ["asking", "claims of workers that wait for calls: while there are none, nothing starts"],
  ["dead", "a call that failed too often, or was given up; it waits for you"],
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog class="dialog help" ref={dialog} onClose={() => opened.change("help", null)} aria-labelledby="help">
      <h2 id="help">Keys and words</h2>
      <div class="columns">
        <dl>
          <Key keys={["/"]} does="search" />
          <Key keys={["."]} does="hold the page still, or let it go on" />
          <Key keys={["?"]} does="this" />
          <Key keys={["Esc"]} does="close what is open" />
          {PAGES.map((page) => (
            <Key keys={["g", page.key]} does={page.title} />
          ))}
        </dl>
        <dl class="words">
          {WORDS.map(([word, means]) => (
            <>
              <dt>{word}</dt>
              <dd>{means}</dd>
            </>
          ))}
        </dl>
      </div>
      <form method="dialog" class="buttons">
        <button>Close</button>
      </form>
    </dialog>
  );
}

function Key({ keys, does }: { keys: string[]; does: string }) {
  return (
    <>
      <dt>
        {keys.map((key) => (
          <kbd>{key}</kbd>
        ))}
      </dt>
      <dd>{does}</dd>
    </>
  );
}
