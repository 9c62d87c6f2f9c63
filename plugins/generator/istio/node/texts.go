package node

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// Texts are metadata whose values are texts, in one piece: there are many proxies, and few are ever
// asked.
type Texts string

// Marks stand before a name, before its value and after it; metadata doesn't hold them.
const nameMark, valueMark, endMark = "\x00", "\x01", "\x02"

func texts(fields map[string]*structpb.Value) Texts {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if v, ok := fields[k].GetKind().(*structpb.Value_StringValue); ok {
			b.WriteString(nameMark + k + valueMark + v.StringValue + endMark)
		}
	}
	return Texts(b.String())
}

// Are reports whether a name has exactly this value.
func (t Texts) Are(name, value string) bool {
	return strings.Contains(string(t), nameMark+name+valueMark+value+endMark)
}
