// Package protoyaml reads protobuf messages from YAML or JSON text by the rules of protobuf's JSON
// mapping, strictly, and says of each mistake where it is: line, column and field.
//
//	for _, chunk := range protoyaml.Split(content) {
//		root, fault := chunk.Parse()
//		faults := protoyaml.Decode(root, "", message)
//	}
//
// Where it is wider than the mapping: YAML's spellings of numbers and booleans, aliases and merge
// keys; durations also as Go writes them (`1m30s`), as Istio reads them; nulls of fields and of
// entries of maps, which are left out, as a Kubernetes API server does. Where it is stricter:
// numbers of enums must be known ones, lists hold no null, no key is given twice, and the words
// that YAML 1.1 takes for booleans (yes, off, y) need quotes where a string is meant.
package protoyaml
