// The one dialog: says what an action will do and shows the request, and only then sends it.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { asCurl, send, type Request } from "../api/client";
import { Store, useStore } from "../store";
import { Command } from "./empty";
import { Fields, valuesOf, type Field, type Values } from "./fields";
import { say } from "./notice";

export interface Action {
  title: string;
  /** What it will do, for these values. */
  effect(values: Values): string;
  /** What is sent, for these values; it may throw what is wrong with them. */
  request(values: Values): Request;
  /** The word on the button. */
  verb: string;
  isDanger?: boolean;
  fields?: Field[];
  /** Said once it is done. */
  done(answer: unknown, values: Values): string;
  after?(): void;
}

/** What is asked, and the how manieth it is: two may have one title. */
const asked = new Store<{ action: Action; number: number } | null>(null);
let askedBefore = 0;

/** Asks the reader; nothing happens before they agree. */
export function ask(action: Action): void {
  asked.set({ action, number: askedBefore++ });
}

export function ConfirmDialog() {
  const now = useStore(asked);
  return now && <Asking key={now.number} action={now.action} leave={() => asked.change(now, null)} />;
}

function Asking({ action, leave }: { action: Action; leave(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [values, setValues] = useState(() => valuesOf(action.fields ?? []));
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const { request, wrong } = requestOf(action, values);

  const submit = async (event: Event) => {
    event.preventDefault();
    if (!request) return setTrouble(wrong);
    setBusy(true);
    try {
      const answer = await send<unknown>(request);
      say(action.done(answer, values));
      leave();
      action.after?.();
    } catch (error) {
      setTrouble((error as Error).message);
      setBusy(false);
    }
  };
  // What was sent may yet fail, and who asked for it is to see that. A second Escape closes without asking.
  const hold = (event: Event) => isBusy && event.preventDefault();
  const closed = () => (isBusy ? dialog.current?.showModal() : leave());
  // A key that is held down would agree by itself.
  const first = action.fields?.length ? "field" : action.isDanger ? "cancel" : "agree";
  return (
    <dialog class="dialog" ref={dialog} onCancel={hold} onClose={closed} aria-labelledby="asking">
      <form method="dialog" onSubmit={submit}>
        <h2 id="asking">{action.title}</h2>
        <Fields of={action.fields ?? []} values={values} set={(values) => (setTrouble(""), setValues(values))} />
        <p class="effect">{action.effect(values)}</p>
        {request && (
          <details>
            <summary>The same from a terminal</summary>
            <Command text={asCurl(request)} />
          </details>
        )}
        {trouble && (
          <p class="wrong" role="alert">
            {trouble}
          </p>
        )}
        <div class="buttons">
          <button
            type="button"
            disabled={isBusy}
            autofocus={first === "cancel"}
            onClick={() => dialog.current?.close()}
          >
            Cancel
          </button>
          <button
            type="submit"
            class={action.isDanger ? "danger" : "primary"}
            disabled={isBusy}
            autofocus={first === "agree"}
          >
            {action.verb}
          </button>
        </div>
      </form>
    </dialog>
  );
}

function requestOf(action: Action, values: Values): { request?: Request; wrong: string } {
  try {
    return { request: action.request(values), wrong: "" };
  } catch (error) {
    return { wrong: (error as Error).message };
  }
}
