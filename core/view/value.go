package view

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// value is a resource's bytes in one or more runs, each of which is whole fields where there are
// several. Read only.
type value [][]byte

func (v value) size() (n int) {
	for _, run := range v {
		n += len(run)
	}
	return n
}

// joined returns the value as one run, without copying if it is that already.
func (v value) joined() []byte {
	if len(v) == 1 {
		return v[0]
	}
	return slices.Concat(v...)
}

// cut returns the first n bytes and the rest, in new lists of the same memory; whole, if the cut is
// between two fields.
func (v value) cut(n int) (head, rest value, whole bool) {
	for i, run := range v {
		if n < len(run) {
			if n > 0 {
				head = append(head, run[:n:n])
			}
			return head, append(value{run[n:]}, v[i+1:]...), between(run, n)
		}
		head, n = append(head, run), n-len(run)
	}
	return head, nil, true
}

// between reports whether one field ends, and another one begins, after n bytes.
func between(run []byte, n int) bool {
	at := 0
	for at < n {
		_, _, size := protowire.ConsumeField(run[at:])
		if size < 0 {
			return false
		}
		at += size
	}
	return at == n
}
