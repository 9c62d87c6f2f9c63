package admin

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/core/xds"
)

// TestQuestionsOfOthersAtOnce: where as many questions of other namespaces are dealt with as may
// be, one more ends after a while; operators are answered.
func TestQuestionsOfOthersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQuestions(naming, Tools{Pages: "pages", Clients: "clients"})
		q.Attach(&Server{cfg: Config{Source: fleet{}, Naming: naming}})
		ask := func(who string) error {
			_, err := q.Answer(xds.Question{Type: "clients", Identities: []string{who}})
			return err
		}
		if err := ask("shop/web"); err != nil {
			t.Fatal(err)
		}
		for range ofOthers {
			q.others <- struct{}{}
		}
		if err := ask("shop/web"); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one more: %v", err)
		}
		if err := ask("operators/admin"); err != nil {
			t.Errorf("operators: %v", err)
		}
	})
}
