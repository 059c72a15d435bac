// The one dialog: says what an action will do and shows the request, and only then sends it.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { asCurl, send, type Request } from "../api/client";
import { Store, useStore } from "../store";
import { Command } from "./empty";
import { say } from "./notice";

export type Values = Record<string, string>;

export interface Field {
  name: string;
  label: string;
  value: string;
  kind?: "number" | "choice" | "lines";
  choices?: { value: string; label: string }[];
  hint?: string;
  isOptional?: boolean;
  /** Shown only while this holds. */
  when?(values: Values): boolean;
}

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

const asked = new Store<Action | null>(null);

/** Asks the reader; nothing happens before they agree. */
export function ask(action: Action): void {
  asked.set(action);
}

export function ConfirmDialog() {
  const action = useStore(asked);
  return action && <Asking key={action.title} action={action} />;
}

function Asking({ action }: { action: Action }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [values, setValues] = useState<Values>(() =>
    Object.fromEntries((action.fields ?? []).map((field) => [field.name, field.value])),
  );
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
      asked.change(action, null);
      action.after?.();
    } catch (error) {
      setTrouble((error as Error).message);
      setBusy(false);
    }
  };
  const shown = (action.fields ?? []).filter((field) => field.when?.(values) ?? true);
  return (
    <dialog class="dialog" ref={dialog} onClose={() => asked.change(action, null)} aria-labelledby="asking">
      <form method="dialog" onSubmit={submit}>
        <h2 id="asking">{action.title}</h2>
        {shown.length > 0 && (
          <div class="fields">
            {shown.map((field) => (
              <FieldInput
                key={field.name}
                field={field}
                value={values[field.name] ?? ""}
                set={(value) => (setTrouble(""), setValues({ ...values, [field.name]: value }))}
              />
            ))}
          </div>
        )}
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
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button
            type="submit"
            class={action.isDanger ? "danger" : "primary"}
            disabled={isBusy}
            autofocus={shown.length === 0}
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

function FieldInput({ field, value, set }: { field: Field; value: string; set(value: string): void }) {
  const id = `field-${field.name}`;
  const shared = {
    id,
    name: field.name,
    value,
    required: !field.isOptional,
    "aria-describedby": field.hint ? `${id}-hint` : undefined,
  };
  const input = (event: { currentTarget: { value: string } }) => set(event.currentTarget.value);
  return (
    <div class={field.kind === "choice" || field.kind === "lines" ? "field wide" : "field"}>
      <label for={id}>{field.label}</label>
      {field.kind === "choice" ? (
        <select {...shared} onChange={input}>
          {field.choices?.map((choice) => (
            <option value={choice.value}>{choice.label}</option>
          ))}
        </select>
      ) : field.kind === "lines" ? (
        <textarea {...shared} rows={8} spellcheck={false} onInput={input} />
      ) : (
        <input
          {...shared}
          inputMode={field.kind === "number" ? "numeric" : "text"}
          autocomplete="off"
          spellcheck={false}
          onInput={input}
        />
      )}
      {field.hint && <small id={`${id}-hint`}>{field.hint}</small>}
    </div>
  );
}
