package wasm

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// An answer comes whole, in one message, or not at all: what is larger is an error that says so,
// and not the part that fits.
func TestAnswersOfAnySize(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		_, _ = w.Write(bytes.Repeat([]byte("x"), n))
	}))
	defer server.Close()
	text, err := json.Marshal(spec.Grants{HTTP: []string{server.URL + "/*"}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGrants(text, nil, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	f := newFetcher(g)
	defer f.close()
	const most = session.MaxMessage
	for size, fits := range map[int]bool{0: true, 1000: true, most - 8192: true, most: false, 2 * most: false} {
		got := f.fetch(t.Context(), &pb.Fetch{Id: 7, Method: http.MethodGet, Url: server.URL + "/" + strconv.Itoa(size)})
		switch {
		case got.Id != 7:
			t.Errorf("%d bytes: the answer to %d", size, got.Id)
		case fits && (got.Error != "" || len(got.Body) != size || got.Size() > most):
			t.Errorf("%d bytes: %d came in a message of %d, error %q", size, len(got.Body), got.Size(), got.Error)
		case !fits && (!strings.Contains(got.Error, "the answer is larger than") || len(got.Body) > 0):
			t.Errorf("%d bytes: %d came, error %q", size, len(got.Body), got.Error)
		}
	}
}
