// Package redact takes secrets out of what people are shown: of encoded resources, of payloads of
// rows, and of texts. It knows them by the annotation udpa.annotations.sensitive of Envoy's fields,
// by the names of fields, keys and headers (Name), by fields that were declared (Declare), and by
// how they look in a text (Text).
//
// Messages are changed as they are encoded, with the descriptors that the program is linked with; a
// message of a type that it doesn't know is looked through by its shape. What is equal before is
// equal after. The work is linear in the size of what is shown, but for nesting, which is bounded.
// It is for what is shown: nothing of it belongs on the path of a push.
package redact

// Word takes a secret's place.
const Word = "[redacted]"
