//go:build wasip1

package text

import "strconv"

// Value returns a value as fmt.Print has it, if it is one of a basic type, a list of strings, an
// error or has a String method. Of others it says that they can't be shown.
func Value(v any) string {
	switch v := v.(type) {
	case nil:
		return "<nil>"
	case error:
		return v.Error()
	case interface{ String() string }:
		return v.String()
	case string:
		return v
	case []byte:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case []string:
		return list(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	if n, ok := signed(v); ok {
		return strconv.FormatInt(n, 10)
	}
	if n, ok := unsigned(v); ok {
		return strconv.FormatUint(n, 10)
	}
	return "(a value that a WASM module can't show: make it a string)"
}

func list(all []string) string {
	s := "["
	for i, e := range all {
		if i > 0 {
			s += " "
		}
		s += e
	}
	return s + "]"
}

func signed(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int8:
		return int64(v), true
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

func unsigned(v any) (uint64, bool) {
	switch v := v.(type) {
	case uint:
		return uint64(v), true
	case uint8:
		return uint64(v), true
	case uint16:
		return uint64(v), true
	case uint32:
		return uint64(v), true
	case uint64:
		return v, true
	}
	return 0, false
}
