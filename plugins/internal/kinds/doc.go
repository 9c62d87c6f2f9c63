// Package kinds knows Istio's config kinds: their names, versions and messages, how a file's
// documents become rows, and how readers of rows get the messages back.
//
//	docs := kinds.Read("routes.yaml", content)         // writers: documents, each with a row or faults
//	vs, err := kinds.Decode[*networking.VirtualService](row) // readers
//
// A kind's table is named GROUP/KIND, whatever version a document was written in: all served
// versions of a kind have the same meaning, and one Go message.
package kinds
