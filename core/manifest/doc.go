// Package manifest is plugins.yaml: what it may say, and what it says. It starts nothing, and knows
// neither processes nor sessions; core/host runs what a Set declares, core/swap follows the file.
//
// A file comes in and goes out in these steps, each a file of this folder:
//
//   - entry.go has what may be written: a Set of Entries, each a plugin. Its comments are the
//     documentation of the keys: the JSON Schema (schema.go, made by the command in schema/) has
//     them, and docs/plugins.md is checked against them. A new key begins here.
//   - values.go has the values that have a form of their own: sizes, shares, digests, patterns.
//   - parse.go reads a text, strictly, says all that is wrong with it at once, each at its line, and
//     fills in defaults. What concerns one key is checked by its type, what concerns several here.
//   - foreach.go makes of an entry with forEach an instance for each row of a table.
//   - choose.go and select.go say which entries serve a proxy, by its xDS node.
//   - change.go compares two versions of an entry, and makes a set with another one in it.
//   - edit.go changes entries of a text and leaves all else as it stands, comments and empty lines
//     too (airy.go); pinning.go writes the hashes of what an entry runs.
//
// What can only be said with the machine at hand (whether a program is there, a secret can be read,
// a built-in takes its config) is host.Validate's.
package manifest
