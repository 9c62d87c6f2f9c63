// Package protoyaml reads protobuf messages from YAML or JSON text by the rules of protobuf's JSON
// mapping, strictly, and says of each mistake where it is: line, column and field.
//
//	for _, chunk := range protoyaml.Split(content) {
//		root, fault := chunk.Parse()
//		faults := protoyaml.Decode(root, "", message)
//	}
//
// Where it is wider than the mapping: YAML's spellings of numbers and booleans, aliases and merge
// keys; durations also as Go writes them (`1m30s`), as Istio reads them. Where it is stricter:
// numbers of enums must be known ones, lists hold no null, and no key is given twice.
package protoyaml
