/** The choice between the versions of a record; `choices` has the label of each. */
export function ConflictChoice<Name extends string>({
  name,
  label,
  choices,
  chosen,
  onChoose,
}: {
  name: string;
  label: string;
  choices: Readonly<Record<Name, string>>;
  chosen: Name | undefined;
  onChoose: (chosen: Name) => void;
}) {
  return (
    <fieldset class="choice">
      <legend class="field-label">{label}</legend>
      {(Object.entries(choices) as [Name, string][]).map(([one, text]) => (
        <label key={one} class="check">
          <input
            type="radio"
            name={`resolve ${name}`}
            checked={chosen === one}
            onChange={() => {
              onChoose(one);
            }}
          />
          {text}
        </label>
      ))}
    </fieldset>
  );
}
