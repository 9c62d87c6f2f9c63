package guard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func TestGuard(t *testing.T) {
	rows := func(service string, n int) environment.Tables {
		all := environment.Tables{}
		if n >= 0 {
			all.Put("services", &pb.Row{Key: service})
		}
		for i := range n {
			all.Put("endpoints", &pb.Row{Key: fmt.Sprintf("%s/http/10.0.0.%d:80", service, i)})
		}
		return all
	}
	half := Guard{MaxRemoved: Share{Percent: 50}}
	nowhere := func(string, string) bool { return false }
	for name, c := range map[string]struct {
		guard         Guard
		before, after environment.Tables
		elsewhere     func(table, service string) bool
		want          string
	}{
		"half goes":             {half, rows("ns/a", 20), rows("ns/a", 10), nowhere, ""},
		"more than half goes":   {half, rows("ns/a", 20), rows("ns/a", 9), nowhere, "11 of 20 endpoints would go, more than guard.maxRemoved, 50%"},
		"few":                   {half, rows("ns/a", 5), rows("ns/a", 1), nowhere, "4 of 5 endpoints would go, more than guard.maxRemoved, 50%"},
		"one":                   {Guard{Share{Percent: 20}}, rows("ns/a", 3), rows("ns/a", 2), nowhere, ""},
		"a number":              {Guard{Share{Count: 3}}, rows("ns/a", 5), rows("ns/a", 1), nowhere, "4 of 5 endpoints"},
		"a service is emptied":  {half, rows("ns/a", 1), rows("ns/a", 0), nowhere, "service ns/a would have no endpoints"},
		"another has endpoints": {half, rows("ns/a", 1), rows("ns/a", 0), func(string, string) bool { return true }, ""},
		"the service goes, too": {half, rows("ns/a", 1), rows("ns/b", 1), nowhere, ""},
		"nothing at all":        {half, rows("ns/a", 1), environment.Tables{}, nowhere, "it synced with nothing"},
		"nothing before":        {half, environment.Tables{}, environment.Tables{}, nowhere, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(c.guard.Check(Rows(c.before, c.after, c.elsewhere)), "; ")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
