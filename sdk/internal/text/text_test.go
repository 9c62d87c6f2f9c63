package text

import (
	"errors"
	"io"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	got := Of("a ", 1, " ", uint64(2), " ", true, " ", 1.5, " ", io.EOF, " ", time.Second, " ", []string{"x", "y"}, " ", nil)
	if want := "a 1 2 true 1.5 EOF 1s [x y] <nil>"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Quoted([]string{"a", "b"}); got != `["a" "b"]` {
		t.Error(got)
	}
}

func TestError(t *testing.T) {
	err := Error("reading: ", io.EOF, " after ", 3, " bytes")
	if err.Error() != "reading: EOF after 3 bytes" || !errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}
