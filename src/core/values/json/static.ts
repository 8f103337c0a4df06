import type { Json, JsonObject } from './json.ts';

/**
 * The type of the values that a JSON Schema takes, for the keywords that Waymark's own schemas use
 * (docs/design/operations.md#types-from-schemas). A schema is a literal, as of `as const`. `Any`
 * stands for what it leaves open, and for the parts of it that are made at run time. `nullable` is
 * the keyword of OpenAPI 3.0, which ajv knows.
 */
export type Static<Schema, Any = Json> = JsonObject extends Schema
  ? Any
  : Bare<Schema, Any> | (Schema extends { readonly nullable: true } ? null : never);

/**
 * The input of an operation: as Static, but a member that is null counts as absent, and the
 * operation does not get it.
 */
export type StaticInput<Schema> = JsonObject extends Schema
  ? JsonObject
  : WithoutNulls<Static<Schema>>;

/** The data that an operation answers: unknown where the schema leaves it open. */
export type StaticOutput<Schema> = Static<Schema, unknown>;

type WithoutNulls<Value> = {
  readonly [Name in keyof Value]: Exclude<Value[Name], null>;
};

type Bare<Schema, Any> = Schema extends { readonly const: infer Value }
  ? Value
  : Schema extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { readonly oneOf: readonly (infer Choice)[] }
      ? EachOf<Choice, Any> & Typed<Schema, Any>
      : Schema extends { readonly anyOf: readonly (infer Choice)[] }
        ? EachOf<Choice, Any> & Typed<Schema, Any>
        : Schema extends { readonly type: readonly (infer Name)[] }
          ? OfType<Name, Schema, Any>
          : Schema extends { readonly type: infer Name }
            ? OfType<Name, Schema, Any>
            : Schema extends { readonly properties: unknown }
              ? ObjectOf<Schema, Any>
              : Any;

/** A schema with choices may have a type, which all of them have. */
type Typed<Schema, Any> = Schema extends { readonly type: infer Name extends keyof Simple }
  ? OfType<Name, Schema, Any>
  : unknown;

type EachOf<Choice, Any> = Choice extends unknown ? Static<Choice, Any> : never;

type OfType<Name, Schema, Any> = Name extends keyof Simple
  ? Simple[Name]
  : Name extends 'array'
    ? readonly (Schema extends { readonly items: infer Item } ? Static<Item, Any> : Any)[]
    : Name extends 'object'
      ? ObjectOf<Schema, Any>
      : Any;

interface Simple {
  readonly string: string;
  readonly integer: number;
  readonly number: number;
  readonly boolean: boolean;
  readonly null: null;
}

type ObjectOf<Schema, Any> = Schema extends { readonly properties: infer Properties }
  ? Members<Properties, RequiredOf<Schema>, Any>
  : Schema extends { readonly additionalProperties: infer Value extends object }
    ? { readonly [name: string]: Static<Value, Any> }
    : [Any] extends [Json]
      ? JsonObject
      : object;

/** Properties whose names are known at run time only are left out. */
type Members<Properties, Required, Any> = {
  readonly [Name in Known<Properties> as Name extends Required ? Name : never]: Static<
    Properties[Name],
    Any
  >;
} & {
  readonly [Name in Known<Properties> as Name extends Required ? never : Name]?:
    | Static<Properties[Name], Any>
    | MaybeUndefined<Any>;
};

/** JSON has no member for undefined, so that an answer may have it. */
type MaybeUndefined<Any> = unknown extends Any ? undefined : never;

type Known<Properties> = keyof {
  [Name in keyof Properties as string extends Name ? never : Name]: Properties[Name];
} &
  keyof Properties;

/** Names that are known at run time only require nothing that a type could say. */
type RequiredOf<Schema> = Schema extends { readonly required: readonly (infer Name)[] }
  ? string extends Name
    ? never
    : Name
  : never;
