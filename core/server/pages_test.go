package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/mask"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// TestMaskedPlans: what is known to be secret is in no text of a dry run, and all else is as it
// was.
func TestMaskedPlans(t *testing.T) {
	const secret = "hush-hush"
	var secrets mask.Secrets
	secrets.Set("a", []string{secret})
	plans := func(word string) report.Plans {
		return report.Plans{Making: []report.Plan{}, MoreMaking: 2, Ended: []report.Plan{{
			ID: 3, Command: "coxswain plugins swap a --dry-run", By: "ann", State: report.PlanFailed, Of: 1, Error: "it said " + word,
			Steps: []report.PlanStep{{
				Plugin: "a", What: "swap", Reasons: []string{word}, Notes: []string{"x" + word}, Took: 7,
				Difference: &guard.Difference{Types: []guard.TypeDifference{{Type: "t", Proxies: 4, Fields: []string{"token: " + word}}}},
			}},
		}}}
	}
	got := maskedPlans(&secrets, plans(secret))
	if diff := cmp.Diff(plans(mask.Word), got, cmpopts.IgnoreUnexported(guard.TypeDifference{})); diff != "" {
		t.Error(diff)
	}
	if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), secret) {
		t.Errorf("%s, %v", text, err)
	}
}
