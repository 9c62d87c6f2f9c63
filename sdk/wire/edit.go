package wire

// Edit returns a message in which every value on a path of fields has become what f makes of it:
// with the path 3, 4 every value of field 4 in every message of field 3. Values of bytes, strings
// and messages have paths; what f returns nil for is removed. Everything else stays as and where it
// is, fields that nobody knows of too. Without a path f gets the message itself.
func Edit(message []byte, f func(value []byte) []byte, path ...int) ([]byte, error) {
	if len(path) == 0 {
		return f(message), nil
	}
	out := make([]byte, 0, len(message)+64)
	r := Read(message)
	for r.Next() {
		if r.Field != path[0] || r.Type != BytesType {
			out = append(out, r.Raw...)
			continue
		}
		value, err := Edit(r.Bytes, f, path[1:]...)
		if err != nil {
			return nil, err
		}
		if value != nil {
			out = Bytes(out, r.Field, value)
		}
	}
	return out, r.Err()
}
