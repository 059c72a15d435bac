// Fields to fill in, in a dialog or on a page.
import { useEffect, useState } from "preact/hooks";

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

/** What the fields say before anyone touches them. */
export function valuesOf(fields: Field[]): Values {
  return Object.fromEntries(fields.map((field) => [field.name, field.value]));
}

interface Typed {
  value: string;
  commit(value: string): void;
  kind?: "text" | "datetime-local";
  placeholder?: string;
  disabled?: boolean;
  list?: string;
}

/** An input that counts once it is left or Enter is pressed. What is half typed stays while the page is drawn again. */
export function TypedInput({ value, commit, kind = "text", ...others }: Typed) {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  return (
    <input
      {...others}
      type={kind}
      value={draft}
      onInput={(event) => setDraft(event.currentTarget.value)}
      onChange={(event) => commit(event.currentTarget.value)}
    />
  );
}

export function Fields({ of, values, set }: { of: Field[]; values: Values; set(values: Values): void }) {
  const shown = of.filter((field) => field.when?.(values) ?? true);
  if (shown.length === 0) return null;
  return (
    <div class="fields">
      {shown.map((field) => (
        <FieldInput
          key={field.name}
          field={field}
          value={values[field.name] ?? ""}
          set={(value) => set({ ...values, [field.name]: value })}
        />
      ))}
    </div>
  );
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
